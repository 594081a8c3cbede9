package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// opened is a Parquet file that stays open until Close, since batches of it may be
// decoded later.
func (a *Archive) opened(name string) (parquetFile, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if pf, ok := a.parquet[name]; ok {
		return pf, nil
	}
	pf, err := openParquet(name)
	if err == nil {
		a.parquet[name] = pf
	}
	return pf, err
}

// Close closes the files; batches can then no longer be decoded.
func (a *Archive) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []error
	for _, pf := range a.parquet {
		all = append(all, pf.file.Close())
	}
	clear(a.parquet)
	return errors.Join(all...)
}

// Batch is some rows of an archive's file, in order, that have been read and not decoded.
// Batches may be decoded at once on several goroutines.
type Batch struct {
	// Rows counts them: of JSON lines every line, also the first one and blank ones.
	Rows int64
	// Share is how much of the file has been read behind them, from 0 to 1.
	Share float64
	// decode gives the records of which want is true.
	decode func(want func(topic, kind string) bool) ([]Record, error)
	topic  string
}

// Records decodes the records of the batch's topic; where types are given, only those
// that say they are of one of them.
func (b Batch) Records(types ...string) ([]Record, error) {
	return b.decode(func(topic, kind string) bool {
		return topic == b.topic && (len(types) == 0 || slices.Contains(types, kind))
	})
}

// Batches calls f with the rows of a topic as they stand, behind the first skip ones.
func (a *Archive) Batches(topic string, skip int64, f func(Batch) error) error {
	name := a.file(topic)
	if name == "" {
		return fmt.Errorf("%w: %s has no topic %s: it has %v", ErrNotFound, a.path, topic, a.Topics())
	}
	of := func(b Batch) error {
		decode := b.decode
		b.topic = topic
		b.decode = func(want func(topic, kind string) bool) ([]Record, error) {
			all, err := decode(want)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return all, nil
		}
		return f(b)
	}
	if formatOf(name) == Parquet {
		pf, err := a.opened(name)
		if err != nil {
			return err
		}
		return parquetBatches(pf, skip, of)
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return lineBatches(file, name, skip, of)
}

// blockBytes is about how many bytes of JSON lines are a batch.
const blockBytes = 1 << 20

// lineBatches cuts a file into blocks of whole lines.
func lineBatches(file *os.File, name string, skip int64, f func(Batch) error) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var rest []byte // the beginning of a line
	size, read := blockBytes, int64(0)
	for line := int64(1); ; {
		block := make([]byte, len(rest)+size)
		copy(block, rest)
		n, err := io.ReadFull(file, block[len(rest):])
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return fmt.Errorf("%s: %w", name, err)
		}
		block = block[:len(rest)+n]
		read += int64(n)
		end := bytes.LastIndexByte(block, '\n') + 1
		if last {
			end = len(block)
		} else if end == 0 {
			if len(block) > maxLine {
				return fmt.Errorf("%s: %w: line %d is over %d bytes", name, ErrUnreadable, line, maxLine)
			}
			// A long line: as much again.
			rest, size = block, len(block)
			continue
		}
		rest, size = block[end:], blockBytes
		rows := countLines(block[:end])
		text, from := block[:end], line
		for ; skip > 0 && rows > 0; skip, rows, from = skip-1, rows-1, from+1 {
			_, text, _ = bytes.Cut(text, []byte("\n"))
		}
		line = from + rows
		if rows > 0 {
			decode := func(want func(topic, kind string) bool) ([]Record, error) { return parseLines(text, from, want) }
			if err := f(Batch{Rows: rows, Share: float64(read) / float64(max(info.Size(), read)), decode: decode}); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// countLines counts lines, of which the last may lack its end.
func countLines(text []byte) int64 {
	n := int64(bytes.Count(text, []byte("\n")))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// parseLines reads rows that begin with the line of that number.
func parseLines(text []byte, line int64, want func(topic, kind string) bool) (all []Record, err error) {
	for ; len(text) > 0; line++ {
		var row []byte
		row, text, _ = bytes.Cut(text, []byte("\n"))
		row = bytes.TrimSpace(row)
		if len(row) == 0 {
			continue
		}
		r, ok, err := parseLine(row, want)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if ok {
			all = append(all, r)
		}
	}
	return all, nil
}
