package replayer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-rl/sluice/schemas/archive"
)

// FolderSink writes an archive of JSON lines, and at the end replay.json, the summary.
// It can itself be replayed.
type FolderSink struct {
	dir, id string
	files   map[string]*outFile
}

type outFile struct {
	file    *os.File
	w       *bufio.Writer
	bytes   int64
	records int64
}

// NewFolderSink writes into dir, which must be empty or the same replay's.
func NewFolderSink(dir, id string) *FolderSink {
	return &FolderSink{dir: dir, id: id, files: map[string]*outFile{}}
}

// WantsJSON implements Sink.
func (s *FolderSink) WantsJSON() bool { return true }

// Resume implements Sink.
func (s *FolderSink) Resume(_ context.Context, topics []string, m Mark) error {
	if err := s.claim(m.zero()); err != nil {
		return err
	}
	for _, topic := range topics {
		f, err := openOut(filepath.Join(s.dir, topic+"."+archive.JSONL), m.Files[topic])
		if err != nil {
			return err
		}
		s.files[topic] = f
	}
	return nil
}

// claim marks the folder as this replay's until it is finished.
func (s *FolderSink) claim(fresh bool) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	mark := filepath.Join(s.dir, archive.Unfinished)
	said, err := os.ReadFile(mark)
	if err == nil && strings.TrimSpace(string(said)) != s.id {
		return fmt.Errorf("%w: %s is written by replay %.100q", ErrOther, s.dir, said)
	}
	if err == nil {
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// The state folder may lie within.
		if fresh && !strings.HasPrefix(e.Name(), ".") {
			return fmt.Errorf("%w: %s holds %s: name an empty folder", ErrOther, s.dir, e.Name())
		}
	}
	return os.WriteFile(mark, []byte(s.id+"\n"), 0o644)
}

// openOut cuts a file to its mark; without one it begins.
func openOut(path string, m FileMark) (*outFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*outFile, error) { return nil, errors.Join(err, file.Close()) }
	info, err := file.Stat()
	if err != nil {
		return fail(err)
	}
	if info.Size() < m.Bytes {
		return fail(fmt.Errorf("%w: %s has %d bytes, the checkpoint says %d", ErrOther, path, info.Size(), m.Bytes))
	}
	if err := file.Truncate(m.Bytes); err != nil {
		return fail(err)
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return fail(err)
	}
	f := &outFile{file, bufio.NewWriterSize(file, 1<<20), m.Bytes, m.Records}
	if m.Bytes == 0 {
		err = f.write(archive.JSONHeader())
	}
	if err != nil {
		return fail(err)
	}
	return f, nil
}

func (f *outFile) write(b []byte) error {
	n, err := f.w.Write(b)
	f.bytes += int64(n)
	return err
}

// Write implements Sink.
func (s *FolderSink) Write(_ context.Context, items []Item) error {
	var row []byte
	for _, it := range items {
		f := s.files[it.Topic]
		row = archive.AppendJSON(row[:0], archive.Record{Topic: it.Topic, Offset: f.records, Time: it.Time}, it.JSON)
		if err := f.write(row); err != nil {
			return err
		}
		f.records++
	}
	return nil
}

// Sync implements Sink.
func (s *FolderSink) Sync(context.Context) (Mark, error) {
	m := Mark{Files: map[string]FileMark{}}
	for topic, f := range s.files {
		if err := errors.Join(f.w.Flush(), f.file.Sync()); err != nil {
			return m, err
		}
		m.Files[topic] = FileMark{f.bytes, f.records}
	}
	return m, nil
}

// Finish implements Sink.
func (s *FolderSink) Finish(sum Summary) error {
	for _, f := range s.files {
		if err := f.file.Close(); err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(sum, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "replay.json"), append(b, '\n'), 0o644); err != nil {
		return err
	}
	err = os.Remove(filepath.Join(s.dir, archive.Unfinished))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
