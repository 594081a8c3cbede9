package replay

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/datum"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
)

// ErrNoBatch: a step of nothing but evaluation has no batch.
var ErrNoBatch = errors.New("replay: the step has no batch")

// Batch batches a recorded step again. closed are the new closings, as many as were
// recorded; trajectory reads the trajectory of a member that is to be packed, of which
// only tokens, logprobs and versions are looked at. The error is ErrIncomplete where
// the step has groups that were not recorded or not replayed, and ErrNoBatch.
func Batch(rules step.Rules, recorded Step, closed []*sluicev1.GroupClosed, trajectory func(Member) (*sluicev1.Trajectory, error)) (*sluicev1.StepBatch, []*sluicev1.MicroBatch, error) {
	s := step.New(recorded.ID)
	staleness := stalenessIn(recorded.Batch)
	var trainer uint32
	var last time.Time
	for _, g := range closed {
		for _, m := range g.GetMembers() {
			if m.GetFate() != sluicev1.MemberFate_MEMBER_FATE_USED || g.GetMode() != sluicev1.Mode_MODE_TRAIN {
				continue
			}
			member := Member{identity.Place{Group: identity.GroupOf(g.GetGroup()), SampleIndex: m.GetSampleIndex()}, m.GetCopy()}
			t, err := trajectory(member)
			if err != nil {
				return nil, nil, fmt.Errorf("step %s: %s: %w", recorded.ID, member.Place, err)
			}
			s.Take(&sluicev1.GroupMember{Scored: &sluicev1.Scored{Trajectory: t, Graded: true}})
			// By its staleness the trainer was ahead of a member's oldest token.
			if behind, said := staleness[member]; said {
				if shape, err := datum.ShapeOf(t); err == nil {
					trainer = max(trainer, shape.MinVersion+behind)
				}
			}
		}
		if _, err := s.Close(g); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrInput, err)
		}
		if at := g.GetClosedAt().AsTime(); at.After(last) {
			last = at
		}
	}
	switch {
	case !s.Complete():
		return nil, nil, fmt.Errorf("%w: step %s: %d of its groups are there", ErrIncomplete, recorded.ID, len(closed))
	case !s.Training():
		return nil, nil, ErrNoBatch
	}
	if at := recorded.Batch.GetBatchedAt(); at != nil {
		last = at.AsTime()
	}
	return rules.Batch(s, trainer, last)
}

// stalenessIn is what the recorded batch says of the members whose versions it looked at.
func stalenessIn(b *sluicev1.StepBatch) map[Member]uint32 {
	said := map[Member]uint32{}
	at := identity.Group{RunID: b.GetRunId(), Incarnation: b.GetIncarnation(), Step: b.GetStep()}
	for _, m := range b.GetMembers() {
		switch m.GetFate() {
		case sluicev1.BatchFate_BATCH_FATE_NO_POLICY_TOKENS, sluicev1.BatchFate_BATCH_FATE_CUSTODY:
			continue
		}
		at.Slot = m.GetSlot()
		said[Member{identity.Place{Group: at, SampleIndex: m.GetSampleIndex()}, m.GetCopy()}] = m.GetStaleness()
	}
	return said
}
