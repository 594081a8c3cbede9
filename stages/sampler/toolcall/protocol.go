package toolcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// ErrUnknownProtocol occurs when a name stands for no protocol of this build.
var ErrUnknownProtocol = errors.New("unknown tool protocol")

// Protocol is one way in which a policy writes a call of the code interpreter.
type Protocol interface {
	// Name is what prompts and flags call it.
	Name() string
	// Tools is the tool's definition, a JSON list, for the chat template.
	Tools() json.RawMessage
	// Parse reads the text of one turn. Any text has an outcome.
	Parse(text string) Result
}

// Result is the outcome of one turn.
type Result struct {
	// Kind is tool, answer or invalid.
	Kind sluicev1.TurnKind
	// Content is the prose before the call of a tool turn, else the whole text;
	// stripped.
	Content string
	// Code is the program of a tool turn, stripped; never empty there.
	Code string
	// Reason says why the turn is invalid; empty otherwise.
	Reason Reason
}

// Reason is the class of a malformed call, for counting per policy version.
type Reason string

// The reasons. Each names the first thing that is wrong.
const (
	// UnclosedCall: a call was begun and the text ends within it.
	UnclosedCall Reason = "unclosed_call"
	// NotAFunction: the call holds something other than <function=...>, such as a
	// JSON object.
	NotAFunction Reason = "not_a_function"
	// UnknownFunction: a function that there is not.
	UnknownFunction Reason = "unknown_function"
	// UnknownParameter: the function's first parameter is not code.
	UnknownParameter Reason = "unknown_parameter"
	// Malformed: tags missing or out of order.
	Malformed Reason = "malformed"
	// TwoParameters: more than one parameter.
	TwoParameters Reason = "two_parameters"
	// EmptyCode: a complete call of nothing.
	EmptyCode Reason = "empty_code"
	// TwoCalls: another call after a complete one.
	TwoCalls Reason = "two_calls"
	// TextAfterCall: anything else but white space after a complete call.
	TextAfterCall Reason = "text_after_call"
)

// ByName returns the protocol of that name.
func ByName(name string) (Protocol, error) {
	switch name {
	case QwenName:
		return Qwen{}, nil
	case HermesName:
		return Hermes{}, nil
	}
	return nil, fmt.Errorf("%w %q: this build speaks %q and %q", ErrUnknownProtocol, name, QwenName, HermesName)
}

func invalid(text string, r Reason) Result {
	return Result{Kind: sluicev1.TurnKind_TURN_KIND_INVALID, Content: text, Reason: r}
}

// called is the outcome of a text with a complete call: what stands before it, its code and
// what stands after it.
func called(text, before, code, after string) Result {
	code, after = Strip(code), skipSpace(after)
	switch {
	case code == "":
		return invalid(text, EmptyCode)
	case strings.Contains(after, openCall):
		return invalid(text, TwoCalls)
	case after != "":
		return invalid(text, TextAfterCall)
	}
	return Result{Kind: sluicev1.TurnKind_TURN_KIND_TOOL, Content: Strip(before), Code: code}
}

// Strip cuts the white space off both ends of a text, by the definition that the
// trainers' language has: Unicode's, and the four ASCII separators.
func Strip(s string) string { return strings.TrimFunc(s, isSpace) }

func skipSpace(s string) string { return strings.TrimLeftFunc(s, isSpace) }

func isSpace(r rune) bool { return unicode.IsSpace(r) || (r >= 0x1c && r <= 0x1f) }
