package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/prompt-feeder/dataset"
	"github.com/sluice-rl/sluice/topology/process"
)

// configured is a feeder with the given flags over a file of n problems.
func configured(t *testing.T, n int, args ...string) (*feeder, source) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.jsonl")
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"id":"q%d","question":"Q%d","answer":"%d","data_source":"test"}`+"\n", i, i, i)
	}
	if err := os.WriteFile(path, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	f := newFeeder()
	flags := &process.Flags{}
	f.register(flags)
	if err := flags.Parse(append([]string{"--data", path, "--run-id", "run"}, args...)...); err != nil {
		t.Fatal(err)
	}
	if err := f.validate(); err != nil {
		t.Fatal(err)
	}
	file, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return f, source{file: file, order: dataset.NewOrder(n, f.seed), inOrder: f.mode == "eval"}
}

func questions(prompts []*sluicev1.Prompt) []string {
	var ids []string
	for _, p := range prompts {
		ids = append(ids, p.GetProblem().GetQuestionId())
	}
	return ids
}

func TestAStepFollowsFromFileSeedAndStepAlone(t *testing.T) {
	f, src := configured(t, 10, "--problems-per-step", "4")
	now := time.Unix(1, 0)
	first, err := f.stepPrompts(src, 0, 1, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := f.stepPrompts(src, 0, 1, nil, now)
	if diff := cmp.Diff(questions(first), questions(again)); diff != "" || len(first) != 4 {
		t.Errorf("step 1 differs between two calls, or has not 4 slots:\n%s", diff)
	}
	for i, p := range first {
		if err := codec.Validate(p); err != nil {
			t.Errorf("slot %d: %v", i, err)
		}
		if p.GetGroup().GetSlot() != uint32(i) || p.GetGroupsInStep() != 4 {
			t.Errorf("slot %d stands as slot %d of %d", i, p.GetGroup().GetSlot(), p.GetGroupsInStep())
		}
	}
}

func TestEveryEpochHasEveryProblemOnce(t *testing.T) {
	f, src := configured(t, 10, "--problems-per-step", "4")
	seen := map[string]int{}
	for step := uint64(1); step <= 5; step++ { // 20 slots: two epochs
		prompts, err := f.stepPrompts(src, 0, step, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range prompts {
			seen[fmt.Sprint(p.GetEpoch(), p.GetProblem().GetQuestionId())]++
		}
	}
	if len(seen) != 20 {
		t.Errorf("%d pairs of epoch and problem in 20 slots over 10 problems, want 20: %v", len(seen), seen)
	}
}

func TestOnlyMissingSlotsAreFed(t *testing.T) {
	f, src := configured(t, 10, "--problems-per-step", "4")
	fed := map[identity.Group]bool{{RunID: "run", Step: 2, Slot: 0}: true, {RunID: "run", Step: 2, Slot: 2}: true}
	prompts, err := f.stepPrompts(src, 0, 2, fed, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var slots []uint32
	for _, p := range prompts {
		slots = append(slots, p.GetGroup().GetSlot())
	}
	if diff := cmp.Diff([]uint32{1, 3}, slots); diff != "" {
		t.Errorf("slots fed after a crash (-want +got):\n%s", diff)
	}
	remade, _ := f.stepPrompts(src, 1, 2, fed, time.Now())
	if len(remade) != 4 {
		t.Errorf("%d slots in a new incarnation, want all 4: they are not the old ones", len(remade))
	}
}

func TestEvalFeedsEveryProblemOnceInOrder(t *testing.T) {
	f, src := configured(t, 10, "--mode", "eval", "--problems-per-step", "4")
	var ids []string
	last := f.lastStep(src.file.Len())
	for step := uint64(1); step <= last; step++ {
		prompts, err := f.stepPrompts(src, 0, step, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range prompts {
			if p.GetMode() != sluicev1.Mode_MODE_EVAL {
				t.Errorf("mode %v in an evaluation", p.GetMode())
			}
		}
		ids = append(ids, questions(prompts)...)
	}
	want := []string{"q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9"}
	if diff := cmp.Diff(want, ids); diff != "" || last != 3 {
		t.Errorf("evaluation of 10 problems by 4, last step %d (-want +got):\n%s", last, diff)
	}
	if n := f.groups(3, 10); n != 2 {
		t.Errorf("the last step has %d groups, want the 2 that are left", n)
	}
}

func TestProgress(t *testing.T) {
	at := func(sec int64) *timestamppb.Timestamp { return timestamppb.New(time.Unix(sec, 0)) }
	update := func(incarnation uint32, step uint64, sec int64) *sluicev1.PolicyUpdate {
		return &sluicev1.PolicyUpdate{RunId: "run", Incarnation: incarnation, Step: step, PublishedAt: at(sec)}
	}
	for _, c := range []struct {
		name    string
		updates []*sluicev1.PolicyUpdate
		want    progress
	}{
		{"the latest step counts", []*sluicev1.PolicyUpdate{update(0, 1, 1), update(0, 2, 2)}, progress{0, 2, time.Unix(2, 0).UTC()}},
		{"an answer read twice changes nothing", []*sluicev1.PolicyUpdate{update(0, 2, 2), update(0, 2, 9)}, progress{0, 2, time.Unix(2, 0).UTC()}},
		{"a rollback goes back", []*sluicev1.PolicyUpdate{update(0, 9, 9), update(1, 4, 10)}, progress{1, 4, time.Unix(10, 0).UTC()}},
		{"an answer of the earlier incarnation is old news", []*sluicev1.PolicyUpdate{update(1, 4, 10), update(0, 10, 11)}, progress{1, 4, time.Unix(10, 0).UTC()}},
	} {
		var p progress
		for _, u := range c.updates {
			p.observe(u)
		}
		if p != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, p, c.want)
		}
	}
	if !(progress{}).since().IsZero() {
		t.Error("before the first answer everything in the topic matters")
	}
}

func TestFlagsAreRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "--data"},
		{[]string{"--data", "f"}, "--run-id"},
		{[]string{"--data", "f", "--run-id", "a b"}, "--run-id"},
		{[]string{"--data", "f", "--run-id", "r", "--mode", "test"}, "--mode"},
		{[]string{"--data", "f", "--run-id", "r", "--mode", "eval", "--steps", "3"}, "--steps"},
		{[]string{"--data", "f", "--run-id", "r", "--problems-per-step", "0"}, "--problems-per-step"},
		{[]string{"--data", "f", "--run-id", "r", "--group-size", "0"}, "group_size is 0"},
		{[]string{"--data", "f", "--run-id", "r", "--max-turns", "0"}, "budgets.turns is 0"},
		{[]string{"--data", "f", "--run-id", "r", "--top-p", "0"}, "top_p is 0"},
		{[]string{"--data", "f", "--run-id", "r", "--execution-timeout", "1us"}, "--execution-timeout"},
		{[]string{"--data", "f", "--run-id", "r", "--tool-protocol", ""}, "tool_protocol"},
	} {
		f := newFeeder()
		flags := &process.Flags{}
		f.register(flags)
		if err := flags.Parse(c.args...); err != nil {
			t.Fatal(err)
		}
		if err := f.validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: error %v, want one that says %s", c.args, err, c.says)
		}
	}
}
