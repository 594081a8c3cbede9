package scoring

import (
	"cmp"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

// Ungraded says why a trajectory's end says nothing of the policy, "" if it does.
func Ungraded(t *sluicev1.Trajectory) string {
	if reward.Graded(t.GetEndReason()) {
		return ""
	}
	why := cmp.Or(schemas.EnumText(t.GetEndReason()), "no end reason")
	if t.GetEndDetail() != "" {
		why += ": " + t.GetEndDetail()
	}
	return clip(why)
}

// InputOf states the facts of a trajectory that a reward may use.
func InputOf(t *sluicev1.Trajectory) reward.Input {
	in := reward.Input{
		FinalText:  t.GetFinalText(),
		Reference:  t.GetPrompt().GetProblem().GetAnswer(),
		EndReason:  t.GetEndReason(),
		CodeCalls:  int(t.GetCodeCalls()),
		Executions: int(t.GetExecutions()),
		Turns:      len(t.GetTurns()),
		Tokens:     tokens.InTrajectory(t),
		DataSource: t.GetPrompt().GetProblem().GetDataSource(),
		QuestionID: t.GetPrompt().GetProblem().GetQuestionId(),
		RunID:      t.GetPrompt().GetGroup().GetRunId(),
	}
	first := true
	for _, turn := range t.GetTurns() {
		in.Truncated = turn.GetTruncated()
		if turn.GetExecution() == nil {
			continue
		}
		failed := turn.GetExecution().GetOutcome() != sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK
		if failed {
			in.CodeErrors++
		}
		if first {
			in.FirstCallFailed, first = failed, false
		}
	}
	return in
}
