// Package terminal prints for people: it makes hostile text harmless, lays out tables
// and redraws a block of lines in place.
//
// Everything that a model, a program run for it or another process wrote goes through
// Escape or EscapeLines before it reaches a terminal: what is not printable (control
// characters, escape sequences, direction overrides, invalid UTF-8) is shown as an
// escape such as \x1b or \u202e and never sent.
package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text safe for one line of a terminal: line ends are escaped as well.
func Escape(s string) string { return escape(s, false) }

// EscapeLines is Escape that keeps line feeds and tabs.
func EscapeLines(s string) string { return escape(s, true) }

func escape(s string, keepLines bool) string {
	var b strings.Builder
	b.Grow(len(s))
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case keepLines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// Shorten cuts escaped text to at most width characters, the last of which then says
// that something is missing.
func Shorten(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	runes := []rune(s)
	return string(runes[:max(width-1, 0)]) + "…"
}
