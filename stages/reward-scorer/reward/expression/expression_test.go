package expression

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

func TestExpressionsPay(t *testing.T) {
	j := reward.Judged{
		Input:       reward.Input{EndReason: sluicev1.EndReason_END_REASON_ANSWER, CodeCalls: 2, CodeErrors: 1, Executions: 3, FirstCallFailed: true, Turns: 3, Tokens: 900, Reference: "7", DataSource: "gsm8k", QuestionID: "q1", Truncated: true},
		ValidFormat: true, Answer: "7", Correct: true, Verdict: mathverify.Verdict{Outcome: mathverify.Equal},
	}
	for source, want := range map[string]float64{
		"1": 1,
		"correct && valid_format && decided && truncated ? 1.0 : -1.0":                            1,
		"1.0 - 0.1 * double(code_errors)":                                                         0.9,
		"code_calls + executions + turns":                                                         8,
		`end_reason == "answer" && data_source.startsWith("gsm") ? 2.5 : 0.0`:                     2.5,
		`first_call_failed && answer == reference && question_id == "q1" && tokens > 500 ? 4 : 0`: 4,
		"correct ? 1.0 :\n  valid_format ? -0.5 : -1.0":                                           1,
	} {
		logic, err := New(source, 0)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		got := logic.Pay(context.Background(), []reward.Judged{j})[0]
		if got.Err != nil || got.Reward != want {
			t.Errorf("%s: got %v, %v; want %v", source, got.Reward, got.Err, want)
		}
	}
}

func TestErrorsPointAtThePlace(t *testing.T) {
	for _, tc := range []struct {
		source       string
		line, column int
		says         string
	}{
		{"correct ? 1.0 : -1.0 + 0.1 * code_calls", 1, 28, "double(turns)"},
		{"correct ?\n 1.0 : corect", 2, 8, "undeclared reference"},
		{"1.0 +", 1, 6, "Syntax error"},
		{"correct", 1, 1, "yields bool"},
		{"  ", 1, 1, "empty"},
	} {
		_, err := New(tc.source, 0)
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, ErrExpression) {
			t.Errorf("%q: got %v, want an *Error", tc.source, err)
			continue
		}
		if p := e.Problems[0]; p.Line != tc.line || p.Column != tc.column || !strings.Contains(p.Message, tc.says) {
			t.Errorf("%q: got %+v, want line %d, column %d, %q", tc.source, p, tc.line, tc.column, tc.says)
		}
	}
}

func TestAnEvaluationThatFailsOrCostsTooMuchPaysNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		limit  uint64
	}{
		"division by zero": {"1 / code_calls", 0},
		"infinite":         {"1.0 / double(code_calls)", 0},
		"too dear":         {"[1,2,3,4,5,6,7,8].all(a, [1,2,3,4,5,6,7,8].all(b, a + b < 100)) ? 1 : 0", 50},
	} {
		logic, err := New(tc.source, tc.limit)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := logic.Pay(context.Background(), []reward.Judged{{}})[0]; !errors.Is(got.Err, ErrEvaluation) {
			t.Errorf("%s: got %+v, want ErrEvaluation", name, got)
		}
	}
}

func TestEveryVariableCanBeUsed(t *testing.T) {
	for _, v := range Variables() {
		logic, err := New("type("+v.Name+") == "+v.Type+" ? 1 : 0", 0)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if got := logic.Pay(context.Background(), []reward.Judged{{}})[0]; got.Reward != 1 || got.Err != nil {
			t.Errorf("%s is no %s: %+v", v.Name, v.Type, got)
		}
	}
}
