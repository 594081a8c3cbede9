package dataset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readCSV gives each record of a comma-separated file with a header (RFC 4180) as an
// object of texts.
func readCSV(r io.Reader, path string, f func(int, Object, error) error) error {
	unreadable := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: %w", ErrUnreadable, path, fmt.Errorf(format, args...))
	}
	limit := &recordLimit{r: r}
	cr := csv.NewReader(limit)
	header, err := cr.Read()
	if errors.Is(err, io.EOF) {
		return unreadable("the file is empty: want a header that names the columns, and records")
	}
	if err != nil {
		return unreadable("header: %w", err)
	}
	if err := checkHeader(header); err != nil {
		return unreadable("%w", err)
	}
	for index := 0; ; index++ {
		limit.read = 0
		record, err := cr.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, csv.ErrFieldCount):
			line, _ := cr.FieldPos(0)
			err = f(index, nil, refuse(ReasonFieldCount, "line %d has %d fields, the header %d: quote texts that hold a comma", line, len(record), len(header)))
		case err != nil:
			return unreadable("row %d: %w: texts with quotes, commas or line breaks stand in quotes, a quote within them twice", index+1, err)
		default:
			o := make(Object, len(header))
			for i, name := range header {
				o[name] = record[i]
			}
			err = f(index, o, nil)
		}
		if err != nil {
			return err
		}
	}
}

func checkHeader(header []string) error {
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // the mark that some editors put first
	if len(header) == 1 && strings.ContainsAny(header[0], ";\t") {
		return fmt.Errorf("the header %q is separated by semicolons or tabs: want commas", header[0])
	}
	seen := map[string]bool{}
	for i, name := range header {
		if seen[name] {
			return fmt.Errorf("two columns are named %q: rename one", name)
		}
		seen[name] = true
		header[i] = name
	}
	return nil
}

// recordLimit ends the reading of a record that does not end, as one with a quote that is
// never closed.
type recordLimit struct {
	r    io.Reader
	read int64
}

func (l *recordLimit) Read(p []byte) (int, error) {
	if l.read > MaxLine {
		return 0, fmt.Errorf("the record is longer than %d bytes: is a quote not closed", MaxLine)
	}
	n, err := l.r.Read(p)
	l.read += int64(n)
	return n, err
}
