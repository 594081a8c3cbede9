package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
)

// ErrInput: a record cannot be part of a replay.
var ErrInput = errors.New("replay: unusable record")

// Member names the copy that holds a place.
type Member struct {
	identity.Place
	Copy uint64
}

// MemberOf is a trajectory's place and copy.
func MemberOf(t *sluicev1.Trajectory) Member {
	return Member{identity.PlaceOf(t), t.GetCopy()}
}

// Plan is what the recorded closings and batches say there is to replay.
type Plan struct {
	groups  map[identity.Group]*sluicev1.GroupClosed
	batches map[step.ID]*sluicev1.StepBatch
}

// NewPlan is a plan without groups.
func NewPlan() *Plan {
	return &Plan{groups: map[identity.Group]*sluicev1.GroupClosed{}, batches: map[step.ID]*sluicev1.StepBatch{}}
}

// Add notes a recorded GroupClosed or StepBatch. The first of a group or step counts.
func (p *Plan) Add(m proto.Message) error {
	switch m := m.(type) {
	case *sluicev1.GroupClosed:
		if at := identity.GroupOf(m.GetGroup()); p.groups[at] == nil {
			p.groups[at] = m
		}
	case *sluicev1.StepBatch:
		id := step.ID{RunID: m.GetRunId(), Incarnation: m.GetIncarnation(), Step: m.GetStep()}
		if p.batches[id] == nil {
			p.batches[id] = m
		}
	default:
		return fmt.Errorf("%w: a %s closes nothing: want GroupClosed or StepBatch", ErrInput, codec.TypeName(m))
	}
	return nil
}

// Groups counts the groups.
func (p *Plan) Groups() int { return len(p.groups) }

// Group is the recorded closing of a group, nil if there is none.
func (p *Plan) Group(at identity.Group) *sluicev1.GroupClosed { return p.groups[at] }

// Step is one step as it was recorded.
type Step struct {
	ID step.ID
	// Groups are its closings, by slot.
	Groups []*sluicev1.GroupClosed
	// Batch is nil where none was recorded.
	Batch *sluicev1.StepBatch
}

// Steps lists the steps that have groups by run, incarnation and step.
func (p *Plan) Steps() []Step {
	byID := map[step.ID]*Step{}
	var all []*Step
	for at, g := range p.groups {
		id := step.IDOf(at)
		s := byID[id]
		if s == nil {
			s = &Step{ID: id, Batch: p.batches[id]}
			byID[id] = s
			all = append(all, s)
		}
		s.Groups = append(s.Groups, g)
	}
	slices.SortFunc(all, func(a, b *Step) int {
		return cmp.Or(cmp.Compare(a.ID.RunID, b.ID.RunID), cmp.Compare(a.ID.Incarnation, b.ID.Incarnation), cmp.Compare(a.ID.Step, b.ID.Step))
	})
	out := make([]Step, len(all))
	for i, s := range all {
		slices.SortFunc(s.Groups, func(a, b *sluicev1.GroupClosed) int {
			return cmp.Compare(a.GetGroup().GetSlot(), b.GetGroup().GetSlot())
		})
		out[i] = *s
	}
	return out
}

// Trains says whether a member's trajectory may be needed for a batch: its copy holds
// a place, graded, in a group of training.
func (p *Plan) Trains(m Member) bool {
	g := p.groups[m.Group]
	if g.GetMode() != sluicev1.Mode_MODE_TRAIN || int(m.SampleIndex) >= len(g.GetMembers()) {
		return false
	}
	c := g.GetMembers()[m.SampleIndex]
	return c.GetCopy() == m.Copy && wasGraded(c)
}

// wasGraded says whether a place was held by a graded member when its group closed.
func wasGraded(m *sluicev1.MemberClosing) bool {
	switch m.GetFate() {
	case sluicev1.MemberFate_MEMBER_FATE_USED, sluicev1.MemberFate_MEMBER_FATE_DEGENERATE, sluicev1.MemberFate_MEMBER_FATE_SHORT_GROUP:
		return true
	}
	return false
}
