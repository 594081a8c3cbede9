package reward

import (
	"fmt"
	"strings"
)

// Input holds the plain facts of one finished trajectory.
type Input struct {
	// FinalText is the last turn's text; empty if there is none.
	FinalText string
	// Reference is the reference answer.
	Reference string
	// EndReason is how the trajectory ended, in any spelling ParseEndReason
	// takes.
	EndReason string

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

// EndReason is why a trajectory ended.
type EndReason string

const (
	Answer               EndReason = "answer"
	InvalidToolCall      EndReason = "invalid_tool_call"
	CodeCallBudget       EndReason = "code_call_budget"
	TurnBudget           EndReason = "turn_budget"
	TokenBudget          EndReason = "token_budget"
	ObservationDoesntFit EndReason = "observation_does_not_fit"
	ProtocolFault        EndReason = "protocol_fault"
	InfraError           EndReason = "infra_error"
)

var endReasons = map[EndReason]bool{ // value: graded
	Answer: true, InvalidToolCall: true, CodeCallBudget: true, TurnBudget: true,
	TokenBudget: true, ObservationDoesntFit: true, ProtocolFault: false, InfraError: false,
}

// Graded says whether a trajectory that ended so says something of the policy.
func (r EndReason) Graded() bool { return endReasons[r] }

// ParseEndReason takes the short name ("turn_budget") and the name of the
// protobuf enum ("END_REASON_TURN_BUDGET").
func ParseEndReason(s string) (EndReason, error) {
	r := EndReason(strings.TrimPrefix(strings.ToLower(s), "end_reason_"))
	if _, known := endReasons[r]; !known {
		return "", fmt.Errorf("%w: end reason %q is unknown; want answer, invalid_tool_call, code_call_budget, "+
			"turn_budget, token_budget, observation_does_not_fit, protocol_fault or infra_error", ErrInput, s)
	}
	return r, nil
}
