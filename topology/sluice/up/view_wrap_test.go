package up

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWrappedLosesNothingInEightyColumns(t *testing.T) {
	parts := []string{"waiting prompts ≤12345", "code-calls ≤12345", "code-results ≤12345",
		"trajectories ≤12345", "scored ≤12345", "grouped ≤12345", "for metrics 1234567"}
	lines := wrapped(parts...)
	if len(lines) < 2 {
		t.Fatalf("%q: want a further line", lines)
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n >= 80 {
			t.Errorf("%q takes %d columns", line, n)
		}
	}
	for _, part := range parts {
		if !strings.Contains(strings.Join(lines, "\n"), part) {
			t.Errorf("%q is not shown whole in %q", part, lines)
		}
	}
	if got := wrapped("a", "b"); len(got) != 1 || got[0] != "a  b" {
		t.Errorf("short parts: %q, want one line", got)
	}
}
