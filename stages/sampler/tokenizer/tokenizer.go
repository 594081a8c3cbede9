package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// ErrUnsupported is what Parse refuses a readable file with: a kind of tokenizer, or a
// part of one, that is not among those this package gives exact ids for.
var ErrUnsupported = errors.New("unsupported tokenizer")

// Tokenizer is one model's vocabulary with the rules of its use.
type Tokenizer struct {
	// tokens is the bytes of each id; an id without a token has a hole.
	tokens []string
	known  []bool
	// ids is the inverse of tokens, without the added ones.
	ids map[string]uint32
	// bytes is the id of each single byte.
	bytes  [256]uint32
	merges mergeTable
	// wholeFirst takes a piece that is a token as it is, without merging (ignore_merges).
	wholeFirst bool
	normalise  func(string) string
	cut        cutter
	added      addedTokens

	mergers sync.Pool
}

// Size is one more than the highest id.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// Added lists the added tokens in the order of their ids: those that stand for something
// else than their text, such as <|im_end|>, and must not come out of anybody's text.
func (t *Tokenizer) Added() []AddedToken { return append([]AddedToken(nil), t.added.all...) }

// ID is the id of an added token or of a token with exactly these bytes.
func (t *Tokenizer) ID(token string) (id uint32, ok bool) {
	for _, a := range t.added.all {
		if a.Text == token {
			return a.ID, true
		}
	}
	id, ok = t.ids[token]
	return id, ok
}

// Encode gives the ids of a text. Added tokens in it become their ids.
func (t *Tokenizer) Encode(text string) []uint32 {
	return t.Append(make([]uint32, 0, len(text)/3+1), text)
}

// Append is Encode into a slice.
func (t *Tokenizer) Append(ids []uint32, text string) []uint32 {
	m := t.mergers.Get().(*merger)
	defer t.mergers.Put(m)
	t.added.raw.split(text, func(between string, id uint32, isAdded bool) {
		if isAdded {
			ids = append(ids, id)
			return
		}
		t.added.normalised.split(t.normalise(between), func(between string, id uint32, isAdded bool) {
			if isAdded {
				ids = append(ids, id)
				return
			}
			t.cut(between, func(piece string) { ids = m.append(ids, piece) })
		})
	})
	return ids
}

// Decode gives the bytes of ids, added tokens as their text. What the bytes of a cut
// character are is not changed: the result may be invalid UTF-8.
func (t *Tokenizer) Decode(ids []uint32) (string, error) {
	return t.decode(ids, func(uint32) bool { return false })
}

// DecodeText is Decode without the special ones among the added tokens.
func (t *Tokenizer) DecodeText(ids []uint32) (string, error) {
	return t.decode(ids, func(id uint32) bool { return t.added.special[id] })
}

func (t *Tokenizer) decode(ids []uint32, skip func(uint32) bool) (string, error) {
	var b strings.Builder
	for i, id := range ids {
		if int(id) >= len(t.tokens) || !t.known[id] {
			return "", fmt.Errorf("token id %d at index %d is not in the vocabulary of %d", id, i, len(t.tokens))
		}
		if !skip(id) {
			b.WriteString(t.tokens[id])
		}
	}
	return b.String(), nil
}
