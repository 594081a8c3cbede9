package template

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"testing"
)

// TestCases compares with a file of renders made by Python's jinja2 with Hugging Face's
// settings: `make template-cases TEMPLATE=file NAME=name FILE=renders.jsonl`.
func TestCases(t *testing.T) {
	source, name, file := os.Getenv("TEMPLATE"), os.Getenv("TEMPLATE_NAME"), os.Getenv("TEMPLATE_CASES")
	if source == "" || file == "" {
		t.Skip("no TEMPLATE and TEMPLATE_CASES: `make template-cases` names them")
	}
	b, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := Compile(string(b), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<26)
	n, bad := 0, 0
	for lines.Scan() {
		var c struct {
			Template, Name string
			// Rendered is null where the template refuses.
			Rendered *string
			Context  struct {
				Messages json.RawMessage
				Tools    json.RawMessage
				Generate bool  `json:"add_generation_prompt"`
				Thinking *bool `json:"enable_thinking"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Template != name {
			continue
		}
		n++
		if string(c.Context.Tools) == "null" {
			c.Context.Tools = nil
		}
		got, err := tmpl.Render(Conversation(c.Context))
		switch {
		case c.Rendered == nil && errors.Is(err, ErrRefused):
		case c.Rendered == nil:
			bad++
			t.Errorf("%s: %q, %v; want it refused", c.Name, got, err)
		case err != nil || got != *c.Rendered:
			bad++
			t.Errorf("%s: %v\n got %q\nwant %q", c.Name, err, got, *c.Rendered)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Fatalf("no case of template %q in %s", name, file)
	}
	t.Logf("%d of %d agree", n-bad, n)
}
