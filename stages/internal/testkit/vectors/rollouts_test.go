package vectors

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/group"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/datum"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/stages/reward-scorer/boxed"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

// graded is what grading and packing added to a recorded batch.
type graded struct {
	Trajectories []gradedTrajectory
	Metrics      map[string]float64
}

type gradedTrajectory struct {
	Reward      float64
	Correct     bool
	ValidFormat bool `json:"valid_format"`
	Advantage   float64
	Datum       *recordedDatum
	// Executions are read for one mark only.
	Executions []struct {
		NeverReturns bool `json:"reference_never_returns"`
	}
}

// recordedDatum has the arrays as the first 16 hex digits of the SHA-256 of their
// little-endian int32 or float32 bytes.
type recordedDatum struct {
	NumTokens  int    `json:"num_tokens"`
	Input      string `json:"input_sha"`
	Target     string `json:"target_sha"`
	Logprobs   string `json:"logprobs_f32_sha"`
	Advantages string `json:"advantages_f32_sha"`
	LossTokens int    `json:"loss_tokens"`
}

// batch is one recorded batch on its way through the domain packages.
type batch struct {
	recorded rollouttest.Reference
	want     graded
	scored   []*sluicev1.Scored
	groups   []*sluicev1.GroupClosed
	out      *sluicev1.StepBatch
	micro    []*sluicev1.MicroBatch
}

// checkRollouts replays a batch turn by turn, grades, groups and packs it, and compares
// everything that was recorded of it.
func checkRollouts(line []byte) error {
	var b batch
	if err := json.Unmarshal(line, &b.recorded); err != nil {
		return err
	}
	if err := json.Unmarshal(line, &b.want); err != nil {
		return err
	}
	if b.hasEmptyTurn() {
		if err := b.replayWithEmptyTurns(); err != nil {
			return fmt.Errorf("seed %d: %w", b.recorded.Seed, err)
		}
		return nil
	}
	for _, stage := range []func() error{b.replay, b.group, b.pack, b.compareData, b.compareMetrics} {
		if err := stage(); err != nil {
			return fmt.Errorf("seed %d: %w", b.recorded.Seed, err)
		}
	}
	return nil
}

// hasEmptyTurn says whether a turn was recorded of which nothing was sampled, not even an
// end token. The recipe takes that for an answer of the policy's and pays -1; here it is the
// server's fault and never graded, which changes the group's mean and all that follows.
func (b *batch) hasEmptyTurn() bool {
	return slices.ContainsFunc(b.recorded.Trajectories, endsEmpty)
}

func endsEmpty(t rollouttest.ReferenceTrajectory) bool {
	return slices.ContainsFunc(t.Turns, func(turn rollouttest.ReferenceTurn) bool { return turn.Completion == "" })
}

// replayWithEmptyTurns compares what is the same with and without such turns: the other
// trajectories; these end as faults.
func (b *batch) replayWithEmptyTurns() error {
	for _, recorded := range b.recorded.Trajectories {
		at := fmt.Sprintf("slot %d sample %d", recorded.Slot, recorded.SampleIndex)
		t, err := b.recorded.Replay(recorded)
		switch {
		case endsEmpty(recorded):
			if t.GetEndReason() != sluicev1.EndReason_END_REASON_PROTOCOL_FAULT {
				return fmt.Errorf("%s: an empty turn ended it as %v, want a fault", at, t.GetEndReason())
			}
		case err != nil:
			return fmt.Errorf("%s: %w", at, err)
		default:
			if d := recorded.Disagreement(t); d != "" {
				return fmt.Errorf("%s: %s", at, d)
			}
		}
	}
	return nil
}

// replay drives and grades every trajectory. Grading is by the recipe's rules: answers
// are equal if their texts are, and the final text of an invalid call is read.
func (b *batch) replay() error {
	for i, recorded := range b.recorded.Trajectories {
		at := fmt.Sprintf("slot %d sample %d", recorded.Slot, recorded.SampleIndex)
		t, err := b.recorded.Replay(recorded)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if d := recorded.Disagreement(t); d != "" {
			return fmt.Errorf("%s: %s", at, d)
		}
		box := boxed.Config{}.Find(t.GetFinalText())
		s := &sluicev1.Scored{
			Trajectory: t, Graded: true, Reward: -1, ValidFormat: box.Found,
			Correct: box.Found && box.Answer == t.GetPrompt().GetProblem().GetAnswer(),
		}
		if s.Correct {
			s.Reward = 1
		}
		want := b.want.Trajectories[i]
		if s.Reward != want.Reward || s.Correct != want.Correct || s.ValidFormat != want.ValidFormat {
			return fmt.Errorf("%s: reward %v, correct %t, valid format %t; want %v, %t, %t",
				at, s.Reward, s.Correct, s.ValidFormat, want.Reward, want.Correct, want.ValidFormat)
		}
		b.scored = append(b.scored, s)
	}
	return nil
}

// group closes the groups and compares advantages.
func (b *batch) group() error {
	open := map[uint32]*group.Group{}
	for _, s := range b.scored {
		slot := s.GetTrajectory().GetPrompt().GetGroup().GetSlot()
		if open[slot] == nil {
			open[slot] = group.Open(s.GetTrajectory().GetPrompt(), time.Unix(0, 0))
		}
		if counts, err := open[slot].Join(s); err != nil || !counts {
			return fmt.Errorf("slot %d sample %d does not join its group: %w", slot, s.GetTrajectory().GetSampleIndex(), err)
		}
	}
	for slot := range uint32(len(b.recorded.Questions)) {
		if open[slot] == nil || !open[slot].Complete() {
			return fmt.Errorf("slot %d: the group is not complete", slot)
		}
		closed, err := open[slot].Close(advantage.Rule{}, time.Unix(0, 0))
		if err != nil {
			return err
		}
		b.groups = append(b.groups, closed)
	}
	for i, s := range b.scored {
		t := s.GetTrajectory()
		got := b.groups[t.GetPrompt().GetGroup().GetSlot()].GetMembers()[t.GetSampleIndex()].GetAdvantage()
		if want := b.want.Trajectories[i].Advantage; got != want {
			return fmt.Errorf("slot %d sample %d: advantage %v, want %v", t.GetPrompt().GetGroup().GetSlot(), t.GetSampleIndex(), got, want)
		}
	}
	return nil
}

func (b *batch) pack() error {
	s := step.New(step.ID{RunID: "replay", Step: 1})
	for _, m := range b.scored {
		s.Take(&sluicev1.GroupMember{Scored: m})
	}
	for _, g := range b.groups {
		if _, err := s.Close(g); err != nil {
			return err
		}
	}
	if !s.Complete() {
		return fmt.Errorf("the step is not complete")
	}
	rules := step.DefaultRules
	rules.Context = rules.Packing.PaddedTokens // the recipe refuses no length
	var err error
	b.out, b.micro, err = rules.Batch(s, 0, time.Unix(0, 0))
	return err
}

// compareData compares each datum as it stands in its micro-batch. The record has
// advantages before they are scaled, so they are scaled here the same way.
func (b *batch) compareData() error {
	type place struct{ slot, sample uint32 }
	packed := map[place]*sluicev1.Datum{}
	scale := map[place]float64{}
	for _, m := range b.micro {
		for _, d := range m.GetData() {
			p := place{d.GetSlot(), d.GetSampleIndex()}
			packed[p], scale[p] = d, m.GetScale()
		}
	}
	for i, s := range b.scored {
		t, want := s.GetTrajectory(), b.want.Trajectories[i]
		p := place{t.GetPrompt().GetGroup().GetSlot(), t.GetSampleIndex()}
		got := packed[p]
		if (got == nil) != (want.Datum == nil) {
			return fmt.Errorf("slot %d sample %d: packed %t, want %t", p.slot, p.sample, got != nil, want.Datum != nil)
		}
		if got == nil {
			continue
		}
		plain, err := datum.Of(t, want.Advantage)
		if err != nil {
			return err
		}
		if have := record(got, plain); have != *want.Datum {
			return fmt.Errorf("slot %d sample %d: datum %+v, want %+v", p.slot, p.sample, have, *want.Datum)
		}
		scaled, err := datum.Of(t, want.Advantage*scale[p])
		if err != nil {
			return err
		}
		if hash(scaled.GetAdvantages()) != hash(got.GetAdvantages()) {
			return fmt.Errorf("slot %d sample %d: advantages are not the recorded ones times %v", p.slot, p.sample, scale[p])
		}
	}
	return nil
}

func record(packed, plain *sluicev1.Datum) recordedDatum {
	r := recordedDatum{
		NumTokens: tokens.Count(packed.GetInputTokens()),
		Input:     hash(packed.GetInputTokens()), Target: hash(packed.GetTargetTokens()),
		Logprobs: hash(packed.GetBehaviourLogprobs()), Advantages: hash(plain.GetAdvantages()),
	}
	r.LossTokens = bytes.Count(packed.GetLossMask(), []byte{1})
	return r
}

// hash is over the values' bytes, as they are recorded.
func hash(values []byte) string {
	sum := sha256.Sum256(values)
	return hex.EncodeToString(sum[:8])
}
