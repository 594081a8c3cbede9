package observation

import "unicode/utf8"

// Marker stands where the beginning of an observation was cut off to fit its budget.
const Marker = "[... truncated ...]\n"

// incompressible is the length in characters from which on a text is not cut further.
const incompressible = 64

// Shrink gives the next shorter form of an observation that is over its budget: Marker
// and the last seven tenths of its characters, rounded down. ok is false where there
// is none: the text is short already, or the marker would eat up what is saved (from
// 66 characters on the length stays). Applied again and again it always ends.
func Shrink(s string) (shorter string, ok bool) {
	n := utf8.RuneCountInString(s)
	if n <= incompressible {
		return s, false
	}
	// In floating point, as trainers compute it: 0.7 of 90 is 62.99….
	keep := int(float64(n) * 0.7)
	if len(Marker)+keep >= n {
		return s, false
	}
	return Marker + lastRunes(s, keep), true
}

// lastRunes is the last n characters of a string that has at least n.
func lastRunes(s string, n int) string {
	from := len(s)
	for range n {
		_, size := utf8.DecodeLastRuneInString(s[:from])
		from -= size
	}
	return s[from:]
}
