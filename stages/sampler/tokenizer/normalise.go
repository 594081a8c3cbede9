package tokenizer

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func unchanged(s string) string { return s }

// mostMarks is from how many combining marks in a row the library follows the
// stream-safe format of UAX 15, which puts U+034F between them; NFC itself does not.
const mostMarks = 30

// nfc is Unicode's normalisation form C. Bytes that are no characters stay.
func nfc(s string) string {
	if isASCII(s) || norm.NFC.IsNormalString(s) && !longMarks(s) {
		return s
	}
	if longMarks(s) {
		return composed(s)
	}
	return norm.NFC.String(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// longMarks says whether so many combining marks follow each other that the library would
// not give NFC. A character may hold marks of its own when decomposed: they are counted.
func longMarks(s string) bool {
	n := 0
	for i := 0; i < len(s); {
		p := norm.NFD.PropertiesString(s[i:])
		size := max(p.Size(), 1)
		marks := 0
		if d := p.Decomposition(); d != nil {
			for j := 0; j < len(d); {
				q := norm.NFD.Properties(d[j:])
				if q.CCC() != 0 {
					marks++
				}
				j += max(q.Size(), 1)
			}
		} else if p.CCC() != 0 {
			marks = 1
		}
		if p.CCC() == 0 {
			n = 0
		}
		n += marks
		if n >= mostMarks {
			return true
		}
		i += size
	}
	return false
}

// composed is NFC by the book (UAX 15, section 1.3): decompose, order marks, compose. The
// rules for single characters and pairs are the library's.
func composed(s string) string {
	type char struct {
		text string
		ccc  uint8
	}
	var all []char
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			all = append(all, char{s[i : i+1], 0})
			i++
			continue
		}
		for _, d := range norm.NFD.String(s[i : i+size]) {
			t := string(d)
			all = append(all, char{t, norm.NFD.PropertiesString(t).CCC()})
		}
		i += size
	}
	for i := 0; i < len(all); {
		if all[i].ccc == 0 {
			i++
			continue
		}
		end := i
		for end < len(all) && all[end].ccc != 0 {
			end++
		}
		slices.SortStableFunc(all[i:end], func(a, b char) int { return int(a.ccc) - int(b.ccc) })
		i = end
	}
	var out []char
	starter := -1
	for _, c := range all {
		if starter >= 0 {
			last := out[len(out)-1]
			// Blocked: a mark of the same class or higher, or another starter, stands between.
			blocked := len(out)-1 > starter && (last.ccc == 0 || last.ccc >= c.ccc)
			if !blocked {
				if one := norm.NFC.String(out[starter].text + c.text); utf8.RuneCountInString(one) == 1 {
					out[starter].text = one
					continue
				}
			}
		}
		if c.ccc == 0 {
			starter = len(out)
		}
		out = append(out, c)
	}
	b := make([]byte, 0, len(s))
	for _, c := range out {
		b = append(b, c.text...)
	}
	return string(b)
}
