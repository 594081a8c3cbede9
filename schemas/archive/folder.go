package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// The formats of files, which are also their extensions.
const (
	JSONL   = "jsonl"
	Parquet = "parquet"
)

// Unfinished is a file that stands in a folder until its archive is whole.
const Unfinished = "UNFINISHED"

// Writer writes an archive. It comes into being whole: at Close.
type Writer struct {
	dir, partial, format string
	files                map[string]*FileWriter
}

// Create begins the archive dir, which must not exist or be empty. Until Close it is
// written under another name beside it.
func Create(dir, format string) (*Writer, error) {
	if format != JSONL && format != Parquet {
		return nil, fmt.Errorf("format %q: want %s or %s", format, JSONL, Parquet)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s exists and is not empty: name another folder", dir)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".partial-")
	if err != nil {
		return nil, err
	}
	return &Writer{dir, partial, format, map[string]*FileWriter{}}, os.Chmod(partial, 0o755)
}

// Begin makes a topic's file even if no record follows.
func (w *Writer) Begin(topic string) error {
	_, err := w.file(topic)
	return err
}

// Write appends a record. Records of one topic are given by partition and offset.
func (w *Writer) Write(r Record) error {
	f, err := w.file(r.Topic)
	if err != nil {
		return err
	}
	return f.Write(r)
}

func (w *Writer) file(topic string) (*FileWriter, error) {
	if f := w.files[topic]; f != nil {
		return f, nil
	}
	if topic == "" || topic != filepath.Base(topic) || strings.HasPrefix(topic, ".") {
		return nil, fmt.Errorf("topic %q cannot name a file", topic)
	}
	f, err := CreateFile(filepath.Join(w.partial, topic+"."+w.format), w.format)
	if err != nil {
		return nil, err
	}
	w.files[topic] = f
	return f, nil
}

// Close makes the archive whole and gives it its name.
func (w *Writer) Close() error {
	for _, f := range w.files {
		if err := f.Close(); err != nil {
			return err
		}
	}
	// An empty folder of the name may be there.
	if err := os.Remove(w.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(w.partial, w.dir)
}

// Abort removes what was written. It does nothing after Close.
func (w *Writer) Abort() error {
	for _, f := range w.files {
		f.file.Close()
	}
	return os.RemoveAll(w.partial)
}

// Archive is an archive to be read. It may be used by several goroutines.
type Archive struct {
	path string
	// files by topic; one file of several topics stands under "".
	files map[string]string

	mu sync.Mutex
	// parquet are the open files, by name.
	parquet map[string]parquetFile
}

// Open finds the files of an archive: a folder, or one file.
func Open(path string) (*Archive, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	a := &Archive{path: path, files: map[string]string{}, parquet: map[string]parquetFile{}}
	if !info.IsDir() {
		if formatOf(path) == "" {
			return nil, fmt.Errorf("%w: %s: want a name that ends in .%s or .%s", ErrUnreadable, path, JSONL, Parquet)
		}
		a.files[""] = path
		return a, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() == Unfinished {
			return nil, fmt.Errorf("%w: %s: finish the replay that writes it, or remove it", ErrUnfinished, path)
		}
		format := formatOf(e.Name())
		if format == "" || e.IsDir() {
			continue
		}
		topic := strings.TrimSuffix(e.Name(), "."+format)
		if other, twice := a.files[topic]; twice {
			return nil, fmt.Errorf("%w: %s stands beside %s: remove one", ErrUnreadable, e.Name(), filepath.Base(other))
		}
		a.files[topic] = filepath.Join(path, e.Name())
	}
	if len(a.files) == 0 {
		return nil, fmt.Errorf("%w: %s holds no .%s or .%s files", ErrNotFound, path, JSONL, Parquet)
	}
	return a, nil
}

func formatOf(name string) string {
	for _, format := range []string{JSONL, Parquet} {
		if strings.HasSuffix(name, "."+format) {
			return format
		}
	}
	return ""
}

// Topics lists the topics that have a file of their own.
func (a *Archive) Topics() []string {
	var topics []string
	for topic := range a.files {
		if topic != "" {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// Has says whether the archive may hold records of a topic.
func (a *Archive) Has(topic string) bool { return a.files[topic] != "" || a.files[""] != "" }

// Size is how many bytes the file of a topic has, and when it was changed, to tell it
// from another one.
func (a *Archive) Size(topic string) (int64, error) {
	info, err := os.Stat(a.file(topic))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (a *Archive) file(topic string) string {
	if name := a.files[topic]; name != "" {
		return name
	}
	return a.files[""]
}

// Read calls f with the records of a topic as they stand.
func (a *Archive) Read(topic string, f func(Record) error) error {
	return a.Batches(topic, 0, func(b Batch) error {
		all, err := b.Records()
		for _, r := range all {
			if err == nil {
				err = f(r)
			}
		}
		return err
	})
}
