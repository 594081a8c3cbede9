package reward

import "github.com/sluice-rl/sluice/schemas/sluicev1"

// Input holds the plain facts of one finished trajectory.
type Input struct {
	// FinalText is the last turn's text; empty if there is none.
	FinalText string
	// Reference is the reference answer.
	Reference string
	// EndReason is how the trajectory ended; it must be said.
	EndReason sluicev1.EndReason

	CodeCalls       int  // calls whose observation was appended
	CodeErrors      int  // executions that did not succeed
	Executions      int  // runs of the interpreter
	FirstCallFailed bool // the first execution did not succeed
	Turns           int  // turns of the policy
	Tokens          int  // all tokens of the trajectory
	Truncated       bool // the last turn stopped at its length limit

	DataSource string // name of the data set the problem is from
	QuestionID string
	RunID      string
}

// Graded says whether a trajectory that ended so says something of the policy. Ends that
// this version does not know do not.
func Graded(end sluicev1.EndReason) bool {
	switch end {
	case sluicev1.EndReason_END_REASON_ANSWER, sluicev1.EndReason_END_REASON_INVALID_TOOL_CALL,
		sluicev1.EndReason_END_REASON_CODE_CALL_BUDGET, sluicev1.EndReason_END_REASON_TURN_BUDGET,
		sluicev1.EndReason_END_REASON_TOKEN_BUDGET, sluicev1.EndReason_END_REASON_OBSERVATION_DOES_NOT_FIT:
		return true
	}
	return false
}
