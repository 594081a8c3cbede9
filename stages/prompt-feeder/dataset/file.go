package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrNotPrepared: a line of a problem file lacks what Prepare would have given it.
var ErrNotPrepared = errors.New("problem file is not prepared")

// ErrChanged: a problem file is not the one that its manifest describes.
var ErrChanged = errors.New("problem file differs from its manifest")

// File is a prepared problem file open for reading any row. It holds the offset of
// each line in an unlinked temporary file, so that its memory does not grow with the
// number of rows. Not safe for concurrent use.
type File struct {
	file   *os.File
	index  *os.File
	rows   int
	sha256 string
}

// Open reads the file once, checks every line, and refuses one that is empty, not
// prepared, or not what the manifest beside it (if there is one) says.
func Open(path string) (*File, error) {
	f := &File{}
	if err := f.open(path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *File) open(path string) error {
	var err error
	if f.file, err = os.Open(path); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if f.index, err = os.CreateTemp("", "sluice-problems-*"); err != nil {
		return fmt.Errorf("index of %s: %w", path, err)
	}
	if err := os.Remove(f.index.Name()); err != nil {
		return fmt.Errorf("index of %s: %w", path, err)
	}
	hash := sha256.New()
	buf := make([]byte, 0, 1<<16)
	line := 0
	err = eachLine(io.TeeReader(f.file, hash), path, func(offset int64, text []byte) error {
		line++
		if _, err := parseRow(text); err != nil {
			return fmt.Errorf("%s line %d: %w", path, line, err)
		}
		f.rows++
		if buf = binary.LittleEndian.AppendUint64(buf, uint64(offset)); len(buf) < cap(buf) {
			return nil
		}
		_, err := f.index.Write(buf)
		buf = buf[:0]
		return err
	})
	if err == nil {
		_, err = f.index.Write(buf)
	}
	if err != nil {
		return err
	}
	if f.rows == 0 {
		return fmt.Errorf("%w: %s has no rows", ErrNotPrepared, path)
	}
	f.sha256 = hex.EncodeToString(hash.Sum(nil))
	return f.checkManifest(path)
}

func (f *File) checkManifest(path string) error {
	b, err := os.ReadFile(filepath.Join(filepath.Dir(path), ManifestFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var m Manifest
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return fmt.Errorf("manifest beside %s: %w", path, err)
	}
	if want, ok := m.SHA256[filepath.Base(path)]; ok && want != f.sha256 {
		return fmt.Errorf("%w: %s has SHA-256 %s, %s says %s: prepare it again, or remove the manifest if the change is meant",
			ErrChanged, path, f.sha256, ManifestFile, want)
	}
	return nil
}

// Len is the number of rows, at least 1.
func (f *File) Len() int { return f.rows }

// SHA256 is the hash of the content, in hex.
func (f *File) SHA256() string { return f.sha256 }

// Row reads row i, from 0.
func (f *File) Row(i int) (Row, error) {
	if i < 0 || i >= f.rows {
		return Row{}, fmt.Errorf("row %d of %d", i, f.rows)
	}
	var at [8]byte
	if _, err := f.index.ReadAt(at[:], int64(i)*8); err != nil {
		return Row{}, fmt.Errorf("index of row %d: %w", i, err)
	}
	section := io.NewSectionReader(f.file, int64(binary.LittleEndian.Uint64(at[:])), MaxLine)
	var row Row
	err := eachLine(section, f.file.Name(), func(_ int64, text []byte) error {
		var err error
		if row, err = parseRow(text); err != nil {
			return fmt.Errorf("%s row %d: %w", f.file.Name(), i, err)
		}
		return errFirstLine
	})
	if !errors.Is(err, errFirstLine) {
		return Row{}, errors.Join(err, fmt.Errorf("row %d: the file changed while it was read", i))
	}
	return row, nil
}

var errFirstLine = errors.New("only the first line is wanted")

func parseRow(text []byte) (Row, error) {
	var row Row
	if err := json.Unmarshal(text, &row); err != nil {
		return row, fmt.Errorf("%w: %w", ErrNotPrepared, err)
	}
	for _, field := range []struct{ name, value string }{
		{"id", row.ID}, {"question", row.Question}, {"answer", row.Answer},
	} {
		if field.value == "" {
			return row, fmt.Errorf("%w: %s is missing or empty: `sluice prepare` writes files that have it", ErrNotPrepared, field.name)
		}
	}
	if n := row.size(); n > MaxText {
		return row, fmt.Errorf("%w: question, answer and id have %d bytes, want at most %d", ErrNotPrepared, n, MaxText)
	}
	return row, nil
}

// Close closes what Open opened.
func (f *File) Close() error {
	var errs []error
	for _, file := range []*os.File{f.file, f.index} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}
