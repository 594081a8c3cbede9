package step

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
)

var (
	// ErrConflict: a closing gives the step another number of groups than the first did.
	ErrConflict = errors.New("step: conflicting closing")
	// ErrUnbalanced: the advantages of a closing do not sum to 0.
	ErrUnbalanced = errors.New("step: unbalanced advantages")
)

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
//
// A closing that cannot be used is refused, with ErrConflict or ErrUnbalanced. Its group
// counts as closed and dropped, so that the step does not wait for it for ever; unless the
// slot is none of the step's.
func (s *Step) Close(g *sluicev1.GroupClosed) (news bool, refused error) {
	slot, n := g.GetGroup().GetSlot(), g.GetGroupsInStep()
	if _, closed := s.closings[slot]; closed {
		return false, nil
	}
	if s.groups == 0 {
		s.groups = n
	}
	if refused = s.check(g); refused != nil {
		if slot >= s.groups {
			return false, refused
		}
		g = dropped(g, refused)
	}
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
	return true, refused
}

// check says why a closing cannot be used.
func (s *Step) check(g *sluicev1.GroupClosed) error {
	slot, n := g.GetGroup().GetSlot(), g.GetGroupsInStep()
	if n != s.groups {
		return fmt.Errorf("%w: step %s has %d groups, but the closing of slot %d says %d", ErrConflict, s.id, s.groups, slot, n)
	}
	if g.GetClosing() != sluicev1.Closing_CLOSING_USED {
		return nil
	}
	var advantages []float64
	for _, m := range g.GetMembers() {
		if m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_USED {
			advantages = append(advantages, m.GetAdvantage())
		}
	}
	if !advantage.Balanced(advantages) {
		return fmt.Errorf("%w: group %s: the advantages %v of its graded members do not sum to 0", ErrUnbalanced, identity.GroupOf(g.GetGroup()), advantages)
	}
	return nil
}

// dropped is a closing that was refused, as it counts: its members are not trained on.
func dropped(g *sluicev1.GroupClosed, why error) *sluicev1.GroupClosed {
	g = proto.Clone(g).(*sluicev1.GroupClosed)
	g.Closing, g.Reason, g.Detail = sluicev1.Closing_CLOSING_DROPPED, "refused", why.Error()
	for _, m := range g.GetMembers() {
		if m.Advantage = 0; m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_USED || m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_DEGENERATE {
			m.Fate = sluicev1.MemberFate_MEMBER_FATE_SHORT_GROUP
		}
	}
	return g
}

// Groups is how many groups the step has, 0 while nothing has said so.
func (s *Step) Groups() int { return int(s.groups) }

// Closed is how many of them are closed.
func (s *Step) Closed() int { return len(s.closings) }

// Arrived is how many trajectories of training its closings name.
func (s *Step) Arrived() int {
	n := 0
	for _, g := range s.closings {
		for _, m := range g.GetMembers() {
			if g.GetMode() == sluicev1.Mode_MODE_TRAIN && m.GetFate() != sluicev1.MemberFate_MEMBER_FATE_MISSING {
				n++
			}
		}
	}
	return n
}

// OpenSlots lists the slots whose group is open, in order, at most limit of them.
func (s *Step) OpenSlots(limit int) []uint32 {
	var open []uint32
	for slot := uint32(0); slot < s.groups && len(open) < limit; slot++ {
		if _, closed := s.closings[slot]; !closed {
			open = append(open, slot)
		}
	}
	return open
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
