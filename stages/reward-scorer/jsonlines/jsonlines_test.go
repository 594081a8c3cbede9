package jsonlines

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestEachLineIsHandedOnWithItsNumberAndItsError(t *testing.T) {
	var got []Line
	in := "\uFEFF{}\n\n  {\"a\":1} \r\n\xff\n[]"
	err := Answer(strings.NewReader(in), &bytes.Buffer{}, Usual, func(batch []Line) []any {
		got = append(got, batch...)
		return make([]any, len(batch))
	})
	if err != nil || len(got) != 4 {
		t.Fatalf("%d lines, %v", len(got), err)
	}
	for i, want := range []struct {
		n    int
		text string
		bad  bool
	}{{1, "{}", false}, {3, `{"a":1}`, false}, {4, "\xff", true}, {5, "[]", false}} {
		if got[i].N != want.n || string(got[i].Text) != want.text || (got[i].Err != nil) != want.bad {
			t.Errorf("line %d: %+v, want %+v", i, got[i], want)
		}
	}
}

func TestTextsMayBeNumbers(t *testing.T) {
	for raw, want := range map[string]Text{`"a\u0062"`: "ab", `42`: "42", `-0.50`: "-0.50", `1e400`: "1e400", `""`: ""} {
		var got Text
		if err := json.Unmarshal([]byte(raw), &got); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", raw, got, err, want)
		}
	}
	for _, raw := range []string{`true`, `[1]`, `{}`} {
		var got Text
		if err := json.Unmarshal([]byte(raw), &got); err == nil {
			t.Errorf("%s was read as %q", raw, got)
		}
	}
}
