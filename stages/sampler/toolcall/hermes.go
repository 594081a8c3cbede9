package toolcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// HermesName is the name of the Hermes protocol.
const HermesName = "hermes"

// Hermes is the protocol of the Hermes, Qwen2.5 and Qwen3 chat templates, a JSON object
// between tags:
//
//	<tool_call>
//	{"name": "code_interpreter", "arguments": {"code": "print(6 * 7)"}}
//	</tool_call>
//
// The object has the two members name and arguments, in any order, and arguments has
// code, a string, and nothing else.
type Hermes struct{}

// Name is "hermes".
func (Hermes) Name() string { return HermesName }

// Tools defines code_interpreter, as Qwen's protocol does.
func (Hermes) Tools() json.RawMessage { return Qwen{}.Tools() }

// Parse reads one turn. The first <tool_call> begins the call, and the JSON value that
// follows ends it: a program may hold the tags.
func (Hermes) Parse(text string) Result {
	text = Strip(text)
	before, call, begun := strings.Cut(text, openCall)
	if !begun {
		return Result{Kind: sluicev1.TurnKind_TURN_KIND_ANSWER, Content: text}
	}
	object, rest, reason := cutObject(skipSpace(call))
	if reason != "" {
		return invalid(text, reason)
	}
	after, closed := strings.CutPrefix(skipSpace(rest), closeCall)
	if !closed {
		return invalid(text, unfinished(rest))
	}
	code, reason := codeOf(object)
	if reason != "" {
		return invalid(text, reason)
	}
	return called(text, before, code, after)
}

// cutObject splits what follows <tool_call> after its JSON object.
func cutObject(s string) (object []byte, rest string, r Reason) {
	if s == "" {
		return nil, "", UnclosedCall
	}
	if s[0] != '{' {
		if strings.HasPrefix(closeCall, s) {
			return nil, "", UnclosedCall
		}
		return nil, "", NotAFunction
	}
	dec := json.NewDecoder(strings.NewReader(s))
	var raw json.RawMessage
	switch err := dec.Decode(&raw); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, "", unfinished(s)
	case err != nil:
		return nil, "", Malformed
	}
	return raw, s[dec.InputOffset():], ""
}

// codeOf reads the call's object.
func codeOf(object []byte) (code string, r Reason) {
	// What encoding/json would put U+FFFD for is no program that the policy wrote.
	if !utf8.Valid(object) || loneSurrogate(object) {
		return "", Malformed
	}
	members, ok := membersOf(object)
	if !ok {
		return "", Malformed
	}
	var name string
	if raw, ok := members["name"]; !ok || json.Unmarshal(raw, &name) != nil || raw[0] != '"' {
		return "", Malformed
	}
	if name+">" != functionName {
		return "", UnknownFunction
	}
	arguments, ok := members["arguments"]
	if !ok || len(members) != 2 {
		return "", Malformed
	}
	given, ok := membersOf(arguments)
	if !ok {
		return "", Malformed
	}
	raw, ok := given["code"]
	switch {
	case !ok && len(given) == 0:
		return "", EmptyCode
	case !ok:
		return "", UnknownParameter
	case len(given) > 1:
		return "", TwoParameters
	case raw[0] != '"' || json.Unmarshal(raw, &code) != nil:
		return "", Malformed
	}
	return code, ""
}

// membersOf reads an object's members. One that is there twice has no meaning.
func membersOf(object []byte) (map[string]json.RawMessage, bool) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, false
		}
		name := key.(string)
		if _, twice := members[name]; twice {
			return nil, false
		}
		members[name] = value
	}
	return members, true
}

// loneSurrogate says whether JSON text has an escaped half of a character without the
// other. The text is valid JSON.
func loneSurrogate(text []byte) bool {
	half := func(i int) (low, ok bool) {
		if i+6 > len(text) || text[i] != '\\' || text[i+1] != 'u' || text[i+2]|0x20 != 'd' {
			return false, false
		}
		switch text[i+3] | 0x20 {
		case '8', '9', 'a', 'b':
			return false, true
		case 'c', 'd', 'e', 'f':
			return true, true
		}
		return false, false
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		low, surrogate := half(i)
		switch {
		case !surrogate:
			i++
			continue
		case low:
			return true
		}
		if low, ok := half(i + 6); !ok || !low {
			return true
		}
		i += 11
	}
	return false
}
