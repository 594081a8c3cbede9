package step

import (
	"errors"
	"fmt"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// ErrConflict: a closing gives the step another number of groups than the first did.
var ErrConflict = errors.New("step: conflicting closing")

// ID is the identity of a step, for use as a map key.
type ID struct {
	RunID       string
	Incarnation uint32
	Step        uint64
}

// IDOf is the step that a group belongs to.
func IDOf(g identity.Group) ID {
	return ID{RunID: g.RunID, Incarnation: g.Incarnation, Step: g.Step}
}

// String gives "run.incarnation/step".
func (id ID) String() string { return fmt.Sprintf("%s.%d/%d", id.RunID, id.Incarnation, id.Step) }

// Step is an open step: what has arrived of it.
type Step struct {
	id       ID
	groups   uint32 // 0 until the first closing says it
	closings map[uint32]*sluicev1.GroupClosed
	members  map[member]*sluicev1.Trajectory
}

// member is a place within the step and the copy that took it. A place whose first
// copy was given up may hold two; the closing says which one counts.
type member struct {
	slot, sample uint32
	copy         uint64
}

// New is an open step of which nothing has arrived.
func New(id ID) *Step {
	return &Step{id: id, closings: map[uint32]*sluicev1.GroupClosed{}, members: map[member]*sluicev1.Trajectory{}}
}

// ID is the step's identity.
func (s *Step) ID() ID { return s.id }

// Take keeps a member until its group is closed, if it could be trained on.
func (s *Step) Take(m *sluicev1.GroupMember) {
	t := m.GetScored().GetTrajectory()
	if !m.GetScored().GetGraded() || t.GetPrompt().GetMode() != sluicev1.Mode_MODE_TRAIN {
		return
	}
	slot := t.GetPrompt().GetGroup().GetSlot()
	if _, closed := s.closings[slot]; closed {
		return
	}
	s.members[member{slot, t.GetSampleIndex(), t.GetCopy()}] = t
}

// Close notes that a group is closed and lets go of its members that will not be
// packed. The first closing of a slot counts; a later one is no news (false).
func (s *Step) Close(g *sluicev1.GroupClosed) (news bool, err error) {
	slot, n := g.GetGroup().GetSlot(), g.GetGroupsInStep()
	if _, closed := s.closings[slot]; closed {
		return false, nil
	}
	if s.groups != 0 && n != s.groups || slot >= n {
		return false, fmt.Errorf("%w: step %s has %d groups, but the closing of slot %d says %d", ErrConflict, s.id, s.groups, slot, n)
	}
	s.groups = n
	s.closings[slot] = g
	packed := map[member]bool{}
	for _, m := range g.GetMembers() {
		if m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_USED {
			packed[member{slot, m.GetSampleIndex(), m.GetCopy()}] = true
		}
	}
	for m := range s.members {
		if m.slot == slot && !packed[m] {
			delete(s.members, m)
		}
	}
	return true, nil
}

// Complete says whether all groups of the step are closed.
func (s *Step) Complete() bool { return s.groups > 0 && len(s.closings) == int(s.groups) }

// Training says whether a group of training has closed in this step.
func (s *Step) Training() bool {
	for _, g := range s.closings {
		if g.GetMode() == sluicev1.Mode_MODE_TRAIN {
			return true
		}
	}
	return false
}
