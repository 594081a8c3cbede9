package toolcall

import (
	"encoding/json"
	"strings"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// QwenName is the name of Qwen's protocol.
const QwenName = "qwen"

// The tags of a call, in the order in which they must come. White space may stand
// between any two and around the code.
const (
	openCall       = "<tool_call>"
	openFunction   = "<function="
	functionName   = "code_interpreter>"
	openParameter  = "<parameter="
	parameterName  = "code>"
	closeParameter = "</parameter>"
	closeFunction  = "</function>"
	closeCall      = "</tool_call>"
)

// Qwen is the protocol of the Qwen3-Coder and Qwen3.5 chat templates:
//
//	<tool_call>
//	<function=code_interpreter>
//	<parameter=code>
//	print(6 * 7)
//	</parameter>
//	</function>
//	</tool_call>
type Qwen struct{}

// Name is "qwen".
func (Qwen) Name() string { return QwenName }

// Tools defines code_interpreter. The order of its fields is the order in which the
// chat template prints them: changing it changes every prompt.
func (Qwen) Tools() json.RawMessage {
	return json.RawMessage(`[{"type":"function","function":{"name":"code_interpreter",` +
		`"description":"Run a Python program in a fresh sandbox and return what it printed, or its traceback.",` +
		`"parameters":{"type":"object","properties":{"code":{"type":"string",` +
		`"description":"The whole Python program. Print every value you want to see."}},"required":["code"]}}}]`)
}

// Parse reads one turn. The first <tool_call> begins the call; its code reaches to the
// first </parameter> that is followed by the other two closing tags, so that a program
// may print tags.
func (Qwen) Parse(text string) Result {
	text = Strip(text)
	before, call, begun := strings.Cut(text, openCall)
	if !begun {
		return Result{Kind: sluicev1.TurnKind_TURN_KIND_ANSWER, Content: text}
	}
	rest, reason := openingTags(call)
	if reason != "" {
		return invalid(text, reason)
	}
	code, after, closed := cutCode(rest)
	if !closed {
		return invalid(text, unfinished(rest))
	}
	if r := joined(code); r != "" {
		return invalid(text, r)
	}
	return called(text, before, code, after)
}

// openingTags reads what must stand between <tool_call> and the code.
func openingTags(s string) (rest string, r Reason) {
	for _, tag := range []struct {
		open, name      string
		missing, unlike Reason
	}{
		{openFunction, functionName, NotAFunction, UnknownFunction},
		{openParameter, parameterName, Malformed, UnknownParameter},
	} {
		s = skipSpace(s)
		if !strings.HasPrefix(s, tag.open) {
			if strings.HasPrefix(tag.open, s) {
				return "", UnclosedCall
			}
			return "", tag.missing
		}
		s = s[len(tag.open):]
		if !strings.HasPrefix(s, tag.name) {
			if strings.HasPrefix(tag.name, s) {
				return "", UnclosedCall
			}
			return "", tag.unlike
		}
		s = s[len(tag.name):]
	}
	return s, ""
}

// cutCode splits what follows <parameter=code> at the closing tags.
func cutCode(s string) (code, after string, ok bool) {
	for from := 0; ; {
		i := strings.Index(s[from:], closeParameter)
		if i < 0 {
			return "", "", false
		}
		end := from + i
		from = end + len(closeParameter)
		rest, ok := strings.CutPrefix(skipSpace(s[from:]), closeFunction)
		if !ok {
			continue
		}
		if rest, ok = strings.CutPrefix(skipSpace(rest), closeCall); ok {
			return s[:end], rest, true
		}
	}
}

// unfinished tells a call that the text ends within from one whose tags are wrong.
func unfinished(s string) Reason {
	if strings.Contains(s, closeCall) {
		return Malformed
	}
	return UnclosedCall
}

// joined refuses code that spans a second parameter or function: taken as one program
// it would be one that nobody wrote.
func joined(code string) Reason {
	for {
		_, rest, found := strings.Cut(code, closeParameter)
		if !found {
			return ""
		}
		next := skipSpace(rest)
		if strings.HasPrefix(next, openParameter) {
			return TwoParameters
		}
		if next, ok := strings.CutPrefix(next, closeFunction); ok && strings.HasPrefix(skipSpace(next), openFunction) {
			return TwoCalls
		}
		code = rest
	}
}
