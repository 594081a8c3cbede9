package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/codec"
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
	first, err := f.stepPrompts(src, 0, 1, now)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := f.stepPrompts(src, 0, 1, now)
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
		prompts, err := f.stepPrompts(src, 0, step, time.Now())
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

func TestWhatIsFedIsKnownByIncarnationAndStep(t *testing.T) {
	for _, c := range []struct {
		at          fed
		incarnation uint32
		step        uint64
		want        bool
	}{
		{fed{}, 0, 1, false}, {fed{0, 3}, 0, 3, true}, {fed{0, 3}, 0, 2, true}, {fed{0, 3}, 0, 4, false},
		{fed{0, 9}, 1, 4, false}, {fed{1, 4}, 1, 4, true}, {fed{1, 4}, 0, 9, true},
	} {
		if got := c.at.has(c.incarnation, c.step); got != c.want {
			t.Errorf("fed up to %+v has step %d of incarnation %d: %t, want %t", c.at, c.step, c.incarnation, got, c.want)
		}
	}
}

// A run is gone on with under the settings that it had, and no others.
func TestARunThatDiffersIsRefusedWithTheDifferences(t *testing.T) {
	f, src := configured(t, 40)
	recorded := f.identity("abc", src.file.Len())
	if err := same(recorded, f.identity("abc", src.file.Len())); err != nil {
		t.Errorf("the same run: %v", err)
	}
	for _, c := range []struct {
		args []string
		sha  string
		says string
	}{
		{[]string{"--seed", "7"}, "abc", "seed: was 42, is 7"},
		{[]string{"--problems-per-step", "4"}, "abc", "problems_per_step: was 16, is 4"},
		{[]string{"--group-size", "4"}, "abc", "group_size: was 8, is 4"},
		{[]string{"--mode", "eval"}, "abc", "mode: was MODE_TRAIN, is MODE_EVAL"},
		{[]string{"--max-turns", "3"}, "abc", "budgets.turns: was 6, is 3"},
		{[]string{"--temperature", "0.5"}, "abc", "sampling.temperature: was 1, is 0.5"},
		{[]string{"--text-only"}, "abc", "tool_enabled: was true, is false"},
		{[]string{"--tool-protocol", "hermes"}, "abc", `tool_protocol: was "qwen", is "hermes"`},
		{[]string{"--reward", "outcome"}, "abc", `reward: was "", is "outcome"`},
		{nil, "def", `data_sha256: was "abc", is "def"`},
	} {
		other, _ := configured(t, 40, c.args...)
		if err := same(recorded, other.identity(c.sha, 40)); !errors.Is(err, process.ErrUsage) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q with data %s: %v, want a usage error that says %s", c.args, c.sha, err, c.says)
		}
	}
	longer, _ := configured(t, 40, "--steps", "9")
	if err := same(recorded, longer.identity("abc", 40)); err != nil {
		t.Errorf("a run made longer: %v", err)
	}
}

func TestAStepHasNoProblemTwice(t *testing.T) {
	f, src := configured(t, 10, "--problems-per-step", "11")
	if err := f.checkFile(src.file.Len()); !errors.Is(err, process.ErrUsage) || !strings.Contains(err.Error(), "10 problems") {
		t.Errorf("11 problems a step of 10: %v, want a usage error with the count", err)
	}
	f, src = configured(t, 10, "--problems-per-step", "11", "--mode", "eval")
	if err := f.checkFile(src.file.Len()); err != nil {
		t.Errorf("an evaluation in one step: %v", err)
	}
}

func TestEvalFeedsEveryProblemOnceInOrder(t *testing.T) {
	f, src := configured(t, 10, "--mode", "eval", "--problems-per-step", "4")
	var ids []string
	last := f.lastStep(src.file.Len())
	for step := uint64(1); step <= last; step++ {
		prompts, err := f.stepPrompts(src, 0, step, time.Now())
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
	update := func(incarnation uint32, step uint64) *sluicev1.PolicyUpdate {
		return &sluicev1.PolicyUpdate{RunId: "run", Incarnation: incarnation, Step: step}
	}
	for _, c := range []struct {
		name    string
		updates []*sluicev1.PolicyUpdate
		want    progress
	}{
		{"the latest step counts", []*sluicev1.PolicyUpdate{update(0, 1), update(0, 2)}, progress{0, 2}},
		{"an answer read twice changes nothing", []*sluicev1.PolicyUpdate{update(0, 2), update(0, 2)}, progress{0, 2}},
		{"a rollback goes back", []*sluicev1.PolicyUpdate{update(0, 9), update(1, 4)}, progress{1, 4}},
		{"an answer of the earlier incarnation is old news", []*sluicev1.PolicyUpdate{update(1, 4), update(0, 10)}, progress{1, 4}},
	} {
		var p progress
		for _, u := range c.updates {
			p.observe(u)
		}
		if p != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, p, c.want)
		}
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
		{[]string{"--data", "f", "--run-id", "r", "--group-size", "1"}, "--group-size 1"},
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
