package step

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/datum"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/microbatch"
)

// candidate is a graded member of a used group.
type candidate struct {
	trajectory *sluicev1.Trajectory // nil: its record is gone
	advantage  float64
	shape      datum.Shape
	err        error
	fate       *sluicev1.MemberBatched
}

// Batch closes a complete step. trainer is the trainer's policy version as far as it
// is known; a member sampled by a newer one shows that it is at least that.
func (r Rules) Batch(s *Step, trainer uint32, now time.Time) (*sluicev1.StepBatch, []*sluicev1.MicroBatch, error) {
	b := &sluicev1.StepBatch{
		RunId: s.id.RunID, Incarnation: s.id.Incarnation, Step: s.id.Step,
		ClipLow: r.ClipLow, ClipHigh: r.ClipHigh, TokenReduction: r.Reduction, Correction: r.Correction,
		BatchedAt: timestamppb.New(now),
	}
	all := s.candidates(b)
	for _, c := range all {
		trainer = max(trainer, c.shape.MaxVersion)
	}
	var packed []*candidate
	for _, c := range all {
		r.judge(c, trainer)
		b.Members = append(b.Members, c.fate)
		if c.fate.GetFate() == sluicev1.BatchFate_BATCH_FATE_TRAINED {
			packed = append(packed, c)
		}
	}
	micro, err := r.pack(b, packed)
	if err != nil {
		return nil, nil, fmt.Errorf("step %s: %w", s.id, err)
	}
	custody.SealStep(b, micro)
	return b, micro, nil
}

// candidates counts the closings into b and lists the graded members of used groups by
// slot and sample index.
func (s *Step) candidates(b *sluicev1.StepBatch) []*candidate {
	var all []*candidate
	for _, slot := range slices.Sorted(maps.Keys(s.closings)) {
		g := s.closings[slot]
		if g.GetMode() != sluicev1.Mode_MODE_TRAIN {
			continue
		}
		countFaults(b, g)
		switch g.GetClosing() {
		case sluicev1.Closing_CLOSING_DEGENERATE:
			b.GroupsDegenerate++
			b.N += g.GetGraded()
		case sluicev1.Closing_CLOSING_USED:
			b.GroupsUsed++
			b.N += g.GetGraded()
			for _, m := range g.GetMembers() {
				if m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_USED {
					all = append(all, s.candidate(slot, m))
				}
			}
		default:
			b.GroupsDropped++
		}
	}
	return all
}

// countFaults counts the trajectories of a group that ended by a fault of ours.
func countFaults(b *sluicev1.StepBatch, g *sluicev1.GroupClosed) {
	for _, m := range g.GetMembers() {
		switch m.GetEndReason() {
		case sluicev1.EndReason_END_REASON_PROTOCOL_FAULT:
			b.ProtocolFaults++
		case sluicev1.EndReason_END_REASON_INFRA_ERROR:
			b.InfraErrors++
		}
	}
}

func (s *Step) candidate(slot uint32, m *sluicev1.MemberClosing) *candidate {
	c := &candidate{
		trajectory: s.members[member{slot, m.GetSampleIndex(), m.GetCopy()}],
		advantage:  m.GetAdvantage(),
		fate:       &sluicev1.MemberBatched{Slot: slot, SampleIndex: m.GetSampleIndex(), Copy: m.GetCopy()},
	}
	if c.trajectory == nil {
		c.err = fmt.Errorf("its record is no longer in the topic")
		return c
	}
	if c.err = custody.Check(c.trajectory); c.err != nil {
		return c
	}
	c.shape, c.err = datum.ShapeOf(c.trajectory)
	c.fate.LossTokens = uint32(c.shape.LossTokens)
	return c
}

// judge gives a candidate its fate. Refusals come before a zero advantage, so that
// their rates do not depend on the rewards.
func (r Rules) judge(c *candidate, trainer uint32) {
	if c.err != nil {
		c.fate.Fate, c.fate.Detail = sluicev1.BatchFate_BATCH_FATE_NO_POLICY_TOKENS, c.err.Error()
		if errors.Is(c.err, custody.ErrBroken) {
			c.fate.Fate = sluicev1.BatchFate_BATCH_FATE_CUSTODY
		}
		return
	}
	c.fate.Staleness = trainer - c.shape.MinVersion
	switch {
	case c.shape.Tokens > r.limit():
		c.fate.Fate = sluicev1.BatchFate_BATCH_FATE_TOO_LONG
		c.fate.Detail = fmt.Sprintf("%d tokens, at most %d can be trained on", c.shape.Tokens, r.limit())
	case c.fate.GetStaleness() > r.MaxStaleness:
		c.fate.Fate = sluicev1.BatchFate_BATCH_FATE_STALE
		c.fate.Detail = fmt.Sprintf("oldest token of policy version %d, trainer at %d: staleness %d, at most %d",
			c.shape.MinVersion, trainer, c.fate.GetStaleness(), r.MaxStaleness)
	case c.advantage == 0:
		c.fate.Fate = sluicev1.BatchFate_BATCH_FATE_ZERO_ADVANTAGE
	default:
		c.fate.Fate = sluicev1.BatchFate_BATCH_FATE_TRAINED
	}
}

func (r Rules) pack(b *sluicev1.StepBatch, packed []*candidate) ([]*sluicev1.MicroBatch, error) {
	lengths := make([]int, len(packed))
	for i, c := range packed {
		lengths[i] = c.shape.Tokens
		b.LossTokens += uint64(c.shape.LossTokens)
		if i == 0 {
			b.PolicyVersionMin = c.shape.MinVersion
		}
		b.PolicyVersionMin = min(b.GetPolicyVersionMin(), c.shape.MinVersion)
		b.PolicyVersionMax = max(b.GetPolicyVersionMax(), c.shape.MaxVersion)
	}
	batches, err := r.Packing.Pack(lengths)
	if err != nil {
		return nil, err
	}
	b.MicroBatches, b.Data = uint32(len(batches)), uint32(len(packed))
	micro := make([]*sluicev1.MicroBatch, len(batches))
	for k, indices := range batches {
		m := &sluicev1.MicroBatch{
			RunId: b.GetRunId(), Incarnation: b.GetIncarnation(), Step: b.GetStep(), Index: uint32(k),
			PaddedTokens: uint64(microbatch.PaddedTokens(lengths, indices)),
			Scale:        microbatch.Scale(len(indices), int(b.GetN())),
			ClipLow:      r.ClipLow, ClipHigh: r.ClipHigh, TokenReduction: r.Reduction,
		}
		for _, i := range indices {
			d, err := datum.Of(packed[i].trajectory, packed[i].advantage*m.GetScale())
			if err != nil {
				return nil, err
			}
			m.Data = append(m.Data, d)
			packed[i].fate.MicroBatch = uint32(k)
		}
		b.PaddedTokens += m.GetPaddedTokens()
		micro[k] = m
	}
	return micro, nil
}
