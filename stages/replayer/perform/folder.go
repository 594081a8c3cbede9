package perform

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

// FolderSink writes an archive, and at the end replay.json, the summary. It can itself
// be replayed. JSON lines are written as they come; what is to be Parquet, to which
// nothing can be added, waits in the state folder until all of it is there.
type FolderSink struct {
	dir, id, format, state string
	files                  map[string]*outFile
}

type outFile struct {
	file    *os.File
	w       *bufio.Writer
	bytes   int64
	records int64
}

// NewFolderSink writes into dir, which must be empty or the same replay's. format is
// archive.JSONL or archive.Parquet, state the replay's state folder.
func NewFolderSink(dir, id, format, state string) *FolderSink {
	return &FolderSink{dir: dir, id: id, format: format, state: state, files: map[string]*outFile{}}
}

// WantsJSON implements Sink.
func (s *FolderSink) WantsJSON() bool { return s.format == archive.JSONL }

// Resume implements Sink.
func (s *FolderSink) Resume(_ context.Context, topics []string, m Mark) error {
	if err := s.claim(m.zero()); err != nil {
		return err
	}
	for _, topic := range topics {
		f, err := openOut(s.path(topic), m.Files[topic])
		if err == nil && m.Files[topic].Bytes == 0 && s.format == archive.JSONL {
			err = f.write(archive.JSONHeader())
		}
		if err != nil {
			return err
		}
		s.files[topic] = f
	}
	return nil
}

// path is where a topic is written while the replay is under way.
func (s *FolderSink) path(topic string) string {
	if s.format == archive.Parquet {
		return filepath.Join(s.state, topic+".rows")
	}
	return filepath.Join(s.dir, topic+"."+archive.JSONL)
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

// openOut cuts a file to its mark.
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
	return &outFile{file, bufio.NewWriterSize(file, 1<<20), m.Bytes, m.Records}, nil
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
		if s.format == archive.JSONL {
			row = archive.AppendJSON(row[:0], archive.Record{Topic: it.Topic, Offset: f.records, Time: it.Time}, it.JSON)
		} else {
			row = appendRow(row[:0], it)
		}
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
func (s *FolderSink) Finish(ctx context.Context, sum Summary, told func(done, total int64)) error {
	var done, total int64
	for _, f := range s.files {
		total += f.records
	}
	for topic, f := range s.files {
		if s.format == archive.Parquet {
			err := s.columns(ctx, topic, f, func() {
				done++
				told(done, total)
			})
			if err != nil {
				return fmt.Errorf("%s: %w", f.file.Name(), err)
			}
		}
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

// columns makes a topic's Parquet file of its rows, whole or not at all.
func (s *FolderSink) columns(ctx context.Context, topic string, f *outFile, wrote func()) error {
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	out, err := archive.CreateFile(filepath.Join(s.dir, topic+"."+archive.Parquet), archive.Parquet)
	if err != nil {
		return err
	}
	defer out.Abort()
	rows := rowReader{r: bufio.NewReaderSize(f.file, 1<<20)}
	for n := int64(0); ; n++ {
		it, err := rows.next()
		if errors.Is(err, io.EOF) && n == f.records {
			return out.Close()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = out.Write(archive.Record{Topic: topic, Offset: n, Time: it.Time, Record: it.Record})
		}
		if err != nil {
			return err
		}
		wrote()
	}
}

// Clean implements Sink.
func (s *FolderSink) Clean() error {
	if s.format != archive.Parquet {
		return nil
	}
	left, err := filepath.Glob(filepath.Join(s.state, "*.rows"))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// Holds implements Sink.
func (s *FolderSink) Holds(_ context.Context, topics []string, _ Mark) error {
	for _, topic := range topics {
		name := filepath.Join(s.dir, topic+"."+s.format)
		if _, err := os.Stat(name); err != nil {
			return fmt.Errorf("%w: the replay was finished, and %s is gone (%w): choose another --id", ErrOther, name, err)
		}
	}
	return nil
}
