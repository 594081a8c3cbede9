package up

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/topology/sluice/depth"
)

// corrected is a trajectory whose first program failed and whose second was right.
func corrected(hostile string) *sluicev1.Scored {
	return &sluicev1.Scored{
		Graded: true, Correct: true, Reward: 1, Answer: "42" + hostile,
		Trajectory: &sluicev1.Trajectory{
			Prompt: &sluicev1.Prompt{
				Group:   &sluicev1.GroupPlace{RunId: "r", Step: 3, Slot: 1},
				Problem: &sluicev1.Problem{QuestionId: "q", Question: "What is\n6 x 7?" + hostile, Answer: "42"},
			},
			SampleIndex: 2, Copy: 9, PromptTokens: tokens.IDs(1, 2, 3), EndReason: sluicev1.EndReason_END_REASON_ANSWER,
			Turns: []*sluicev1.Turn{
				{
					Tokens: tokens.IDs(10, 11), Versions: tokens.Versions(4, 5), Text: "print(x)" + hostile, Kind: sluicev1.TurnKind_TURN_KIND_TOOL,
					Execution:   &sluicev1.Execution{Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_ERROR, Exception: "NameError" + hostile, WallMs: 12},
					Observation: "NameError: x" + hostile, GlueTokens: tokens.IDs(20, 21, 22),
				},
				{Tokens: tokens.IDs(30), Versions: tokens.Versions(5), Text: "the answer", Kind: sluicev1.TurnKind_TURN_KIND_ANSWER, Truncated: true},
			},
		},
	}
}

func TestATrajectoryShowsWhatIsTrainedOn(t *testing.T) {
	decode := func(_ context.Context, tokens []uint32) (string, error) {
		return map[uint32]string{10: "<tool_call>print(x)</tool_call>", 20: "<tool_response>\nNameError: x\n</tool_response>", 30: "\\boxed{42}"}[tokens[0]], nil
	}
	var b strings.Builder
	printTrajectory(t.Context(), &b, corrected(""), decode, false)
	want := `One trajectory: r.0/3/1/2, question q
  What is
  6 x 7?
  reference answer: 42
  ⟦marked⟧ tokens are trained on (loss mask 1); the rest was given to the policy.

prompt, 3 tokens, not trained on

turn 1: a code call, 2 tokens sampled by policy version 4 to 5
⟦<tool_call>print(x)</tool_call>⟧

  ran 12 ms in a sandbox: error (NameError)
observation and the template around it, 3 tokens, not trained on
<tool_response>
NameError: x
</tool_response>

turn 2: an answer, 1 tokens sampled by policy version 5, cut by its length
⟦\boxed{42}⟧

ended by answer; answer "42": correct; reward +1
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestHostileTrajectoriesCannotReachTheTerminal(t *testing.T) {
	hostile := "\x1b[2J\a\u202e\xff"
	failing := func(context.Context, []uint32) (string, error) { return "", errors.New("no such route") }
	for _, colours := range []bool{false, true} {
		var b strings.Builder
		printTrajectory(t.Context(), &b, corrected(hostile), failing, colours)
		text := strings.NewReplacer("\x1b[1;32m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(b.String())
		if strings.ContainsAny(text, "\x1b\a\u202e") || strings.Contains(text, "\xff") {
			t.Errorf("colours %v: hostile text was printed:\n%q", colours, text)
		}
		if !strings.Contains(text, `\x1b[2J\x07\u202e\xff`) {
			t.Errorf("colours %v: it should be shown escaped:\n%s", colours, text)
		}
	}
}

func TestTheTrajectoryThatShowsMostIsChosen(t *testing.T) {
	m := corrected("")
	if got := illustrates(m); got != 2 {
		t.Errorf("failed, then answered rightly: %d, want 2", got)
	}
	m.Trajectory.Turns[1].Execution = &sluicev1.Execution{Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK}
	if got := illustrates(m); got != 5 {
		t.Errorf("failed, corrected, right: %d, want 5", got)
	}
	m.Trajectory.Turns = nil
	if got := illustrates(m); got != 0 {
		t.Errorf("without a program: %d, want 0", got)
	}
}

// The fields of summary.json are read by others.
func TestSummaryFields(t *testing.T) {
	b, err := json.Marshal(Summary{Steps: []StepSummary{{Step: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	var top map[string]any
	if err := json.Unmarshal(b, &top); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"code_calls", "dead_letters", "duplicates_dropped", "seconds", "steps", "trajectories"}, slices.Sorted(maps.Keys(top))); d != "" {
		t.Errorf("summary.json (-want +got)\n%s", d)
	}
	step := top["steps"].([]any)[0].(map[string]any)
	want := strings.Fields(`code_call_rate code_calls_mean correct_rate degenerate_group_rate exec_error_rate exec_latency_ms exec_ok_rate
		exec_timeout_rate loss_tokens padded_tokens reward_mean self_correction_rate step trajectory_tokens_mean turns_mean update_skipped
		valid_box_rate valid_tool_call_rate`)
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(step))); d != "" {
		t.Errorf("a step (-want +got)\n%s", d)
	}
	if step["self_correction_rate"] != nil {
		t.Errorf("a rate without a denominator is %v, want null", step["self_correction_rate"])
	}
}

func TestProgressCountsOnlyItsOwnRun(t *testing.T) {
	var p progress
	p.closed("r", &sluicev1.GroupClosed{Group: &sluicev1.GroupPlace{RunId: "r", Step: 1}, Graded: 8, RewardMean: 0.5})
	p.closed("r", &sluicev1.GroupClosed{Group: &sluicev1.GroupPlace{RunId: "r", Step: 1, Slot: 1}, Graded: 0})
	p.closed("r", &sluicev1.GroupClosed{Group: &sluicev1.GroupPlace{RunId: "other", Step: 1}, Graded: 8, RewardMean: -1})
	if got := p.steps[1].mean(); got != 0.5 {
		t.Errorf("mean %v, want 0.5: over graded members of this run", got)
	}
	p.update("r", &sluicev1.PolicyUpdate{RunId: "r", Step: 7, PolicyVersion: 6})
	p.update("r", &sluicev1.PolicyUpdate{RunId: "other", Step: 20})
	if p.answered != 7 {
		t.Errorf("answered %d, want 7", p.answered)
	}
	// A trainer that rolled back.
	p.update("r", &sluicev1.PolicyUpdate{RunId: "r", Incarnation: 1, Step: 3})
	p.update("r", &sluicev1.PolicyUpdate{RunId: "r", Step: 8})
	if p.answered != 3 {
		t.Errorf("answered %d after a roll-back to step 3, want 3", p.answered)
	}
}

func TestPlainViewSaysEachStepOnce(t *testing.T) {
	var out strings.Builder
	s := &system{run: run{RunID: "r", Steps: 2}, screen: newScreen(&out, true)}
	p := &progress{}
	v := view{s: s, p: p, saidDepth: time.Now()}
	v.show()
	p.closed("r", &sluicev1.GroupClosed{Group: &sluicev1.GroupPlace{RunId: "r", Step: 1}, Graded: 8, RewardMean: -0.25})
	p.update("r", &sluicev1.PolicyUpdate{RunId: "r", Step: 1})
	v.show()
	v.show()
	want := "step 1 of 2: reward mean -0.250 over 8 trajectories; 0 trajectories, 0 code calls so far\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestDepthsShowTheSlowestReaderOfATopic(t *testing.T) {
	got := strings.Join(depths(depth.Snapshot{Work: []depth.Work{
		{Stage: grouper, Topic: "prompts", Depth: 0}, {Stage: sampler, Topic: "prompts", Depth: 3},
		{Stage: executor, Topic: "code-calls", Depth: 150, UpperBound: true},
		{Stage: metrics, Topic: "scored", Depth: 70}, {Stage: grouper, Topic: "scored", Depth: 2},
	}}), ", ")
	want := "prompts 3, code-calls ≤150, code-results 0, trajectories 0, scored 2, grouped 0, for metrics 70"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
