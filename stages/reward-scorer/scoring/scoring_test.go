package scoring

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

func TestTheFactsOfATrajectory(t *testing.T) {
	traj := &sluicev1.Trajectory{
		Prompt: &sluicev1.Prompt{
			Group:   &sluicev1.GroupPlace{RunId: "run", Step: 1},
			Problem: &sluicev1.Problem{QuestionId: "q", Question: "3+4?", Answer: "7", DataSource: "gsm8k"},
		},
		EndReason: sluicev1.EndReason_END_REASON_ANSWER, FinalText: "x",
	}
	traj.PromptTokens = tokens.IDs(1, 2, 3)
	failed := &sluicev1.Execution{Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_TIMEOUT}
	ok := &sluicev1.Execution{Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK}
	traj.Turns = []*sluicev1.Turn{
		{Tokens: tokens.IDs(1, 2), GlueTokens: tokens.IDs(3), Execution: failed, Truncated: true},
		{Tokens: tokens.IDs(1), GlueTokens: tokens.IDs(3, 4), Execution: ok},
		{Tokens: tokens.IDs(1, 5)},
	}
	traj.CodeCalls, traj.Executions = 2, 2
	want := reward.Input{
		FinalText: "x", Reference: "7", EndReason: sluicev1.EndReason_END_REASON_ANSWER, CodeCalls: 2, CodeErrors: 1, Executions: 2,
		FirstCallFailed: true, Turns: 3, Tokens: 11, DataSource: "gsm8k", QuestionID: "q", RunID: "run",
	}
	if diff := cmp.Diff(want, InputOf(traj)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTextsOfAScoreAreBounded(t *testing.T) {
	if got := clip("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("%q", got)
	}
	if got := clip(strings.Repeat("é", 5000)); len(got) > maxText+10 || !strings.HasSuffix(got, " [...]") {
		t.Errorf("%d bytes", len(got))
	}
}
