package archive

import (
	"errors"
	"fmt"
	"os"
)

// FileWriter writes one file of an archive. It comes into being whole: at Close.
type FileWriter struct {
	name string
	file *os.File
	rows interface {
		Write(Record) error
		Close() error
	}
}

// CreateFile begins a file of an archive, in place of one that may be there. Until Close
// it is written under another name beside it.
func CreateFile(name, format string) (*FileWriter, error) {
	if format != JSONL && format != Parquet {
		return nil, fmt.Errorf("format %q: want %s or %s", format, JSONL, Parquet)
	}
	file, err := os.Create(name + ".partial")
	if err != nil {
		return nil, err
	}
	f := &FileWriter{name: name, file: file}
	if format == Parquet {
		f.rows = newParquetWriter(file)
	} else if f.rows, err = newJSONWriter(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// Write appends a record. Records are given by partition and offset.
func (f *FileWriter) Write(r Record) error {
	if err := f.rows.Write(r); err != nil {
		return fmt.Errorf("%s: %w", f.file.Name(), err)
	}
	return nil
}

// Close makes the file whole and gives it its name.
func (f *FileWriter) Close() error {
	if err := errors.Join(f.rows.Close(), f.file.Sync(), f.file.Close()); err != nil {
		return fmt.Errorf("%s: %w", f.file.Name(), err)
	}
	return os.Rename(f.file.Name(), f.name)
}

// Abort removes what was written. It does nothing after Close.
func (f *FileWriter) Abort() {
	if f.file.Close() == nil {
		os.Remove(f.file.Name())
	}
}
