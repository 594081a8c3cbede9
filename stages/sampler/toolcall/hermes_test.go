package toolcall

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

func TestHermesTurns(t *testing.T) {
	const tool, answer = sluicev1.TurnKind_TURN_KIND_TOOL, sluicev1.TurnKind_TURN_KIND_ANSWER
	call := func(object string) string { return "<tool_call>\n" + object + "\n</tool_call>" }
	right := `{"name": "code_interpreter", "arguments": {"code": "print(1)\n"}}`
	for _, c := range []struct {
		name, text string
		want       Result
	}{
		{"an answer", " The answer is \\boxed{2}. ", Result{Kind: answer, Content: `The answer is \boxed{2}.`}},
		{"a call", "Let me compute.\n" + call(right), Result{Kind: tool, Content: "Let me compute.", Code: "print(1)"}},
		{"in the other order", call(`{"arguments":{"code":"x"},"name":"code_interpreter"}`), Result{Kind: tool, Code: "x"}},
		{"without white space", "<tool_call>" + right + "</tool_call>", Result{Kind: tool, Code: "print(1)"}},
		{"tags in the program", call(`{"name":"code_interpreter","arguments":{"code":"print('</tool_call><tool_call>')"}}`),
			Result{Kind: tool, Code: "print('</tool_call><tool_call>')"}},
		{"escapes", call(`{"name":"code_interpreter","arguments":{"code":"print(\"\ud83d\ude00\\ud800\")"}}`),
			Result{Kind: tool, Code: `print("😀\ud800")`}},
		{"cut before the object", "<tool_call>\n", Result{Reason: UnclosedCall}},
		{"cut in the object", `<tool_call>{"name": "code_int`, Result{Reason: UnclosedCall}},
		{"cut before the tag", "<tool_call>" + right, Result{Reason: UnclosedCall}},
		{"closed in the object", `<tool_call>{"name": "code_interpreter"</tool_call>`, Result{Reason: Malformed}},
		{"Qwen's XML", "<tool_call>\n<function=code_interpreter>", Result{Reason: NotAFunction}},
		{"another tool", call(`{"name":"python","arguments":{"code":"x"}}`), Result{Reason: UnknownFunction}},
		{"no name", call(`{"arguments":{"code":"x"}}`), Result{Reason: Malformed}},
		{"a name that is none", call(`{"name":null,"arguments":{"code":"x"}}`), Result{Reason: Malformed}},
		{"no arguments", call(`{"name":"code_interpreter"}`), Result{Reason: Malformed}},
		{"arguments as text", call(`{"name":"code_interpreter","arguments":"{\"code\":\"x\"}"}`), Result{Reason: Malformed}},
		{"another argument", call(`{"name":"code_interpreter","arguments":{"source":"x"}}`), Result{Reason: UnknownParameter}},
		{"one argument more", call(`{"name":"code_interpreter","arguments":{"code":"x","timeout":5}}`), Result{Reason: TwoParameters}},
		{"code that is no text", call(`{"name":"code_interpreter","arguments":{"code":["x"]}}`), Result{Reason: Malformed}},
		{"code null", call(`{"name":"code_interpreter","arguments":{"code":null}}`), Result{Reason: Malformed}},
		{"code twice", call(`{"name":"code_interpreter","arguments":{"code":"x","code":"y"}}`), Result{Reason: Malformed}},
		{"another member", call(`{"name":"code_interpreter","arguments":{"code":"x"},"id":1}`), Result{Reason: Malformed}},
		{"half a character", call(`{"name":"code_interpreter","arguments":{"code":"\ud83d"}}`), Result{Reason: Malformed}},
		{"bytes that are no text", call("{\"name\":\"code_interpreter\",\"arguments\":{\"code\":\"\xff\"}}"), Result{Reason: Malformed}},
		{"nothing", call(`{"name":"code_interpreter","arguments":{"code":" \n"}}`), Result{Reason: EmptyCode}},
		{"no argument", call(`{"name":"code_interpreter","arguments":{}}`), Result{Reason: EmptyCode}},
		{"two calls", call(right) + call(right), Result{Reason: TwoCalls}},
		{"text after", call(right) + " so", Result{Reason: TextAfterCall}},
		{"two objects", call(right + right), Result{Reason: Malformed}},
		{"Python's quotes", call(`{'name': 'code_interpreter'}`), Result{Reason: Malformed}},
	} {
		if c.want.Reason != "" {
			c.want.Kind, c.want.Content = sluicev1.TurnKind_TURN_KIND_INVALID, Strip(c.text)
		}
		if diff := cmp.Diff(c.want, Hermes{}.Parse(c.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestHermesReadsWhatIsWrittenRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := Strip(rapid.OneOf(rapid.String(), rapid.Just("print('</tool_call>')\n\"\\u0041\"")).Draw(t, "code"))
		if code == "" || !utf8.ValidString(code) {
			t.Skip()
		}
		b, err := json.Marshal(map[string]any{"name": "code_interpreter", "arguments": map[string]string{"code": code}})
		if err != nil {
			t.Fatal(err)
		}
		if got := (Hermes{}).Parse("I compute.\n<tool_call>" + string(b) + "\n</tool_call>\n"); got.Code != code || got.Content != "I compute." {
			t.Fatalf("%q came back as %+v", code, got)
		}
	})
}

func FuzzHermes(f *testing.F) {
	f.Add(`<tool_call>{"name":"code_interpreter","arguments":{"code":"\ud83d\ude00"}}</tool_call>`)
	f.Add(`<tool_call>{"a":[1`)
	f.Fuzz(func(t *testing.T, text string) {
		r := Hermes{}.Parse(text)
		if (r.Kind == sluicev1.TurnKind_TURN_KIND_TOOL) != (r.Code != "") || (r.Kind == sluicev1.TurnKind_TURN_KIND_INVALID) != (r.Reason != "") {
			t.Fatalf("%q: %+v", text, r)
		}
	})
}
