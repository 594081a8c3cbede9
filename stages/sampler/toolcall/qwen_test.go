package toolcall

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

const (
	tool   = sluicev1.TurnKind_TURN_KIND_TOOL
	answer = sluicev1.TurnKind_TURN_KIND_ANSWER
	wrong  = sluicev1.TurnKind_TURN_KIND_INVALID
)

// call writes code as the chat template shows it to the policy.
func call(code string) string {
	return "<tool_call>\n<function=code_interpreter>\n<parameter=code>\n" + code + "\n</parameter>\n</function>\n</tool_call>"
}

func TestATurnIsTool(t *testing.T) {
	for name, c := range map[string]struct{ text, content, code string }{
		"exactly one call":                   {call("print(1)"), "", "print(1)"},
		"prose before it is content":         {"Let me see.\n" + call("print(1)"), "Let me see.", "print(1)"},
		"an answer before it is only prose":  {`\boxed{3} or so. ` + call("print(1)"), `\boxed{3} or so.`, "print(1)"},
		"white space after it":               {call("print(1)") + " \t\n\u3000", "", "print(1)"},
		"white space between tags, or none":  {"<tool_call><function=code_interpreter> <parameter=code>print(1)\n\n</parameter></function>\t</tool_call>", "", "print(1)"},
		"lines inside the code stay":         {call("for i in range(3):\n\n    print(i)"), "", "for i in range(3):\n\n    print(i)"},
		"code that prints a closing tag":     {call(`print("</parameter>", "</tool_call>")`), "", `print("</parameter>", "</tool_call>")`},
		"code that prints an opening tag":    {call(`print("<tool_call>")`), "", `print("<tool_call>")`},
		"text that is no ASCII":              {"计算: " + call("print('答案')"), "计算:", "print('答案')"},
		"comparison signs are no tags":       {call("print(3 < 4 > 2)"), "", "print(3 < 4 > 2)"},
		"the ASCII separators are space too": {"\x1c" + call("print(1)") + "\x1f", "", "print(1)"},
	} {
		t.Run(name, func(t *testing.T) {
			want := Result{Kind: tool, Content: c.content, Code: c.code}
			if diff := cmp.Diff(want, Qwen{}.Parse(c.text)); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

func TestATurnIsAnswer(t *testing.T) {
	for name, text := range map[string]string{
		"a box":                     `So \boxed{42}.`,
		"nothing at all":            "",
		"only a closing tag":        "</tool_call>",
		"a function without a call": "<function=code_interpreter>\n<parameter=code>\nprint(1)\n</parameter>\n</function>",
		"tags in capitals are text": strings.ToUpper(call("print(1)")),
		"a fenced block is no call": "```python\nprint(1)\n```",
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(Result{Kind: answer, Content: text}, Qwen{}.Parse(" "+text+"\n")); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", text, diff)
			}
		})
	}
}

func TestATurnIsInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		reason Reason
	}{
		"cut off in the opening tags":       {"<tool_call>\n<func", UnclosedCall},
		"nothing but the opening tag":       {"Hm. <tool_call>", UnclosedCall},
		"cut off in the function's name":    {"<tool_call><function=code_inter", UnclosedCall},
		"cut off in the parameter's name":   {"<tool_call><function=code_interpreter><parameter=co", UnclosedCall},
		"cut off in the code":               {"<tool_call>\n<function=code_interpreter>\n<parameter=code>\nprint(", UnclosedCall},
		"cut off in the closing tags":       {strings.TrimSuffix(call("print(1)"), "ll>"), UnclosedCall},
		"a JSON call":                       {"<tool_call>\n{\"name\": \"code_interpreter\", \"arguments\": {\"code\": \"print(1)\"}}\n</tool_call>", NotAFunction},
		"half a JSON object":                {"<tool_call>\n{\"name\": \"code_int", NotAFunction},
		"another function":                  {strings.Replace(call("print(1)"), "code_interpreter", "python", 1), UnknownFunction},
		"another parameter":                 {strings.Replace(call("print(1)"), "parameter=code", "parameter=source", 1), UnknownParameter},
		"no parameter":                      {"<tool_call><function=code_interpreter></function></tool_call>", Malformed},
		"the function is not closed":        {strings.Replace(call("print(1)"), "</function>", "", 1), Malformed},
		"the parameter is not closed":       {strings.Replace(call("print(1)"), "</parameter>", "", 1), Malformed},
		"no code":                           {call(""), EmptyCode},
		"code of white space":               {call(" \t\n "), EmptyCode},
		"two parameters":                    {call("print(1)\n</parameter>\n<parameter=timeout>\n9"), TwoParameters},
		"two functions in one call":         {call("print(1)\n</parameter>\n</function>\n<function=code_interpreter>\n<parameter=code>\nprint(2)"), TwoCalls},
		"two calls":                         {call("print(1)") + "\n" + call("print(2)"), TwoCalls},
		"a second call only begun":          {call("print(1)") + "<tool_call>", TwoCalls},
		"an answer after the call":          {call("print(1)") + `\boxed{7}`, TextAfterCall},
		"a word after the call":             {call("print(1)") + "\ndone", TextAfterCall},
		"a mention before the call counts":  {"I use <tool_call> now: " + call("print(1)"), NotAFunction},
		"a closing tag in place of opening": {"</function><tool_call></tool_call>", NotAFunction},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(Result{Kind: wrong, Content: c.text, Reason: c.reason}, Qwen{}.Parse(c.text)); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

func TestAnyProgramWithoutTagsComesBackWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		code := Strip(rapid.String().Draw(rt, "code"))
		if code == "" || strings.Contains(code, "</parameter>") {
			return
		}
		got := Qwen{}.Parse(rapid.SampledFrom([]string{"", "Let me see. ", "\n"}).Draw(rt, "prose") + call(code))
		if got.Kind != tool || got.Code != code {
			rt.Fatalf("Parse gave %v, code %q; want a tool turn with code %q", got.Kind, got.Code, code)
		}
	})
}

func TestProtocolsHaveNames(t *testing.T) {
	p, err := ByName("qwen")
	if err != nil || p.Name() != "qwen" {
		t.Fatalf("ByName(qwen) = %v, %v", p, err)
	}
	var tools []struct{ Function struct{ Name string } }
	if err := json.Unmarshal(p.Tools(), &tools); err != nil || len(tools) != 1 || tools[0].Function.Name != "code_interpreter" {
		t.Errorf("Tools() = %s (%v), want a list with code_interpreter", p.Tools(), err)
	}
	if _, err := ByName("morse"); !errors.Is(err, ErrUnknownProtocol) {
		t.Errorf("ByName(morse) error = %v, want ErrUnknownProtocol", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", call("print(1)"), call("x") + call("y"), "<tool_call>\xff", "<tool_call><function=code_interpreter><parameter=code></parameter></function>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := Qwen{}.Parse(text)
		begun := strings.Contains(text, "<tool_call>")
		switch r.Kind {
		case tool:
			if r.Code == "" || r.Code != Strip(r.Code) || !strings.Contains(text, r.Code) || r.Reason != "" {
				t.Errorf("tool turn %q with code %q, reason %q", text, r.Code, r.Reason)
			}
		case answer:
			if begun || r.Code != "" || r.Reason != "" {
				t.Errorf("answer %q with code %q, reason %q", text, r.Code, r.Reason)
			}
		case wrong:
			if !begun || r.Code != "" || r.Reason == "" {
				t.Errorf("invalid turn %q with code %q, reason %q", text, r.Code, r.Reason)
			}
		default:
			t.Errorf("Parse(%q).Kind = %v", text, r.Kind)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := "Let me work this out step by step.\n" + call(strings.Repeat("x = sum(i * i for i in range(100))\nprint(x)\n", 40))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if (Qwen{}).Parse(text).Kind != tool {
			b.Fatal("not a tool turn")
		}
	}
}
