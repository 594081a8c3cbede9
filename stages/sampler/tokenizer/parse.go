package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// FileName is the name of the file in a model's folder.
const FileName = "tokenizer.json"

// Open reads the tokenizer of a model's folder.
func Open(dir string) (*Tokenizer, error) {
	path := filepath.Join(dir, FileName)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("no tokenizer: %w", err)
	}
	t, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// file is tokenizer.json. What is not named here (post_processor, decoder, truncation,
// padding) does not concern ids without added ends.
type file struct {
	Added        []addedToken    `json:"added_tokens"`
	Normalizer   json.RawMessage `json:"normalizer"`
	PreTokenizer json.RawMessage `json:"pre_tokenizer"`
	Model        *model          `json:"model"`
}

type addedToken struct {
	ID         *uint32 `json:"id"`
	Content    string  `json:"content"`
	SingleWord bool    `json:"single_word"`
	LStrip     bool    `json:"lstrip"`
	RStrip     bool    `json:"rstrip"`
	Normalized bool    `json:"normalized"`
	Special    bool    `json:"special"`
}

type model struct {
	Type         string            `json:"type"`
	Dropout      *float64          `json:"dropout"`
	Prefix       string            `json:"continuing_subword_prefix"`
	Suffix       string            `json:"end_of_word_suffix"`
	ByteFallback bool              `json:"byte_fallback"`
	IgnoreMerges bool              `json:"ignore_merges"`
	Vocab        map[string]uint32 `json:"vocab"`
	Merges       []mergePair       `json:"merges"`
}

// mergePair is written as ["a", "b"] or as "a b".
type mergePair [2]string

func (p *mergePair) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var both []string
		if err := json.Unmarshal(b, &both); err != nil {
			return err
		}
		if len(both) != 2 {
			return fmt.Errorf("a merge of %d tokens, want 2", len(both))
		}
		*p = mergePair(both)
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	left, right, ok := strings.Cut(s, " ")
	if !ok || strings.Contains(right, " ") {
		return fmt.Errorf("merge %q: want two tokens with a space between", s)
	}
	*p = mergePair{left, right}
	return nil
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// Parse reads a tokenizer.json.
func Parse(b []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("not a tokenizer.json: %w", err)
	}
	switch {
	case f.Model == nil:
		return nil, errors.New(`not a tokenizer.json: it has no "model"`)
	case f.Model.Type != "BPE":
		return nil, unsupported("a model of type %q; byte-level BPE is read", f.Model.Type)
	case f.Model.ByteFallback:
		return nil, unsupported("BPE over characters with byte_fallback (sentencepiece: Llama 2, Gemma); byte-level BPE is read. Let the server render and tokenise instead")
	case f.Model.Dropout != nil && *f.Model.Dropout != 0:
		return nil, unsupported("dropout %g: its ids are random", *f.Model.Dropout)
	case f.Model.Prefix != "" || f.Model.Suffix != "":
		return nil, unsupported("continuing_subword_prefix %q, end_of_word_suffix %q", f.Model.Prefix, f.Model.Suffix)
	}
	t := &Tokenizer{wholeFirst: f.Model.IgnoreMerges}
	t.mergers = sync.Pool{New: func() any { return newMerger(t) }}
	var err error
	if t.normalise, err = readNormalizer(f.Normalizer); err != nil {
		return nil, err
	}
	if t.cut, err = readPreTokenizer(f.PreTokenizer); err != nil {
		return nil, err
	}
	if err := t.readVocabulary(f.Model); err != nil {
		return nil, err
	}
	if err := t.readAdded(f.Added); err != nil {
		return nil, err
	}
	return t, nil
}

// mostIDs bounds what a broken file can make us hold.
const mostIDs = 1 << 22

// put gives an id its bytes.
func (t *Tokenizer) put(id uint32, text string) error {
	if id >= mostIDs {
		return fmt.Errorf("token %q has id %d: the largest that is read is %d", text, id, mostIDs-1)
	}
	for int(id) >= len(t.tokens) {
		t.tokens = append(t.tokens, make([]string, int(id)-len(t.tokens)+1)...)
		t.known = append(t.known, make([]bool, int(id)-len(t.known)+1)...)
	}
	t.tokens[id], t.known[id] = text, true
	return nil
}

func (t *Tokenizer) readVocabulary(m *model) error {
	t.ids = make(map[string]uint32, len(m.Vocab))
	for written, id := range m.Vocab {
		text, ok := bytesOf(written)
		if !ok {
			// Special tokens may stand in the vocabulary as they are; they are never merged.
			text = written
		} else {
			t.ids[text] = id
		}
		if int(id) < len(t.known) && t.known[id] {
			return fmt.Errorf("tokens %q and %q have one id, %d", t.tokens[id], text, id)
		}
		if err := t.put(id, text); err != nil {
			return err
		}
	}
	for b := range 256 {
		id, ok := t.ids[string([]byte{byte(b)})]
		if !ok {
			return unsupported("the vocabulary has no token for byte 0x%02x: it is not byte-level, or not whole", b)
		}
		t.bytes[b] = id
	}
	t.merges = newMergeTable(len(m.Merges))
	for rank, p := range m.Merges {
		left, okLeft := m.Vocab[p[0]]
		right, okRight := m.Vocab[p[1]]
		id, ok := m.Vocab[p[0]+p[1]]
		if !okLeft || !okRight || !ok {
			return fmt.Errorf("merge %d of %q and %q: the vocabulary lacks one of them or what they become", rank, p[0], p[1])
		}
		t.merges.add(left, right, rule{uint32(rank), id})
	}
	return nil
}

func (t *Tokenizer) readAdded(tokens []addedToken) error {
	var raw, normalised []AddedToken
	t.added.special = map[uint32]bool{}
	for _, a := range tokens {
		switch {
		case a.ID == nil || a.Content == "":
			return fmt.Errorf("added token %q has no id or no content", a.Content)
		case a.SingleWord || a.LStrip || a.RStrip:
			return unsupported("added token %q takes white space or word boundaries into account", a.Content)
		}
		if err := t.put(*a.ID, a.Content); err != nil {
			return err
		}
		token := AddedToken{ID: *a.ID, Text: a.Content, Special: a.Special}
		t.added.all = append(t.added.all, token)
		t.added.special[token.ID] = a.Special
		if a.Normalized {
			token.Text = t.normalise(token.Text)
			normalised = append(normalised, token)
		} else {
			raw = append(raw, token)
		}
	}
	t.added.raw, t.added.normalised = newFinder(raw), newFinder(normalised)
	return nil
}

func isNull(b json.RawMessage) bool {
	return len(b) == 0 || bytes.Equal(bytes.TrimSpace(b), []byte("null"))
}

func readNormalizer(b json.RawMessage) (func(string) string, error) {
	if isNull(b) {
		return unchanged, nil
	}
	var n struct {
		Type        string            `json:"type"`
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	if err := json.Unmarshal(b, &n); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	switch {
	case n.Type == "NFC":
		return nfc, nil
	case n.Type == "Sequence" && len(n.Normalizers) == 0:
		return unchanged, nil
	case n.Type == "Sequence" && len(n.Normalizers) == 1:
		return readNormalizer(n.Normalizers[0])
	}
	return nil, unsupported("normalizer %s; none and NFC are read", short(b))
}

// short is a part of the file in a message.
func short(b json.RawMessage) string {
	const most = 200
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}

// preTokenizer is one step of cutting.
type preTokenizer struct {
	Type          string            `json:"type"`
	PreTokenizers []json.RawMessage `json:"pretokenizers"`

	// ByteLevel. Left out, use_regex is true.
	AddPrefixSpace bool  `json:"add_prefix_space"`
	UseRegex       *bool `json:"use_regex"`

	// Digits
	IndividualDigits bool `json:"individual_digits"`

	// Split
	Pattern struct {
		Regex *string
	} `json:"pattern"`
	Behavior string `json:"behavior"`
	Invert   bool   `json:"invert"`
}

func readPreTokenizer(b json.RawMessage) (cutter, error) {
	cutters, byteLevel, err := readSteps(b)
	if err != nil {
		return nil, err
	}
	if !byteLevel {
		return nil, unsupported("pre_tokenizer %s has no ByteLevel step: the vocabulary is not over bytes", short(b))
	}
	return inTurn(cutters), nil
}

// readSteps gives the cutters of a step and those below it, and whether one of them turns
// characters into bytes, which must be the last.
func readSteps(b json.RawMessage) (cutters []cutter, byteLevel bool, err error) {
	if isNull(b) {
		return nil, false, nil
	}
	var p preTokenizer
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, false, fmt.Errorf("pre_tokenizer: %w", err)
	}
	switch p.Type {
	case "Sequence":
		for _, step := range p.PreTokenizers {
			if byteLevel {
				return nil, false, unsupported("pre_tokenizer %s after ByteLevel", short(step))
			}
			more, last, err := readSteps(step)
			if err != nil {
				return nil, false, err
			}
			cutters, byteLevel = append(cutters, more...), last
		}
		return cutters, byteLevel, nil
	case "ByteLevel":
		switch {
		case p.AddPrefixSpace:
			return nil, false, unsupported("ByteLevel with add_prefix_space")
		case p.UseRegex == nil || *p.UseRegex:
			return []cutter{cutGPT2}, true, nil
		}
		return nil, true, nil
	case "Digits":
		return []cutter{cutDigits(p.IndividualDigits)}, false, nil
	case "Split":
		if p.Pattern.Regex == nil || p.Behavior != "Isolated" || p.Invert {
			return nil, false, unsupported("pre_tokenizer %s", short(b))
		}
		cut, ok := patterns[*p.Pattern.Regex]
		if !ok {
			return nil, false, unsupported("Split by the pattern %s, which no tokenizer known here uses", *p.Pattern.Regex)
		}
		return []cutter{cut}, false, nil
	}
	return nil, false, unsupported("pre_tokenizer %s", short(b))
}

// letters is how byte-level vocabularies write each byte: printable ones of Latin-1 as
// they are, the others as the characters from U+0100 on (GPT-2's encoder.py).
var letters = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	next := rune(0x100)
	for b := range 256 {
		if '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b && b <= 0xFF {
			m[rune(b)] = byte(b)
			continue
		}
		m[next] = byte(b)
		next++
	}
	return m
}()

// bytesOf reads a token as a byte-level vocabulary writes it.
func bytesOf(written string) (string, bool) {
	b := make([]byte, 0, len(written))
	for _, r := range written {
		c, ok := letters[r]
		if !ok {
			return "", false
		}
		b = append(b, c)
	}
	return string(b), true
}
