package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FormatVersion is the version of the data directory that this build writes. It rises
// when an older build would misread the directory.
const FormatVersion = 1

// markerName is the file that makes a directory one of ours.
const markerName = "SLUICE_BROKER"

var (
	// ErrNewerData: the data directory was written by a version that this one cannot read.
	ErrNewerData = errors.New("data directory of a newer version")
	// ErrForeignData: the directory holds something else.
	ErrForeignData = errors.New("not a data directory of sluice-broker")
)

type marker struct {
	Format int `json:"format"`
}

// claim makes dir a data directory or checks that it is one this build can read.
func claim(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	path := filepath.Join(dir, markerName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return mark(dir, path)
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	var m marker
	if err := json.Unmarshal(b, &m); err != nil || m.Format < 1 {
		return fmt.Errorf("%w: %s is damaged: remove the directory, or name another with --data-dir", ErrForeignData, path)
	}
	if m.Format > FormatVersion {
		return fmt.Errorf("%w: %s has format %d, this build reads up to %d: start the newer sluice-broker on it, or name another directory with --data-dir", ErrNewerData, dir, m.Format, FormatVersion)
	}
	return nil
}

func mark(dir, path string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w: %s has no file %s but holds %q: name an empty directory with --data-dir", ErrForeignData, dir, markerName, entries[0].Name())
	}
	b, err := json.Marshal(marker{Format: FormatVersion})
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	// Renamed into place: a kill in mid-write must not leave a damaged marker.
	if err := os.WriteFile(path+".tmp", append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}
