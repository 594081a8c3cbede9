package main

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/machinetest"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

const deadline = 10 * time.Minute

func testConfig() config { return config{deadline: deadline, stepsKept: 3, refill: true} }

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// partition is one partition of the grouper with short names for what happens to it.
type partition struct {
	*machinetest.Partition
	t failer
}

func newPartition(t failer) partition {
	t.Helper()
	return newPartitionOf(t, testConfig())
}

func newPartitionOf(t failer, cfg config) partition {
	t.Helper()
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	p, err := machinetest.New(start, func() kafka.Machine {
		return newMachine(cfg, slog.New(slog.DiscardHandler), m, &standstill{log: slog.New(slog.DiscardHandler)})
	})
	if err != nil {
		t.Fatal(err)
	}
	return partition{p, t}
}

func (p partition) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// gets handles records of either input at once.
func (p partition) gets(topic string, crash bool) {
	p.t.Helper()
	p.must(p.Step(topic, crash))
}

func (p partition) prompt(step uint64, slot, size uint32) {
	p.t.Helper()
	p.Append("prompts", prompt(step, slot, size))
	p.gets("prompts", false)
}

func (p partition) member(step uint64, slot, size, index uint32, copy uint64, reward float64) {
	p.t.Helper()
	p.Append("scored", scored(step, slot, size, index, copy, reward))
	p.gets("scored", false)
}

func prompt(step uint64, slot, size uint32) *sluicev1.Prompt {
	return &sluicev1.Prompt{
		Group:     &sluicev1.GroupPlace{RunId: "run", Step: step, Slot: slot},
		Problem:   &sluicev1.Problem{QuestionId: fmt.Sprintf("q%d", slot), Question: "1+1?", Answer: "2"},
		GroupSize: size, GroupsInStep: 8, Mode: sluicev1.Mode_MODE_TRAIN,
	}
}

func scored(step uint64, slot, size, index uint32, copy uint64, reward float64) *sluicev1.Scored {
	return &sluicev1.Scored{
		Trajectory: &sluicev1.Trajectory{
			Prompt: prompt(step, slot, size), SampleIndex: index, Copy: copy, EndReason: sluicev1.EndReason_END_REASON_ANSWER,
		},
		Graded: true, Reward: reward, Correct: reward > 0, Scores: []*sluicev1.Score{{Name: "outcome", Version: "1", Reward: reward}},
	}
}

// said is what the grouper has written, one word per record.
func (p partition) said() []string {
	var out []string
	for _, o := range p.Outputs {
		switch b := o.Body.(type) {
		case *sluicev1.GroupMember:
			t := b.GetScored().GetTrajectory()
			out = append(out, fmt.Sprintf("member %s~%d", identity.PlaceOf(t), t.GetCopy()))
		case *sluicev1.GroupClosed:
			fate := make([]string, 0, len(b.GetMembers()))
			for _, m := range b.GetMembers() {
				fate = append(fate, schemas.EnumText(m.GetFate()))
			}
			out = append(out, fmt.Sprintf("closed %s %s %s: %s", identity.GroupOf(b.GetGroup()), schemas.EnumText(b.GetClosing()), b.GetReason(), strings.Join(fate, " ")))
		}
	}
	return out
}

func (p partition) expect(want ...string) {
	p.t.Helper()
	if diff := cmp.Diff(want, p.said()); diff != "" {
		p.t.Fatalf("written (-want +got):\n%s", diff)
	}
}

func TestAGroupFromPromptToClosing(t *testing.T) {
	p := newPartition(t)
	p.prompt(1, 0, 2)
	p.member(1, 0, 2, 1, 11, -1)
	p.member(1, 0, 2, 0, 10, 1)
	p.expect("member run.0/1/0/1~11", "member run.0/1/0/0~10", "closed run.0/1/0 used complete: used used")
}

func TestAMemberThatOvertakesItsPromptOpensTheGroup(t *testing.T) {
	p := newPartition(t)
	p.member(1, 0, 2, 0, 10, 1)
	p.prompt(1, 0, 2)
	p.member(1, 0, 2, 1, 11, 1)
	p.expect("member run.0/1/0/0~10", "member run.0/1/0/1~11", "closed run.0/1/0 degenerate complete: degenerate degenerate")
}

func TestLaterCopiesAreDropped(t *testing.T) {
	p := newPartition(t)
	p.member(1, 0, 2, 0, 10, 1)
	p.member(1, 0, 2, 0, 20, -1)
	p.member(1, 0, 2, 1, 11, -1)
	closed := []string{"member run.0/1/0/0~10", "member run.0/1/0/1~11", "closed run.0/1/0 used complete: used used"}
	p.expect(closed...)

	// Also after closing, after a restart, and when the step has been forgotten.
	p.member(1, 0, 2, 1, 21, -1)
	p.must(p.Restart())
	p.member(1, 0, 2, 1, 22, -1)
	p.prompt(1, 0, 2)
	p.expect(closed...)
	p.prompt(9, 0, 2)
	p.member(1, 0, 2, 1, 23, -1)
	p.prompt(1, 0, 2)
	p.must(p.Restart())
	p.member(1, 0, 2, 0, 24, 1)
	p.expect(closed...)
}

func TestTheDeadlineRunsOnlyWhileCaughtUp(t *testing.T) {
	p := newPartition(t)
	p.prompt(1, 0, 4)
	p.member(1, 0, 4, 0, 10, 1)
	p.member(1, 0, 4, 2, 12, -1)
	// Catching up takes an hour: no time passes for the group.
	p.Now = p.Now.Add(time.Hour)
	p.must(p.Settle())
	p.Now = p.Now.Add(deadline - time.Second)
	p.must(p.Settle())
	p.expect("member run.0/1/0/0~10", "member run.0/1/0/2~12")

	// A restart starts the time anew.
	p.must(p.Restart())
	p.must(p.Settle())
	p.Now = p.Now.Add(deadline - time.Second)
	p.must(p.Settle())
	p.expect("member run.0/1/0/0~10", "member run.0/1/0/2~12")
	p.Now = p.Now.Add(time.Second)
	p.must(p.Settle())
	p.expect("member run.0/1/0/0~10", "member run.0/1/0/2~12", "closed run.0/1/0 used deadline: used missing used missing")
}

func TestEachGroupHasItsOwnDeadline(t *testing.T) {
	p := newPartition(t)
	p.must(p.Settle())
	p.prompt(1, 0, 2)
	p.Now = p.Now.Add(deadline / 2)
	p.prompt(1, 1, 2)
	p.member(1, 1, 2, 0, 1, 1)
	p.Now = p.Now.Add(deadline / 2)
	p.must(p.Settle())
	p.expect("member run.0/1/1/0~1", "closed run.0/1/0 dropped deadline: missing missing")
	p.member(1, 1, 2, 1, 2, -1)
	p.Now = p.Now.Add(deadline)
	p.must(p.Settle())
	p.expect("member run.0/1/1/0~1", "closed run.0/1/0 dropped deadline: missing missing",
		"member run.0/1/1/1~2", "closed run.0/1/1 used complete: used used")
}

func TestAConflictingRecordIsRefusedAndChangesNothing(t *testing.T) {
	p := newPartition(t)
	p.prompt(1, 0, 2)
	_, before := p.State()
	p.member(1, 0, 3, 2, 10, 1)
	if len(p.Rejected) != 1 || !strings.Contains(p.Rejected[0].Error(), "group_size") {
		t.Fatalf("rejected: %v", p.Rejected)
	}
	if _, after := p.State(); after != before {
		t.Errorf("state grew from %d to %d bytes", before, after)
	}
	p.expect()
}

func TestTheSameQuestionTwiceInAStepIsTwoGroups(t *testing.T) {
	p := newPartition(t)
	for slot, reward := range []float64{-1, 1} {
		for i := range uint32(2) {
			s := scored(1, uint32(slot), 2, i, 5, reward)
			s.Trajectory.Prompt.Problem.QuestionId = "same"
			p.Append("scored", s)
			p.gets("scored", false)
		}
	}
	for _, c := range machinetest.Bodies[*sluicev1.GroupClosed](p.Partition, "grouped") {
		if c.GetClosing() != sluicev1.Closing_CLOSING_DEGENERATE {
			t.Errorf("group %s is %s, want degenerate", identity.GroupOf(c.GetGroup()), c.GetClosing())
		}
	}
}

// The state is about a hundred bytes per member while groups are open, and does not
// grow with the length of a run.
func TestStateIsSmallAndBounded(t *testing.T) {
	p := newPartition(t)
	for step := uint64(1); step <= 50; step++ {
		for slot := range uint32(4) {
			for i := range uint32(8) {
				p.member(step, slot, 8, i, 1<<60+uint64(i), float64(i%2))
			}
		}
	}
	entries, bytes := p.State()
	if want := 3 * 4; entries != want || bytes > 50*want {
		t.Errorf("%d entries of %d bytes after 50 steps of 4 closed groups, 3 steps kept: want %d entries of at most 50 bytes", entries, bytes, want)
	}
	for i := range uint32(7) {
		p.member(51, 0, 8, i, 1<<60+uint64(i), 1)
	}
	_, with := p.State()
	if per := (with - bytes) / 7; per > 100 {
		t.Errorf("%d bytes per member of an open group, want at most 100", per)
	}
}

// Whatever the order of records, however often they come, and wherever the process
// dies: every group closes exactly once, every place has one member in its closing, and
// that member was written before.
func TestExactlyOneClosingPerGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPartition(t)
		const size = 3
		groups := rapid.Uint32Range(1, 3).Draw(t, "groups")
		for slot := range groups {
			if rapid.Bool().Draw(t, "prompt") {
				p.Append("prompts", prompt(1, slot, size))
			}
		}
		arrived := map[uint32]bool{}
		for range rapid.IntRange(1, 25).Draw(t, "records") {
			slot := rapid.Uint32Range(0, groups-1).Draw(t, "slot")
			arrived[slot] = true
			p.Append("scored", scored(1, slot, size, rapid.Uint32Range(0, size-1).Draw(t, "index"),
				rapid.Uint64Range(1, 2).Draw(t, "copy"), rapid.SampledFrom([]float64{-1, 1}).Draw(t, "reward")))
		}
		for p.Lag("prompts")+p.Lag("scored") > 0 {
			topic := rapid.SampledFrom([]string{"prompts", "scored"}).Draw(t, "topic")
			if p.Lag(topic) == 0 {
				continue
			}
			p.gets(topic, rapid.IntRange(0, 4).Draw(t, "crash") == 0)
		}
		p.must(p.Settle())
		p.Now = p.Now.Add(deadline)
		p.must(p.Settle())
		p.must(p.Restart())
		p.must(p.Settle())
		p.Now = p.Now.Add(deadline)
		p.must(p.Settle())

		members := map[string]bool{}
		closings := map[uint32]int{}
		for _, o := range p.Outputs {
			switch b := o.Body.(type) {
			case *sluicev1.GroupMember:
				id := identity.TrajectoryID(b.GetScored().GetTrajectory())
				if members[id] {
					t.Fatalf("member %s was written twice", id)
				}
				members[id] = true
			case *sluicev1.GroupClosed:
				if err := codec.Validate(b); err != nil {
					t.Fatal(err)
				}
				closings[b.GetGroup().GetSlot()]++
				for i, m := range b.GetMembers() {
					id := fmt.Sprintf("%s/%d~%016x", identity.GroupOf(b.GetGroup()), i, m.GetCopy())
					if (m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_MISSING) == members[id] {
						t.Fatalf("member %s has fate %s, written before: %t", id, m.GetFate(), members[id])
					}
				}
			}
		}
		for slot := range arrived {
			if closings[slot] != 1 {
				t.Fatalf("group %d was closed %d times", slot, closings[slot])
			}
		}
	})
}
