package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// ErrUnreadable is in the chain of an error about a file as a whole: not there, not
// parquet, not JSON.
var ErrUnreadable = errors.New("unreadable problem file")

// MaxLine bounds one line of a JSONL file, in bytes.
const MaxLine = 16 << 20

// ReadObjects calls f with each row of a parquet (.parquet) or JSONL file, numbered
// from 0. A line that is no JSON object is given to f as a refusal, so that it is
// counted and not lost; an error of f ends the reading.
func ReadObjects(path string, f func(index int, o Object, refused error) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	defer file.Close()
	magic := make([]byte, 4)
	if n, _ := file.ReadAt(magic, 0); n == 4 && string(magic) == "PAR1" {
		return readParquet(file, f)
	}
	if strings.HasSuffix(path, ".parquet") {
		return fmt.Errorf("%w: %s does not begin like a parquet file", ErrUnreadable, path)
	}
	return readJSONL(file, path, f)
}

func readJSONL(r io.Reader, path string, f func(int, Object, error) error) error {
	index := -1
	return eachLine(r, path, func(_ int64, line []byte) error {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		index++
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
