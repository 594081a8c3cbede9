package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ardanlabs/jinja"
)

func open(t *testing.T, dir string) *Template {
	t.Helper()
	tmpl, err := Open("testdata/" + dir)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func TestConversations(t *testing.T) {
	off := false
	for _, c := range []struct {
		name string
		conv Conversation
		want string
	}{
		{"user", Conversation{Messages: json.RawMessage(`[{"role":"user","content":"1 < 2 & \"3\""}]`)},
			"<|im_start|>user\n1 < 2 & \"3\"<|im_end|>\n"},
		{"to generate, thinking off", Conversation{Messages: json.RawMessage(`[{"role":"user","content":"数"}]`), Generate: true, Thinking: &off},
			"<|im_start|>user\n数<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
		{"tools keep their order and their numbers", Conversation{Messages: json.RawMessage(`[{"role":"user","content":""}]`),
			Tools: json.RawMessage(`[{"z":1,"a":{"f":2.0,"e":1e-7,"big":12345678901234567890,"none":null,"s":"<é'\n"}}]`)},
			"<|im_start|>system\n" + `{"z": 1, "a": {"f": 2.0, "e": 1e-07, "big": 12345678901234567890, "none": null, "s": "<é'\n"}}` + "\n<|im_end|>\n<|im_start|>user\n<|im_end|>\n"},
		{"content that is no text", Conversation{Messages: json.RawMessage(`[{"role":"tool","content":[1.0,"it's",null,true]}]`)},
			"<|im_start|>tool\n[1.0, \"it's\", None, True]<|im_end|>\n"},
	} {
		got, err := open(t, "chatml").Render(c.conv)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, got, c.want)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	tmpl := open(t, "chatml")
	_, err := tmpl.Render(Conversation{Messages: json.RawMessage(`[{"role":"narrator","content":"x"}]`)})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "Unexpected role narrator") {
		t.Errorf("%v, want the template's own words", err)
	}
	for _, messages := range []string{``, `[]`, `{}`, `[{"role":"user"`, `[1] [2]`} {
		if text, err := tmpl.Render(Conversation{Messages: json.RawMessage(messages)}); err == nil {
			t.Errorf("messages %q gave %q", messages, text)
		}
	}
	if _, err := Open("testdata/none"); !errors.Is(err, ErrNone) {
		t.Errorf("a folder without a template: %v", err)
	}
	if _, err := Open("testdata/bad"); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("a template that does not compile: %v", err)
	}
	if _, err := Compile(`{{ x | tojson(surprise=1) }}`, nil); err != nil {
		t.Fatal(err)
	}
}

func TestNamedTemplatesAndVariables(t *testing.T) {
	tmpl := open(t, "named")
	messages := json.RawMessage(`[{"role":"user","content":"x"}]`)
	if got, err := tmpl.Render(Conversation{Messages: messages}); err != nil || got != "<s>plain</s>" {
		t.Errorf("%q, %v: want the default template, with its tokens and without a clock", got, err)
	}
	if got, err := tmpl.Render(Conversation{Messages: messages, Tools: json.RawMessage(`[{"name":"py"}]`)}); err != nil || got != "<s>py" {
		t.Errorf("%q, %v: want the template for tools", got, err)
	}
}

// What Python 3.11 prints.
func TestPythonsWayOfPrinting(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want string
	}{
		{0, "0.0"}, {1, "1.0"}, {1.5, "1.5"}, {100, "100.0"}, {1e15, "1000000000000000.0"}, {1e16, "1e+16"},
		{123456789012345680, "1.2345678901234568e+17"}, {1e-4, "0.0001"}, {1e-5, "1e-05"}, {1.0 / 3, "0.3333333333333333"},
		{1e22, "1e+22"}, {2.5e-7, "2.5e-07"}, {5e-324, "5e-324"},
	} {
		if got := pythonFloat(c.f); got != c.want {
			t.Errorf("%v: %s, want %s", c.f, got, c.want)
		}
	}
	for _, c := range [][3]string{
		{"it's", `"it's"`, `"it's"`},
		{`say "x"`, `'say "x"'`, `"say \"x\""`},
		{`both ' and "`, `'both \' and "'`, `"both ' and \""`},
		{"tab\tnl\n\\", `'tab\tnl\n\\'`, `"tab\tnl\n\\"`},
		{"\x00\x7f\u0085\u00a0", `'\x00\x7f\x85\xa0'`, "\"\\u0000\x7f\u0085\u00a0\""},
		{"é😀\u2028\u200b\ue000", `'é😀\u2028\u200b\ue000'`, "\"é😀\u2028\u200b\ue000\""},
	} {
		if got := quoted(c[0]); got != c[1] {
			t.Errorf("repr of %q: %s, want %s", c[0], got, c[1])
		}
		if got, err := pythonJSON([]jinja.Value{jinja.NewString(c[0])}, nil); err != nil || got.AsString() != c[2] {
			t.Errorf("json of %q: %s, %v, want %s", c[0], got, err, c[2])
		}
	}
	object, err := value([]byte(`{"b":[1,2.0,null,true,{"z":"<&>","a":[]}],"a":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		options map[string]jinja.Value
		want    string
	}{
		{nil, `{"b": [1, 2.0, null, true, {"z": "<&>", "a": []}], "a": {}}`},
		{map[string]jinja.Value{"indent": jinja.NewInt(2)},
			"{\n  \"b\": [\n    1,\n    2.0,\n    null,\n    true,\n    {\n      \"z\": \"<&>\",\n      \"a\": []\n    }\n  ],\n  \"a\": {}\n}"},
		{map[string]jinja.Value{"sort_keys": jinja.NewBool(true), "separators": jinja.NewList([]jinja.Value{jinja.NewString(","), jinja.NewString(":")})},
			`{"a":{},"b":[1,2.0,null,true,{"a":[],"z":"<&>"}]}`},
	} {
		if got, err := pythonJSON([]jinja.Value{object}, c.options); err != nil || got.AsString() != c.want {
			t.Errorf("%v: %s, %v\nwant %s", c.options, got, err, c.want)
		}
	}
	if got, want := pythonString(object), `{'b': [1, 2.0, None, True, {'z': '<&>', 'a': []}], 'a': {}}`; got != want {
		t.Errorf("str: %s, want %s", got, want)
	}
	if _, err := pythonJSON([]jinja.Value{object}, map[string]jinja.Value{"surprise": jinja.NewInt(1)}); err == nil {
		t.Error("an option that is not known passed")
	}
}

func FuzzValue(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"x",null,true,{"b":-0.0}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := value(b)
		if err != nil {
			return
		}
		// What was read prints as JSON, and that reads as the same.
		printed, err := pythonJSON([]jinja.Value{v}, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := value([]byte(printed.AsString()))
		if err != nil {
			t.Fatalf("%s does not read: %v", printed.AsString(), err)
		}
		if twice, err := pythonJSON([]jinja.Value{again}, nil); err != nil || twice.AsString() != printed.AsString() {
			t.Fatalf("%s became %s", printed.AsString(), twice.AsString())
		}
	})
}

func Example() {
	tmpl, err := Open("testdata/chatml")
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := tmpl.Render(Conversation{Messages: json.RawMessage(`[{"role": "user", "content": "6*7?"}]`), Generate: true})
	fmt.Printf("%q %v\n", text, err)
	// Output: "<|im_start|>user\n6*7?<|im_end|>\n<|im_start|>assistant\n" <nil>
}
