package expression

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

// DefaultCostLimit is far above what a sensible reward needs.
const DefaultCostLimit = 20_000

var (
	// ErrExpression is wrapped when an expression does not compile or does not
	// yield a number. Problems says where.
	ErrExpression = errors.New("expression: cannot be used")
	// ErrEvaluation is wrapped when an evaluation fails or costs too much.
	ErrEvaluation = errors.New("expression: evaluation failed")
)

// Variable is one name that an expression can use.
type Variable struct {
	Name, Type, Meaning string
	kind                *cel.Type
	value               func(reward.Judged) any
}

// Variables lists them all, in the order of the documentation.
func Variables() []Variable {
	v := func(name, meaning string, kind *cel.Type, value func(reward.Judged) any) Variable {
		return Variable{Name: name, Type: kind.String(), Meaning: meaning, kind: kind, value: value}
	}
	return []Variable{
		v("correct", "the answer is equivalent to the reference", cel.BoolType, func(j reward.Judged) any { return j.Correct }),
		v("valid_format", "a readable box was found", cel.BoolType, func(j reward.Judged) any { return j.ValidFormat }),
		v("decided", "the comparison came to equal or different", cel.BoolType, func(j reward.Judged) any { return j.Verdict.Outcome != mathverify.Undecided }),
		v("code_calls", "calls whose observation was appended", cel.IntType, func(j reward.Judged) any { return int64(j.CodeCalls) }),
		v("code_errors", "executions that did not succeed", cel.IntType, func(j reward.Judged) any { return int64(j.CodeErrors) }),
		v("executions", "runs of the interpreter", cel.IntType, func(j reward.Judged) any { return int64(j.Executions) }),
		v("first_call_failed", "the first execution did not succeed", cel.BoolType, func(j reward.Judged) any { return j.FirstCallFailed }),
		v("turns", "turns of the policy", cel.IntType, func(j reward.Judged) any { return int64(j.Turns) }),
		v("tokens", "all tokens of the trajectory", cel.IntType, func(j reward.Judged) any { return int64(j.Tokens) }),
		v("truncated", "the last turn stopped at its length limit", cel.BoolType, func(j reward.Judged) any { return j.Truncated }),
		v("end_reason", "why the trajectory ended, such as \"answer\"", cel.StringType, func(j reward.Judged) any { return schemas.EnumText(j.EndReason) }),
		v("answer", "the content of the box; empty without one", cel.StringType, func(j reward.Judged) any { return j.Answer }),
		v("reference", "the reference answer", cel.StringType, func(j reward.Judged) any { return j.Reference }),
		v("data_source", "the data set that the problem is from", cel.StringType, func(j reward.Judged) any { return j.DataSource }),
		v("question_id", "the problem", cel.StringType, func(j reward.Judged) any { return j.QuestionID }),
	}
}

// Problem is one fault of an expression. Line and Column count from 1.
type Problem struct {
	Line, Column int
	Message      string
}

// Error lists what is wrong with an expression.
type Error struct{ Problems []Problem }

// Error implements error.
func (e *Error) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
	}
	return ErrExpression.Error() + ": " + strings.Join(parts, "; ")
}

// Unwrap makes errors.Is find ErrExpression.
func (e *Error) Unwrap() error { return ErrExpression }

// New compiles an expression. costLimit 0 means DefaultCostLimit. The error is
// an *Error if the expression is at fault.
func New(source string, costLimit uint64) (reward.Logic, error) {
	if costLimit == 0 {
		costLimit = DefaultCostLimit
	}
	vars := Variables()
	options := []cel.EnvOption{}
	for _, v := range vars {
		options = append(options, cel.Variable(v.Name, v.kind))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("expression: environment: %w", err)
	}
	if strings.TrimSpace(source) == "" {
		return nil, &Error{[]Problem{{1, 1, "the expression is empty; want a number, such as correct ? 1.0 : -1.0"}}}
	}
	ast, issues := env.Compile(source)
	if issues != nil && issues.Err() != nil {
		e := &Error{}
		for _, i := range issues.Errors() {
			e.Problems = append(e.Problems, Problem{i.Location.Line(), i.Location.Column() + 1, hint(i.Message)})
		}
		return nil, e
	}
	if t := ast.OutputType(); !t.IsExactType(cel.DoubleType) && !t.IsExactType(cel.IntType) {
		return nil, &Error{[]Problem{{1, 1, "the expression yields " + t.String() + "; want a number (double or int)"}}}
	}
	program, err := env.Program(ast, cel.CostLimit(costLimit))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpression, err)
	}
	return reward.LogicFunc(func(j reward.Judged) (float64, error) { return evaluate(program, vars, j) }), nil
}

// hint says what to do about the fault that people meet first.
func hint(message string) string {
	if strings.Contains(message, "no matching overload") && strings.Contains(message, "double") && strings.Contains(message, "int") {
		return message + " (CEL does not mix int and double: write double(turns), or 2.0 for 2)"
	}
	return message
}

func evaluate(program cel.Program, vars []Variable, j reward.Judged) (float64, error) {
	bindings := make(map[string]any, len(vars))
	for _, v := range vars {
		bindings[v.Name] = v.value(j)
	}
	out, _, err := program.Eval(bindings)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrEvaluation, err)
	}
	switch n := out.(type) {
	case types.Double:
		if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
		return 0, fmt.Errorf("%w: the result is %v", ErrEvaluation, float64(n))
	case types.Int:
		return float64(n), nil
	}
	return 0, fmt.Errorf("%w: the result is no number", ErrEvaluation)
}
