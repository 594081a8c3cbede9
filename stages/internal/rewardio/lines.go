package rewardio

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

// maxLine bounds one line in bytes.
const maxLine = 64 << 20

var (
	errLong      = fmt.Errorf("longer than %d bytes", maxLine)
	errUTF8      = errors.New("not UTF-8")
	errSurrogate = errors.New("a \\u escape that is half a pair: not a character")
)

// lines answers every line that is not blank, also one that cannot be read, of which
// answer is given the error, and its number. Whoever writes line by line and waits gets each answer at
// once. The output is JSON, in which encoding/json escapes control characters, so a
// terminal is safe.
func lines(r io.Reader, w io.Writer, answer func(n int, line []byte, err error) any) error {
	in, out := bufio.NewReaderSize(r, 64<<10), bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	var buffer []byte
	for n := 1; ; n++ {
		line, bad, err := readLine(in, buffer[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(fmt.Errorf("reading line %d: %w", n, err), out.Flush())
		}
		buffer = line
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF")) // of editors that mark UTF-8
		}
		line = bytes.TrimSpace(line)
		if bad == nil && !utf8.Valid(line) {
			bad = errUTF8
		}
		if len(line) > 0 {
			if err := enc.Encode(answer(n, line, bad)); err != nil {
				return fmt.Errorf("writing the answer to line %d: %w", n, err)
			}
		}
		if err != nil || in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// readLine appends one line to buffer; err is io.EOF where it is the last. Of a line that
// is too long, which is bad, the rest is passed over.
func readLine(in *bufio.Reader, buffer []byte) (line []byte, bad, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if bad == nil {
			buffer = append(buffer, part...)
		}
		if len(buffer) > maxLine {
			bad = errLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buffer, bad, err
		}
	}
}

// readObject reads a line. texts gives the texts that were read into to.
func readObject(line []byte, to any, texts func() []*string) error {
	if err := json.Unmarshal(line, to); err != nil {
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
	if bytes.Contains(line, []byte("\uFFFD")) || bytes.Contains(bytes.ToLower(line), []byte(`\ufffd`)) {
		return nil
	}
	for _, text := range texts() {
		if text != nil && strings.ContainsRune(*text, utf8.RuneError) {
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
