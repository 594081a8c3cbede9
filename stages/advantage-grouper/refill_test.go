package main

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/testkit/machinetest"
)

// wholePrompt is a prompt that a sampler could work on.
func wholePrompt(step uint64, slot, size uint32) *sluicev1.Prompt {
	p := prompt(step, slot, size)
	p.Budgets = &sluicev1.Budgets{CodeCalls: 1, Turns: 1, TrajectoryTokens: 9, TurnTokens: 9, ObservationTokens: 9, ExecutionTimeoutMs: 9}
	p.Sampling = &sluicev1.SamplingParameters{Temperature: 1, TopP: 1}
	return p
}

func lost(step uint64, slot, size, index uint32, copy uint64, why sluicev1.EndReason, attempt uint32) *sluicev1.Scored {
	s := scored(step, slot, size, index, copy, 0)
	s.Graded, s.Scores, s.UngradedReason, s.Correct = false, nil, "lost", false
	s.Trajectory.EndReason, s.Trajectory.Prompt.Attempt = why, attempt
	return s
}

const infra = sluicev1.EndReason_END_REASON_INFRA_ERROR

func (p partition) whole(step uint64, slot, size uint32) {
	p.t.Helper()
	p.Append("prompts", wholePrompt(step, slot, size))
	p.gets("prompts", false)
}

func (p partition) scored(s *sluicev1.Scored) {
	p.t.Helper()
	p.Append("scored", s)
	p.gets("scored", false)
}

// refills are the prompts that the grouper wrote.
func (p partition) refills() []string {
	var out []string
	for _, r := range machinetest.Bodies[*sluicev1.Prompt](p.Partition, "prompts") {
		if err := codec.Validate(r); err != nil {
			p.t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("slot %d attempt %d members %v", r.GetGroup().GetSlot(), r.GetAttempt(), r.GetSampleIndices()))
	}
	return out
}

func (p partition) expectRefills(want ...string) {
	p.t.Helper()
	if got := p.refills(); !slices.Equal(got, want) {
		p.t.Fatalf("refills %q, want %q", got, want)
	}
}

func TestALostMemberIsAskedForOnceMore(t *testing.T) {
	p := newPartition(t)
	p.whole(1, 0, 2)
	p.scored(lost(1, 0, 2, 1, 11, infra, 0))
	p.expectRefills("slot 0 attempt 1 members [1]")
	p.member(1, 0, 2, 0, 10, 1)
	p.must(p.Restart())
	p.expect("member run.0/1/0/1~11", "member run.0/1/0/0~10") // it waits for its refill
	p.member(1, 0, 2, 1, 12, -1)
	p.expect("member run.0/1/0/1~11", "member run.0/1/0/0~10", "member run.0/1/0/1~12", "closed run.0/1/0 used complete: used used")
	p.expectRefills("slot 0 attempt 1 members [1]")
}

func TestARefillThatIsLostTooIsNotAskedForAgain(t *testing.T) {
	p := newPartition(t)
	p.whole(1, 0, 3)
	p.scored(lost(1, 0, 3, 1, 11, infra, 0))
	p.scored(lost(1, 0, 3, 1, 12, infra, 1))
	p.member(1, 0, 3, 0, 10, 1)
	p.member(1, 0, 3, 2, 13, -1)
	p.expectRefills("slot 0 attempt 1 members [1]")
	if said := p.said(); said[len(said)-1] != "closed run.0/1/0 used complete: used ungraded used" {
		t.Errorf("the group ended as %q", said[len(said)-1])
	}
}

// Each member has its own refill; what was given up unread has no prompt of its own and
// waits for the group's.
func TestAStubWaitsForThePrompt(t *testing.T) {
	p := newPartition(t)
	p.scored(lost(1, 0, 4, 3, 11, infra, 0))
	p.scored(lost(1, 0, 4, 1, 12, infra, 0))
	p.expectRefills()
	p.whole(1, 0, 4)
	p.expectRefills("slot 0 attempt 1 members [1 3]")
	p.must(p.Restart())
	p.scored(lost(1, 0, 4, 0, 13, infra, 0))
	p.expectRefills("slot 0 attempt 1 members [1 3]", "slot 0 attempt 1 members [0]")
}

func TestWhatIsNeverRefilled(t *testing.T) {
	for name, why := range map[string]sluicev1.EndReason{
		"too long":       sluicev1.EndReason_END_REASON_PROMPT_TOO_LONG,
		"protocol fault": sluicev1.EndReason_END_REASON_PROTOCOL_FAULT,
		"failed reward":  sluicev1.EndReason_END_REASON_ANSWER,
	} {
		p := newPartition(t)
		p.whole(1, 0, 2)
		p.scored(lost(1, 0, 2, 0, 10, why, 0))
		if got := p.refills(); len(got) > 0 {
			t.Errorf("%s: refills %q, want none", name, got)
		}
	}
	p := newPartition(t)
	p.whole(1, 0, 8)
	for i := range uint32(5) {
		p.member(1, 0, 8, i, uint64(i)+1, float64(i%2))
	}
	p.must(p.Settle())
	p.Now = p.Now.Add(deadline)
	p.must(p.Settle())
	if got := p.refills(); len(got) > 0 {
		t.Errorf("stragglers: refills %q, want none", got)
	}
}

// A refill's prompt that is given up whole speaks for members it did not ask for: they
// are not lost by that.
func TestARefillGivenUpWholeTakesNoOtherPlace(t *testing.T) {
	p := newPartition(t)
	p.whole(1, 0, 3)
	p.scored(lost(1, 0, 3, 1, 11, infra, 0))
	for i := range uint32(3) {
		p.scored(lost(1, 0, 3, i, 20+uint64(i), infra, 1))
	}
	p.member(1, 0, 3, 0, 10, 1)
	p.member(1, 0, 3, 2, 13, -1)
	if said := p.said(); said[len(said)-1] != "closed run.0/1/0 used complete: used ungraded used" {
		t.Errorf("the group ended as %q", said[len(said)-1])
	}
}

func TestWithoutRefillALostMemberStaysLost(t *testing.T) {
	p := newPartitionOf(t, config{deadline: deadline, stepsKept: 3})
	p.whole(1, 0, 2)
	p.scored(lost(1, 0, 2, 0, 10, infra, 0))
	p.scored(lost(1, 0, 2, 1, 11, infra, 0))
	p.expectRefills()
	if said := p.said(); said[len(said)-1] != "closed run.0/1/0 dropped members_lost: ungraded ungraded" {
		t.Errorf("the group ended as %q", said[len(said)-1])
	}
}

// Whatever order, doubling, crash: no member is asked for twice, none that was not lost,
// and an answered group closes.
func TestRefillOncePerMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPartition(t)
		const size = 4
		p.Append("prompts", wholePrompt(1, 0, size))
		var copies uint64
		isLost := map[uint32]bool{}
		for i := range uint32(size) {
			for range rapid.IntRange(1, 2).Draw(t, "times") {
				copies++
				if isLost[i] = rapid.Bool().Draw(t, "lost"); isLost[i] {
					p.Append("scored", lost(1, 0, size, i, copies, infra, 0))
				} else {
					p.Append("scored", scored(1, 0, size, i, copies, rapid.SampledFrom([]float64{-1, 1}).Draw(t, "reward")))
				}
			}
		}
		asked, answered := map[uint32]int{}, 0
		for p.Lag("prompts")+p.Lag("scored") > 0 {
			topic := rapid.SampledFrom([]string{"prompts", "scored"}).Draw(t, "topic")
			if p.Lag(topic) == 0 {
				continue
			}
			p.gets(topic, rapid.IntRange(0, 4).Draw(t, "crash") == 0)
			refills := machinetest.Bodies[*sluicev1.Prompt](p.Partition, "prompts")
			for ; answered < len(refills); answered++ {
				p.Append("prompts", refills[answered])
				for _, i := range refills[answered].GetSampleIndices() {
					asked[i]++
					copies++
					if rapid.Bool().Draw(t, "lost again") {
						p.Append("scored", lost(1, 0, size, i, copies, infra, 1))
					} else {
						s := scored(1, 0, size, i, copies, 1)
						s.Trajectory.Prompt.Attempt = 1
						p.Append("scored", s)
					}
				}
			}
		}
		for i, n := range asked {
			if n > 1 {
				t.Fatalf("member %d was asked for %d times more", i, n)
			}
		}
		closed := machinetest.Bodies[*sluicev1.GroupClosed](p.Partition, "grouped")
		if len(closed) != 1 {
			t.Fatalf("%d closings of a group whose every member has an answer, want 1", len(closed))
		}
	})
}
