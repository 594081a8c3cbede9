package chat

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func render(t *testing.T, messages string, o Options) (string, error) {
	t.Helper()
	var ms []Message
	if err := json.Unmarshal([]byte(messages), &ms); err != nil {
		return "", err
	}
	return Render(ms, o)
}

func TestRender(t *testing.T) {
	gen := Options{AddGenerationPrompt: true}
	for _, c := range []struct {
		name, messages, want string
		o                    Options
	}{
		{"question", `[{"role":"user","content":" Hi? "}]`, "<|im_start|>user\nHi?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", gen},
		{"no generation prompt", `[{"role":"user","content":"Hi?"}]`, "<|im_start|>user\nHi?<|im_end|>\n", Options{}},
		{"thinking", `[{"role":"user","content":"Hi?"}]`, "<|im_start|>user\nHi?<|im_end|>\n<|im_start|>assistant\n<think>\n", Options{AddGenerationPrompt: true, EnableThinking: true}},
		{"system", `[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi?"}]`, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi?<|im_end|>\n", Options{}},
		{"placeholder and observation", `[{"role":"user","content":"q"},{"role":"assistant","content":"x"},{"role":"tool","content":"42\n"}]`,
			"<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nx<|im_end|>\n<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", gen},
		{"two observations share a message", `[{"role":"user","content":"q"},{"role":"assistant","content":"x"},{"role":"tool","content":"1"},{"role":"tool","content":""}]`,
			"<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nx<|im_end|>\n<|im_start|>user\n<tool_response>\n1\n</tool_response>\n<tool_response>\n\n</tool_response><|im_end|>\n", Options{}},
		{"earlier turns bear no thought", `[{"role":"user","content":"a"},{"role":"assistant","content":"<think>\nhm\n</think>\n\nb"},{"role":"user","content":"c"}]`,
			"<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\nc<|im_end|>\n", Options{}},
		{"a call, arguments in their order", `[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{"z":"print(1)\n","a":2.50,"n":null,"l":[1, "x"]}}}]}]`,
			"<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n<tool_call>\n<function=f>\n<parameter=z>\nprint(1)\n\n</parameter>\n<parameter=a>\n2.50\n</parameter>\n<parameter=n>\nnull\n</parameter>\n<parameter=l>\n[1, \"x\"]\n</parameter>\n</function>\n</tool_call><|im_end|>\n", Options{}},
		{"arguments in a string, content in parts", `[{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":"r"}]},{"role":"assistant","content":"t","tool_calls":[{"function":{"name":"f","arguments":"{\"c\":\"1\"}"}}]}]`,
			"<|im_start|>user\nqr<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nt\n\n<tool_call>\n<function=f>\n<parameter=c>\n1\n</parameter>\n</function>\n</tool_call><|im_end|>\n", Options{}},
	} {
		got, err := render(t, c.messages, c.o)
		if err != nil || got != c.want {
			t.Errorf("%s:\n got %q, %v\nwant %q", c.name, got, err, c.want)
		}
	}
}

func TestToolsStandInTheSystemMessage(t *testing.T) {
	o := Options{Tools: []json.RawMessage{json.RawMessage(`{ "z": 1, "a": {"b": "<c>"} }`)}}
	got, err := render(t, `[{"role":"system","content":"Be brief."},{"role":"user","content":"q"}]`, o)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, "<|im_start|>system\n# Tools\n") || !strings.Contains(got, "<tools>\n{\"z\":1,\"a\":{\"b\":\"<c>\"}}\n</tools>") ||
		!strings.Contains(got, "\n\nBe brief.<|im_end|>\n<|im_start|>user\nq<|im_end|>\n") {
		t.Errorf("rendered:\n%s", got)
	}
}

func TestRenderRefuses(t *testing.T) {
	for name, messages := range map[string]string{
		"nothing":             `[]`,
		"no question":         `[{"role":"system","content":"x"}]`,
		"only a tool's":       `[{"role":"user","content":"<tool_response>\nx\n</tool_response>"}]`,
		"late system":         `[{"role":"user","content":"x"},{"role":"system","content":"y"}]`,
		"unknown role":        `[{"role":"user","content":"x"},{"role":"judge","content":"y"}]`,
		"image":               `[{"role":"user","content":[{"type":"image_url"}]}]`,
		"number":              `[{"role":"user","content":7}]`,
		"arguments no object": `[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":[1]}}]}]`,
		"arguments cut off":   `[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":"}}]}]`,
		"nameless function":   `[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"function":{}}]}]`,
	} {
		if got, err := render(t, messages, Options{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %q, %v; want ErrInvalid", name, got, err)
		}
	}
}
