package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// ErrUnreadable is in the chain of an error about a file as a whole: not there, not
// parquet, not JSON.
var ErrUnreadable = errors.New("unreadable problem file")

// MaxLine bounds one line of a JSONL file, in bytes.
const MaxLine = 16 << 20

// ReadObjects calls f with each row of a file, numbered from 0: parquet and Arrow are told
// by how they begin, CSV by its name, all else is JSONL; JSONL and CSV may be compressed
// with gzip or zstd. A line that is no JSON object is given to f as a refusal, so that it is
// counted and not lost; an error of f ends the reading.
func ReadObjects(path string, f func(index int, o Object, refused error) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	defer file.Close()
	head := make([]byte, 64)
	n, _ := file.ReadAt(head, 0)
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte(parquetMagic)):
		return readParquet(file, f)
	case bytes.HasPrefix(head, []byte(arrowMagic)):
		return readArrow(file, false, f)
	case bytes.HasPrefix(head, []byte(streamMagic)):
		return readArrow(file, true, f)
	}
	content, name, with, err := decompressed(file, head)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnreadable, path, err)
	}
	return errors.Join(readText(content, path, name, with, f), content.Close())
}

// readText reads JSONL or CSV. name is the path without what compression added to it.
func readText(r io.Reader, path, name, with string, f func(int, Object, error) error) error {
	br := bufio.NewReaderSize(r, 1<<16)
	head, err := br.Peek(64)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %s: %w", ErrUnreadable, path, err)
	}
	if what := foreign(head); what != "" {
		within := ""
		if with != "" {
			within = "compressed with " + with + " and within it "
		}
		return fmt.Errorf("%w: %s is %s%s: want parquet, Arrow, CSV, or JSONL with one object per line", ErrUnreadable, path, within, what)
	}
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".parquet", ".arrow":
		return fmt.Errorf("%w: %s does not begin like a file of %s", ErrUnreadable, path, ext)
	case ".csv":
		return readCSV(br, path, f)
	}
	return readJSONL(br, path, f)
}

const parquetMagic = "PAR1"

// foreign names a file of another kind by how it begins, "" if it may be JSONL.
func foreign(head []byte) string {
	for _, k := range []struct{ begins, name string }{
		{gzipMagic, "compressed with gzip"}, {zstdMagic, "compressed with zstd"}, {parquetMagic, "a parquet file"}, {"PK\x03\x04", "a zip archive or a spreadsheet (xlsx)"},
		{arrowMagic, "an Arrow file"}, {streamMagic, "an Arrow stream"}, {"version https://git-lfs", "a Git LFS pointer, not the data"},
		{"SQLite format 3", "an SQLite database"}, {"\xff\xfe", "UTF-16 text"}, {"\xfe\xff", "UTF-16 text"},
	} {
		if bytes.HasPrefix(head, []byte(k.begins)) {
			return k.name
		}
	}
	if text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n"); bytes.HasPrefix(text, []byte("[")) {
		return "a JSON array"
	}
	return ""
}

func readJSONL(r io.Reader, path string, f func(int, Object, error) error) error {
	index := -1
	return eachLine(r, path, func(offset int64, line []byte) error {
		if offset == 0 {
			line = bytes.TrimPrefix(line, []byte("\ufeff")) // the mark that some editors put first
		}
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		index++
		if !utf8.Valid(line) {
			return f(index, nil, refuse(ReasonNotUTF8, "the line is no UTF-8: convert the file, from Latin-1 perhaps"))
		}
		o, err := parseObject(line)
		if err != nil {
			return f(index, nil, refuse(ReasonNotAnObject, "%s", err))
		}
		return f(index, o, nil)
	})
}

func parseObject(line []byte) (Object, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	var o Object
	if err := dec.Decode(&o); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if o == nil {
		return nil, errors.New("not a JSON object but null")
	}
	if dec.More() {
		return nil, errors.New("text follows the JSON object")
	}
	return o, nil
}

// eachLine calls f with each line, without its newline, and the offset it starts at.
// The slice is only valid during the call.
func eachLine(r io.Reader, path string, f func(offset int64, line []byte) error) error {
	br := bufio.NewReaderSize(r, 1<<16)
	var offset int64
	var long []byte
	for {
		part, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, part...); len(long) > MaxLine {
				return fmt.Errorf("%w: %s: the line at byte %d is longer than %d bytes", ErrUnreadable, path, offset, MaxLine)
			}
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: %s: %w", ErrUnreadable, path, err)
		}
		line := part
		if len(long) > 0 {
			long = append(long, part...)
			line = long
		}
		if len(line) > 0 {
			if ferr := f(offset, bytes.TrimRight(line, "\r\n")); ferr != nil {
				return ferr
			}
		}
		if err != nil {
			return nil
		}
		offset += int64(len(line))
		long = long[:0]
	}
}
