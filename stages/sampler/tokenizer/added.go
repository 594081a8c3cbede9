package tokenizer

import (
	"slices"
	"strings"
)

// AddedToken is a token that stands beside the vocabulary.
type AddedToken struct {
	ID   uint32
	Text string
	// Special says that it is no text: DecodeText leaves it out.
	Special bool
}

// addedTokens is all of them, by where they are looked for.
type addedTokens struct {
	all []AddedToken
	// raw are looked for in the text as it is, normalised in the normalised text.
	raw, normalised finder
	special         map[uint32]bool
}

// finder finds added tokens in a text, the leftmost first, and of several at one place the
// longest.
type finder struct {
	// by holds the tokens that begin with a byte, the longest first.
	by [256][]AddedToken
	// first is the bytes that a token begins with.
	first string
}

func newFinder(tokens []AddedToken) finder {
	var f finder
	var first []byte
	for _, t := range tokens {
		b := t.Text[0]
		if f.by[b] == nil {
			first = append(first, b)
		}
		f.by[b] = append(f.by[b], t)
	}
	for _, b := range first {
		slices.SortStableFunc(f.by[b], func(x, y AddedToken) int { return len(y.Text) - len(x.Text) })
	}
	f.first = string(first)
	return f
}

// split gives the text piece by piece: what lies between added tokens, if anything, and
// the tokens.
func (f *finder) split(text string, each func(between string, id uint32, isAdded bool)) {
	begun := 0
	for i := 0; i < len(text); {
		skip := f.next(text[i:])
		if skip < 0 {
			break
		}
		i += skip
		t, ok := f.at(text[i:])
		if !ok {
			i++
			continue
		}
		if begun < i {
			each(text[begun:i], 0, false)
		}
		each("", t.ID, true)
		i += len(t.Text)
		begun = i
	}
	if begun < len(text) {
		each(text[begun:], 0, false)
	}
}

// next is where the first byte is that a token may begin with. Nearly all added tokens of
// nearly all models begin with the same one.
func (f *finder) next(text string) int {
	switch len(f.first) {
	case 0:
		return -1
	case 1:
		return strings.IndexByte(text, f.first[0])
	}
	for i := range len(text) {
		if f.by[text[i]] != nil {
			return i
		}
	}
	return -1
}

func (f *finder) at(text string) (AddedToken, bool) {
	for _, t := range f.by[text[0]] {
		if strings.HasPrefix(text, t.Text) {
			return t, true
		}
	}
	return AddedToken{}, false
}
