package terminal_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

func TestHostileTextIsShownNotSent(t *testing.T) {
	for _, c := range []struct{ text, want, lines string }{
		{"plain π 你好", "plain π 你好", "plain π 你好"},
		{"\x1b[2Jgone", `\x1b[2Jgone`, `\x1b[2Jgone`},
		{"a\nb\tc\r", `a\nb\tc\r`, "a\nb\tc\\r"},
		{"bell\a nul\x00 del\x7f", `bell\x07 nul\x00 del\x7f`, `bell\x07 nul\x00 del\x7f`},
		{"right to left \u202e", `right to left \u202e`, `right to left \u202e`},
		{"C1 \u009b31m", `C1 \x9b31m`, `C1 \x9b31m`},
		{"bad \xff\xfe utf8", `bad \xff\xfe utf8`, `bad \xff\xfe utf8`},
		{"its own \uFFFD", "its own \uFFFD", "its own \uFFFD"},
		{"tag \U000e0041", `tag \U000e0041`, `tag \U000e0041`},
	} {
		if got := terminal.Escape(c.text); got != c.want {
			t.Errorf("Escape(%q) = %q, want %q", c.text, got, c.want)
		}
		if got := terminal.EscapeLines(c.text); got != c.lines {
			t.Errorf("EscapeLines(%q) = %q, want %q", c.text, got, c.lines)
		}
	}
}

func FuzzEscapeLeavesOnlyPrintable(f *testing.F) {
	f.Add("\x1b]0;title\a")
	f.Add("\u2066\xf0\x28")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range terminal.Escape(s) {
			if !unicode.IsPrint(r) {
				t.Fatalf("Escape(%q) holds %U", s, r)
			}
		}
		for _, r := range terminal.EscapeLines(s) {
			if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
				t.Fatalf("EscapeLines(%q) holds %U", s, r)
			}
		}
	})
}

func TestTableAlignsAndEscapes(t *testing.T) {
	got := terminal.Table([]string{"topic", "depth"}, [][]string{{"prompts", "7"}, {"a\x1b[31m", "1234"}})
	want := "" +
		"topic      depth\n" +
		"prompts        7\n" +
		"a\\x1b[31m   1234\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWithoutATerminalLinesAreJustPrinted(t *testing.T) {
	var out bytes.Buffer
	b := terminal.NewBlock(&out)
	b.Draw([]string{"block"})
	b.Say("step %d", 3)
	b.Leave()
	if got := out.String(); got != "step 3\n" || strings.Contains(got, "\x1b") {
		t.Errorf("got %q, want the line alone", got)
	}
}

func TestShorten(t *testing.T) {
	if got := terminal.Shorten("abcdef", 4); got != "abc…" {
		t.Errorf("got %q, want abc…", got)
	}
	if got := terminal.Shorten("abc", 4); got != "abc" {
		t.Errorf("got %q, want abc", got)
	}
}
