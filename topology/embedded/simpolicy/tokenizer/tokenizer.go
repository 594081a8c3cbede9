package tokenizer

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

//go:embed vocabulary.txt
var vocabulary string

// ErrUnknownToken: an id stands for no token of the vocabulary.
var ErrUnknownToken = errors.New("token id outside the vocabulary")

// The added tokens. The first three control the conversation and leave the text of a
// completion; the others are ordinary text that is one token.
const (
	EndOfText    = "<|endoftext|>"
	MessageStart = "<|im_start|>"
	MessageEnd   = "<|im_end|>"
)

// Added is one added token.
type Added struct {
	ID      uint32
	Content string
	// Special tokens are left out of a completion's text.
	Special bool
}

const (
	firstAdded = 256
	firstPiece = 320
)

var added = []Added{
	{Content: EndOfText, Special: true},
	{Content: MessageStart, Special: true},
	{Content: MessageEnd, Special: true},
	{Content: "<tool_call>"},
	{Content: "</tool_call>"},
	{Content: "<tool_response>"},
	{Content: "</tool_response>"},
	{Content: "<think>"},
	{Content: "</think>"},
}

// Tokenizer is not changed after New and may be shared.
type Tokenizer struct {
	content []string // by id; "" where an id is not given out
	added   []Added
	trie    trie
	print   string
}

// New builds the tokenizer from the vocabulary in the binary.
func New() (*Tokenizer, error) { return parse(vocabulary) }

func parse(list string) (*Tokenizer, error) {
	t := &Tokenizer{content: make([]string, firstPiece)}
	for b := range 256 {
		t.content[b] = string([]byte{byte(b)})
	}
	for i, a := range added {
		a.ID = uint32(firstAdded + i)
		t.added = append(t.added, a)
		t.content[a.ID] = a.Content
	}
	t.trie.init()
	seen := map[string]bool{}
	sc := bufio.NewScanner(strings.NewReader(list))
	for n := 1; sc.Scan(); n++ {
		piece, err := strconv.Unquote(sc.Text())
		if err != nil || len(piece) < 2 || seen[piece] {
			return nil, fmt.Errorf("vocabulary, line %d: %q is no quoted piece of two bytes or more that is new", n, sc.Text())
		}
		seen[piece] = true
		t.trie.insert(piece, uint32(len(t.content)))
		t.content = append(t.content, piece)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	sum := sha256.Sum256([]byte(strings.Join(t.content, "\x00")))
	t.print = hex.EncodeToString(sum[:8])
	return t, nil
}

// Size is one more than the greatest id.
func (t *Tokenizer) Size() int { return len(t.content) }

// Added returns the added tokens.
func (t *Tokenizer) Added() []Added { return t.added }

// Fingerprint names the vocabulary: equal fingerprints, equal ids.
func (t *Tokenizer) Fingerprint() string { return t.print }

// ID is the id of an added token; ok is false if there is none of that content.
func (t *Tokenizer) ID(content string) (id uint32, ok bool) {
	for _, a := range t.added {
		if a.Content == content {
			return a.ID, true
		}
	}
	return 0, false
}

// Known says whether an id stands for a token.
func (t *Tokenizer) Known(id uint32) bool {
	return int(id) < len(t.content) && t.content[id] != ""
}

// Encode gives the tokens of a text.
func (t *Tokenizer) Encode(text string) []uint32 {
	return t.Append(make([]uint32, 0, len(text)/3+1), text)
}

// Append appends the tokens of a text to dst.
func (t *Tokenizer) Append(dst []uint32, text string) []uint32 {
	for len(text) > 0 {
		if text[0] == '<' {
			if a, ok := t.addedAt(text); ok {
				dst = append(dst, a.ID)
				text = text[len(a.Content):]
				continue
			}
		}
		// A piece must not run over the start of an added token, which would
		// otherwise depend on what stands before it.
		id, n := t.trie.longest(text)
		if n > 1 {
			if cut := t.cut(text[:n], text); cut < n {
				id, n = t.trie.longest(text[:cut])
			}
		}
		if n < 2 {
			id, n = uint32(text[0]), 1
		}
		dst = append(dst, id)
		text = text[n:]
	}
	return dst
}

// cut returns where the first added token starts in piece, which text begins with;
// its length if none does.
func (t *Tokenizer) cut(piece, text string) int {
	for i := 1; i < len(piece); i++ {
		if piece[i] == '<' {
			if _, ok := t.addedAt(text[i:]); ok {
				return i
			}
		}
	}
	return len(piece)
}

func (t *Tokenizer) addedAt(text string) (Added, bool) {
	for _, a := range t.added {
		if strings.HasPrefix(text, a.Content) {
			return a, true
		}
	}
	return Added{}, false
}

// Content is the text of one token, its exact bytes.
func (t *Tokenizer) Content(id uint32) (string, error) {
	if !t.Known(id) {
		return "", fmt.Errorf("%w: %d, the vocabulary has %d", ErrUnknownToken, id, len(t.content))
	}
	return t.content[id], nil
}

// Decode gives the exact bytes of tokens, added tokens included.
func (t *Tokenizer) Decode(ids []uint32) (string, error) {
	var b strings.Builder
	for i, id := range ids {
		if !t.Known(id) {
			return "", fmt.Errorf("token %d: %w: %d, the vocabulary has %d", i, ErrUnknownToken, id, len(t.content))
		}
		b.WriteString(t.content[id])
	}
	return b.String(), nil
}

// Text gives the bytes of tokens without the special ones, as a completion's text.
func (t *Tokenizer) Text(ids []uint32) (string, error) {
	var b strings.Builder
	for i, id := range ids {
		if !t.Known(id) {
			return "", fmt.Errorf("token %d: %w: %d, the vocabulary has %d", i, ErrUnknownToken, id, len(t.content))
		}
		if t.special(id) {
			continue
		}
		b.WriteString(t.content[id])
	}
	return b.String(), nil
}

func (t *Tokenizer) special(id uint32) bool {
	i := int(id) - firstAdded
	return i >= 0 && i < len(t.added) && t.added[i].Special
}
