package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/ianaindex"
)

// ErrSource occurs when a file is not a program that Python could read.
var ErrSource = errors.New("source")

// readProgram reads FILE, or stdin for "-", as the interpreter would.
func readProgram(path string, stdin io.Reader) (string, error) {
	data, name := []byte(nil), path
	var err error
	if path == "-" {
		name = "<stdin>"
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return "", fmt.Errorf("read program: %w", err)
	}
	code, err := decodeSource(data)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrSource, name, err)
	}
	return code, nil
}

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	// The two of PEP 263: a declaration, and a line after which one may follow.
	cookie = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)`)
	blank  = regexp.MustCompile(`^[ \t\f]*(?:#.*)?$`)
)

// decodeSource returns a file's text by its byte order mark, its encoding
// declaration (PEP 263) or, without either, as UTF-8.
func decodeSource(data []byte) (string, error) {
	data, marked := bytes.CutPrefix(data, byteOrderMark)
	declared := declaration(data)
	name := normalized(declared)
	if marked && name != "" && name != "utf-8" {
		return "", fmt.Errorf("encoding problem: %s with a byte order mark of UTF-8", declared)
	}
	if name == "" || name == "utf-8" {
		return asUTF8(data, declared)
	}
	enc, err := lookUp(name)
	if err != nil {
		return "", fmt.Errorf("unknown encoding: %s", declared)
	}
	text, err := enc.NewDecoder().Bytes(data)
	if err != nil || bytes.ContainsRune(text, utf8.RuneError) {
		return "", fmt.Errorf("encoding problem: %s: its bytes are not valid in that encoding", declared)
	}
	return string(text), nil
}

// declaration returns the encoding that one of the first two lines names.
func declaration(data []byte) string {
	for range 2 {
		line := data
		if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
			line = data[:i]
			data = bytes.TrimPrefix(data[i:], []byte("\r"))
			data = bytes.TrimPrefix(data, []byte("\n"))
		} else {
			data = nil
		}
		if m := cookie.FindSubmatch(line); m != nil {
			return string(m[1])
		}
		if !blank.Match(line) {
			return ""
		}
	}
	return ""
}

// normalized is the name as Python compares it, "" for none.
func normalized(declared string) string {
	name := strings.ReplaceAll(strings.ToLower(declared), "_", "-")
	switch {
	case name == "utf8" || name == "u8" || name == "utf" || name == "cp65001" || name == "utf-8" || strings.HasPrefix(name, "utf-8-"):
		return "utf-8"
	case name == "latin-1" || name == "latin1" || name == "l1" || name == "8859" || name == "iso-8859-1" || name == "iso8859-1" || name == "iso-latin-1" ||
		strings.HasPrefix(name, "latin-1-") || strings.HasPrefix(name, "iso-8859-1-") || strings.HasPrefix(name, "iso-latin-1-"):
		return "iso-8859-1"
	case name == "ascii" || name == "us-ascii" || name == "646":
		return "us-ascii"
	}
	return name
}

func lookUp(name string) (encoding.Encoding, error) {
	// The registry of names knows Latin-1 as the web's windows-1252.
	if name == "iso-8859-1" {
		return charmap.ISO8859_1, nil
	}
	if number, isPage := strings.CutPrefix(name, "cp"); isPage {
		for _, prefix := range []string{"windows-", "IBM", "cp"} {
			if enc, err := ianaindex.IANA.Encoding(prefix + number); err == nil && enc != nil {
				return enc, nil
			}
		}
	}
	for _, name := range []string{name, strings.ReplaceAll(name, "-", "_")} {
		if enc, err := ianaindex.IANA.Encoding(name); err == nil && enc != nil {
			return enc, nil
		}
	}
	return nil, fmt.Errorf("encoding %q is not known", name)
}

func asUTF8(data []byte, declared string) (string, error) {
	if utf8.Valid(data) {
		return string(data), nil
	}
	line := 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		data = data[size:]
	}
	if declared != "" {
		return "", fmt.Errorf("encoding problem: %s: byte 0x%02x in line %d", declared, data[0], line)
	}
	return "", fmt.Errorf(`non-UTF-8 code starting with '\x%02x' in line %d, but no encoding declared; see PEP 263`, data[0], line)
}
