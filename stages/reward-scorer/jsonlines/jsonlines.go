package jsonlines

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// MaxLine bounds one line in bytes.
	MaxLine = 64 << 20
	// MaxBatch bounds the lines that are answered together: no line is added to so many bytes.
	MaxBatch = 8 << 20
	// Usual is how many lines are answered together where nothing asks for another number.
	Usual = 64
)

var (
	errLong      = fmt.Errorf("longer than %d bytes", MaxLine)
	errUTF8      = errors.New("not UTF-8")
	errSurrogate = errors.New("a \\u escape that is half a pair: not a character")
)

// Line is one line that is not blank.
type Line struct {
	N    int // its number
	Text []byte
	Err  error // why it cannot be read
}

// Answer answers every line that is not blank, also one that cannot be read. What is there
// to read is answered together, up to most lines, and whatever was read is answered before
// more is waited for, so whoever writes line by line and waits gets each answer at once. A
// line counts as there when its beginning is: it is waited for by those before it, or long
// lines, of which a pipe holds one and a half, would never be answered together. The output
// is JSON, in which encoding/json escapes control characters, so a terminal is safe.
func Answer(r io.Reader, w io.Writer, most int, answer func([]Line) []any) error {
	in, out := bufio.NewReaderSize(r, 64<<10), bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	var batch []Line
	size := 0
	for n := 1; ; n++ {
		text, bad, err := readLine(in)
		broken := err != nil && !errors.Is(err, io.EOF)
		if n == 1 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF")) // of editors that mark UTF-8
		}
		text = bytes.TrimSpace(text)
		if bad == nil && !utf8.Valid(text) {
			bad = errUTF8
		}
		if len(text) > 0 && !broken {
			batch = append(batch, Line{n, text, bad})
			size += len(text)
		}
		if err == nil && len(batch) < most && size < MaxBatch && in.Buffered() > 0 {
			continue
		}
		for i, a := range answer(batch) {
			if err := enc.Encode(a); err != nil {
				return fmt.Errorf("writing the answer to line %d: %w", batch[i].N, err)
			}
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		batch, size = nil, 0
		switch {
		case broken:
			return fmt.Errorf("reading line %d: %w", n, err)
		case err != nil:
			return nil
		}
	}
}

// readLine reads one line; err is io.EOF where it is the last. Of a line that is too long,
// which is bad, the rest is passed over.
func readLine(in *bufio.Reader) (text []byte, bad, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if bad == nil {
			text = append(text, part...)
		}
		if len(text) > MaxLine {
			bad = errLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, bad, err
		}
	}
}

// Object reads a line. texts gives the texts that were read into to.
func Object(text []byte, to any, texts func() []*string) error {
	if err := json.Unmarshal(text, to); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && kind.Field != "" {
			return fmt.Errorf("%s is a JSON %s, want a %s", kind.Field, kind.Value, jsonName(kind.Type.String()))
		}
		if errors.As(err, &kind) {
			return fmt.Errorf("a JSON %s, want an object", kind.Value)
		}
		return err
	}
	// Of half a pair encoding/json makes U+FFFD, which would then be equal to another's.
	if bytes.Contains(text, []byte("\uFFFD")) || bytes.Contains(bytes.ToLower(text), []byte(`\ufffd`)) {
		return nil
	}
	for _, t := range texts() {
		if t != nil && strings.ContainsRune(*t, utf8.RuneError) {
			return errSurrogate
		}
	}
	return nil
}

// jsonName is what JSON calls a type of Go.
func jsonName(kind string) string {
	switch kind {
	case "int", "float64":
		return "number"
	case "bool":
		return "boolean"
	}
	return kind
}

// Text is a text that may be given as a JSON number, which then is the text as it is
// written: data sets have references such as 42.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(raw []byte) error {
	var s string
	if len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		*t = Text(raw)
		return nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return errText
	}
	*t = Text(s)
	return nil
}

var errText = errors.New("want a string or a number")
