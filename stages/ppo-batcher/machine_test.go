package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/machinetest"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/microbatch"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/topology/process"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func newPartition(t failer) *machinetest.Partition {
	t.Helper()
	return newPartitionOf(t, limits{})
}

func newPartitionOf(t failer, l limits) *machinetest.Partition {
	t.Helper()
	p, _ := partitionOf(t, l)
	return p
}

// newTold is a partition, and what it tells of its steps.
func newTold(t failer) (*machinetest.Partition, *progress) {
	t.Helper()
	p, told := partitionOf(t, limits{})
	told.now = func() time.Time { return p.Now }
	return p, told
}

func partitionOf(t failer, l limits) (*machinetest.Partition, *progress) {
	t.Helper()
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	cfg := config{rules: step.DefaultRules, stepsKept: 3, limits: l}
	cfg.rules.Packing = microbatch.Limits{Data: 2, PaddedTokens: 1000}
	log := slog.New(slog.DiscardHandler)
	told := newProgress(log, m, time.Hour)
	p, err := machinetest.New(start, func() kafka.Machine { return newMachine(0, cfg, log, m, told, nil) })
	if err != nil {
		t.Fatal(err)
	}
	return p, told
}

// group is the records of one group of two members, one right and one wrong, as the
// grouper writes them.
func group(runID string, stepNo uint64, slot, groups uint32, mode sluicev1.Mode) []proto.Message {
	place := &sluicev1.GroupPlace{RunId: runID, Step: stepNo, Slot: slot}
	closed := &sluicev1.GroupClosed{
		Group: place, QuestionId: "q", Mode: mode, GroupSize: 2, GroupsInStep: groups,
		Closing: sluicev1.Closing_CLOSING_USED, Reason: "complete", Graded: 2,
	}
	var out []proto.Message
	for i := range uint32(2) {
		reward := float64(1 - 2*int(i))
		t := &sluicev1.Trajectory{
			Prompt: &sluicev1.Prompt{
				Group: place, Problem: &sluicev1.Problem{QuestionId: "q"}, GroupSize: 2, GroupsInStep: groups, Mode: mode,
			},
			SampleIndex: i, Copy: 1000*stepNo + 10*uint64(slot) + uint64(i), PromptTokens: tokens.IDs(1, 2, 3),
			Turns:     []*sluicev1.Turn{{Tokens: tokens.IDs(4, 5), Logprobs: tokens.Floats(-1, -2), Versions: tokens.Versions(7, 7)}},
			EndReason: sluicev1.EndReason_END_REASON_ANSWER,
		}
		custody.SealAll(t)
		out = append(out, &sluicev1.GroupMember{Scored: &sluicev1.Scored{
			Trajectory: t, Graded: true, Reward: reward, Scores: []*sluicev1.Score{{Name: "outcome"}},
		}})
		closed.Members = append(closed.Members, &sluicev1.MemberClosing{
			SampleIndex: i, Copy: t.GetCopy(), Fate: sluicev1.MemberFate_MEMBER_FATE_USED, Reward: reward, Advantage: reward,
		})
	}
	return append(out, closed)
}

func train(stepNo uint64, slot, groups uint32) []proto.Message {
	return group("run", stepNo, slot, groups, sluicev1.Mode_MODE_TRAIN)
}

// feed appends records and handles them.
func feed(t failer, p *machinetest.Partition, records ...proto.Message) {
	t.Helper()
	for _, r := range records {
		p.Append("grouped", r)
		if err := p.Step("grouped", false); err != nil {
			t.Fatal(err)
		}
	}
}

// said is what the batcher has written, one word per record.
func said(p *machinetest.Partition) []string {
	var out []string
	for _, o := range p.Outputs {
		switch b := o.Body.(type) {
		case *sluicev1.StepBatch:
			out = append(out, fmt.Sprintf("step %s/%d: %d micro-batches, n=%d", b.GetRunId(), b.GetStep(), b.GetMicroBatches(), b.GetN()))
		case *sluicev1.MicroBatch:
			out = append(out, fmt.Sprintf("micro %s/%d/%d: %d data", b.GetRunId(), b.GetStep(), b.GetIndex(), len(b.GetData())))
		}
	}
	return out
}

func expect(t failer, p *machinetest.Partition, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, said(p)); diff != "" {
		t.Fatalf("written (-want +got):\n%s", diff)
	}
}

func TestAStepIsBatchedWhenItsLastGroupCloses(t *testing.T) {
	p := newPartition(t)
	feed(t, p, train(1, 1, 2)...)
	expect(t, p)
	feed(t, p, train(1, 0, 2)...)
	expect(t, p, "step run/1: 2 micro-batches, n=4", "micro run/1/0: 2 data", "micro run/1/1: 2 data")
}

func TestStepsDoNotWaitForEachOther(t *testing.T) {
	p := newPartition(t)
	feed(t, p, train(1, 0, 2)...)
	feed(t, p, train(2, 0, 1)...)
	feed(t, p, train(1, 1, 2)...)
	expect(t, p, "step run/2: 1 micro-batches, n=2", "micro run/2/0: 2 data",
		"step run/1: 2 micro-batches, n=4", "micro run/1/0: 2 data", "micro run/1/1: 2 data")
}

func TestAStepOfDroppedGroupsIsBatchedWithCountZero(t *testing.T) {
	p := newPartition(t)
	records := train(1, 0, 1)
	closed := records[2].(*sluicev1.GroupClosed)
	closed.Closing, closed.Graded = sluicev1.Closing_CLOSING_DROPPED, 0
	feed(t, p, records[2])
	expect(t, p, "step run/1: 0 micro-batches, n=0")
}

func TestLateRecordsAreDropped(t *testing.T) {
	p := newPartition(t)
	records := train(1, 0, 1)
	feed(t, p, records...)
	want := []string{"step run/1: 1 micro-batches, n=2", "micro run/1/0: 2 data"}
	feed(t, p, records...)
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	feed(t, p, records...)
	expect(t, p, want...)
	// Also when the step itself has been forgotten.
	feed(t, p, train(9, 0, 2)...)
	feed(t, p, records...)
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	feed(t, p, records...)
	expect(t, p, want...)
}

func TestEvaluationIsNotBatched(t *testing.T) {
	p := newPartition(t)
	feed(t, p, group("run-eval", 1, 0, 1, sluicev1.Mode_MODE_EVAL)...)
	expect(t, p)
	if entries, _ := p.State(); entries != 1 {
		t.Errorf("%d entries of state, want the step noted as done", entries)
	}
}

func TestStalenessComesFromTheTrainersLastUpdate(t *testing.T) {
	for _, c := range []struct {
		version uint32
		want    sluicev1.BatchFate
	}{
		{8, sluicev1.BatchFate_BATCH_FATE_TRAINED},
		{9, sluicev1.BatchFate_BATCH_FATE_STALE},
	} {
		p := newPartition(t)
		update := &sluicev1.PolicyUpdate{RunId: "run", Step: 1, PolicyVersion: c.version}
		other := &sluicev1.PolicyUpdate{RunId: "other", Step: 1, PolicyVersion: 99}
		if err := errors.Join(p.Broadcast("policy-updates", update), p.Broadcast("policy-updates", other)); err != nil {
			t.Fatal(err)
		}
		records := train(2, 0, 1)
		feed(t, p, records[:2]...)
		// The bound holds after a restart: the version comes from the records.
		if err := p.Restart(); err != nil {
			t.Fatal(err)
		}
		feed(t, p, records[2])
		for _, m := range machinetest.Bodies[*sluicev1.StepBatch](p, "ppo-batches")[0].GetMembers() {
			if m.GetFate() != c.want {
				t.Errorf("trainer at %d, sampled at 7: %s, want %s", c.version, m.GetFate(), c.want)
			}
		}
	}
}

// A closing that cannot be used ends its group as dropped: the step does not wait for it.
func TestAConflictingClosingIsRefused(t *testing.T) {
	p := newPartition(t)
	feed(t, p, train(1, 0, 2)...)
	feed(t, p, train(1, 1, 3)...)
	if len(p.Rejected) != 0 {
		t.Fatalf("rejected: %v", p.Rejected)
	}
	letters := machinetest.Bodies[*sluicev1.DeadLetter](p, "dead-letters")
	if len(letters) != 1 || letters[0].GetErrorType() != "refused" || !strings.Contains(letters[0].GetError(), "2 groups") ||
		letters[0].GetSourceOffset() != 5 || letters[0].GetOrigin().GetGroup().GetSlot() != 1 {
		t.Fatalf("dead letters: %v, want one that names the record and both counts", letters)
	}
	b := machinetest.Bodies[*sluicev1.StepBatch](p, "ppo-batches")
	if len(b) != 1 || b[0].GetGroupsDropped() != 1 || b[0].GetGroupsUsed() != 1 || b[0].GetN() != 2 {
		t.Errorf("batched: %v, want one group used and one dropped", b)
	}
}

func TestUnbalancedAdvantagesEndTheGroupAsDropped(t *testing.T) {
	p := newPartition(t)
	records := train(1, 0, 1)
	records[2].(*sluicev1.GroupClosed).Members[0].Advantage = 1.5
	feed(t, p, records[:2]...)
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	feed(t, p, records[2])
	letters := machinetest.Bodies[*sluicev1.DeadLetter](p, "dead-letters")
	if len(letters) != 1 || letters[0].GetErrorType() != "unbalanced" {
		t.Errorf("dead letters: %v, want one of class unbalanced", letters)
	}
	expect(t, p, "step run/1: 0 micro-batches, n=0")
}

// A step of which more trajectories were lost than is allowed stops its run.
func TestTooManyFaultsStopTheRun(t *testing.T) {
	for _, c := range []struct {
		limits limits
		stops  int
	}{{limits{}, 0}, {limits{infraErrors: 0.5}, 0}, {limits{infraErrors: 0.3}, 1}, {limits{protocolFaults: 0.3}, 0}} {
		p := newPartitionOf(t, c.limits)
		records := train(1, 0, 1)
		closed := records[2].(*sluicev1.GroupClosed)
		closed.GroupSize = 4
		for i := range uint32(2) {
			closed.Members = append(closed.Members, &sluicev1.MemberClosing{SampleIndex: 2 + i, Copy: 9, Fate: sluicev1.MemberFate_MEMBER_FATE_UNGRADED, EndReason: sluicev1.EndReason_END_REASON_INFRA_ERROR})
		}
		feed(t, p, records...)
		stops := machinetest.Bodies[*sluicev1.RunStop](p, "runs")
		if len(stops) != c.stops {
			t.Errorf("%+v: stopped %d times, want %d", c.limits, len(stops), c.stops)
		}
		for _, s := range stops {
			if want := "step 1: 2 of 4 trajectories (50%) ended as infra_error, the limit is 30%"; s.GetReason() != want || s.GetRunId() != "run" {
				t.Errorf("run %s stops for %q, want %q", s.GetRunId(), s.GetReason(), want)
			}
		}
	}
}

// What waits for a group or for the trainer is told, over a restart too, until it moves.
func TestProgressIsTold(t *testing.T) {
	p, told := newTold(t)
	expectTold := func(want ...string) {
		t.Helper()
		p.Now = p.Now.Add(tellEvery)
		if err := p.Settle(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range told.steps() {
			got = append(got, fmt.Sprintf("%s/%d: %d of %d, open %v, batched %t, %s ago", s.GetRunId(), s.GetStep(), s.GetGroupsClosed(), s.GetGroups(),
				s.GetOpenSlots(), s.GetBatched(), p.Now.Sub(s.GetMovedAt().AsTime()).Round(time.Second)))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("told (-want +got):\n%s", d)
		}
	}
	feed(t, p, train(7, 1, 3)...)
	expectTold("run/7: 1 of 3, open [0 2], batched false, 5s ago")
	p.Now = p.Now.Add(time.Minute)
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	expectTold("run/7: 1 of 3, open [0 2], batched false, 1m10s ago")
	feed(t, p, train(7, 0, 3)...)
	feed(t, p, train(7, 2, 3)...)
	expectTold("run/7: 0 of 0, open [], batched true, 5s ago")
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	expectTold("run/7: 0 of 0, open [], batched true, 10s ago")
	if err := p.Broadcast("policy-updates", &sluicev1.PolicyUpdate{RunId: "run", Step: 7}); err != nil {
		t.Fatal(err)
	}
	expectTold()
}

func TestStateIsSmallAndBounded(t *testing.T) {
	p := newPartition(t)
	for stepNo := uint64(1); stepNo <= 50; stepNo++ {
		feed(t, p, train(stepNo, 0, 2)...)
		feed(t, p, train(stepNo, 1, 2)...)
	}
	if entries, bytes := p.State(); entries != 3 || bytes > 100 {
		t.Errorf("%d entries of %d bytes after 50 steps, want the last 3 in at most 100 bytes", entries, bytes)
	}
}

// Wherever the process dies, what is committed is what it would have been without.
func TestEveryStepIsBatchedOnceWhateverIsKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Groups of three steps and two runs, whose records interleave; a group's own
		// records keep their order, as do all in a partition.
		var queues [][]proto.Message
		for _, runID := range []string{"a", "b"} {
			for stepNo := uint64(1); stepNo <= 3; stepNo++ {
				for slot := range uint32(2) {
					queues = append(queues, group(runID, stepNo, slot, 2, sluicev1.Mode_MODE_TRAIN))
				}
			}
		}
		var records []proto.Message
		for len(queues) > 0 {
			i := rapid.IntRange(0, len(queues)-1).Draw(t, "queue")
			records = append(records, queues[i][0])
			if rapid.IntRange(0, 5).Draw(t, "twice") == 0 {
				records = append(records, queues[i][0])
			}
			if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
				queues = append(queues[:i], queues[i+1:]...)
			}
		}
		calm, killed := newPartition(t), newPartition(t)
		feed(t, calm, records...)
		for _, r := range records {
			killed.Append("grouped", r)
		}
		for killed.Lag("grouped") > 0 {
			if err := killed.Step("grouped", rapid.IntRange(0, 3).Draw(t, "crash") == 0); err != nil {
				t.Fatal(err)
			}
		}
		if len(calm.Outputs) != len(killed.Outputs) {
			t.Fatalf("%d outputs, and %d where it was killed", len(calm.Outputs), len(killed.Outputs))
		}
		for i := range calm.Outputs {
			if diff := cmp.Diff(calm.Outputs[i].Body, killed.Outputs[i].Body, protocmp.Transform()); diff != "" {
				t.Fatalf("output %d (-calm +killed):\n%s", i, diff)
			}
		}
		if n := len(machinetest.Bodies[*sluicev1.StepBatch](killed, "ppo-batches")); n != 6 {
			t.Fatalf("%d step batches of 6 steps", n)
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add("run.0/1", []byte("done"))
	f.Add("run.0/1", []byte("open from 17"))
	f.Add("", []byte(nil))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		id, e, err := decode(key, value)
		if err != nil {
			if !errors.Is(err, errState) {
				t.Fatalf("%v is not errState", err)
			}
			return
		}
		again, f, err := decode(id.String(), e.encode())
		if err != nil || again != id || f != e {
			t.Fatalf("%v %v comes back as %v %v, %v", id, e, again, f, err)
		}
	})
}

func TestFlagsThatCannotBeUsed(t *testing.T) {
	flags := &process.Flags{}
	(&config{rules: step.DefaultRules}).register(flags)
	if err := flags.Parse("--token-reduction", "max"); err == nil || !strings.Contains(err.Error(), "want sum or mean") {
		t.Errorf("--token-reduction max: %v", err)
	}
	for name, change := range map[string]func(*config){
		"--steps-kept":                     func(o *config) { o.stepsKept = 0 },
		"clip bounds":                      func(o *config) { o.rules.ClipHigh = 0.5 },
		"--training-context is 0":          func(o *config) { o.rules.Context = 0 },
		"--max-data is 0":                  func(o *config) { o.rules.Packing.Data = 0 },
		"messages of up to 170034816 byte": func(o *config) { o.rules.Packing.PaddedTokens = 10_000_000 },
	} {
		o := config{rules: step.DefaultRules, stepsKept: 1}
		change(&o)
		err := errors.Join(o.validate(), o.checkSize(8<<20))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that says %q", err, name)
		}
	}
	o := config{rules: step.DefaultRules, stepsKept: 1}
	if err := errors.Join(o.validate(), o.checkSize(8<<20)); err != nil {
		t.Error(err)
	}
}
