// Package readyfile is how a process says that it is ready and where it listens.
//
// It writes and reads one small JSON file: {"pid": 42, "kafka": "127.0.0.1:9092"}.
// The file appears at once and whole (written beside its place, then renamed), only
// when the process can serve, and goes away when the process ends in good order. A
// reader compares the pid, so that the file of a killed predecessor is not believed.
package readyfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// ErrNotReady: there is no file, or a process other than the one asked for wrote it.
var ErrNotReady = errors.New("not ready")

// Write writes the file with this process's pid and the given addresses, each under
// its name ("kafka", "http"). The returned function removes it.
func Write(path string, addresses map[string]string) (remove func() error, err error) {
	content := map[string]any{"pid": os.Getpid()}
	for name, address := range addresses {
		content[name] = address
	}
	b, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("ready file: %w", err)
	}
	beside := path + "." + strconv.Itoa(os.Getpid()) + ".tmp"
	if err := os.WriteFile(beside, append(b, '\n'), 0o644); err != nil {
		return nil, fmt.Errorf("ready file: %w", err)
	}
	if err := os.Rename(beside, path); err != nil {
		os.Remove(beside)
		return nil, fmt.Errorf("ready file: %w", err)
	}
	return func() error { return Remove(path) }, nil
}

// Remove removes a ready file; one that is not there is no error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ready file: %w", err)
	}
	return nil
}

// Read returns the addresses that the process of the given pid wrote. It fails with
// ErrNotReady until there is such a file.
func Read(path string, pid int) (map[string]string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), ErrNotReady)
	}
	if err != nil {
		return nil, fmt.Errorf("ready file: %w", err)
	}
	var content map[string]any
	if err := json.Unmarshal(b, &content); err != nil {
		return nil, fmt.Errorf("ready file %s: %w", path, err)
	}
	if said, ok := content["pid"].(float64); !ok || int(said) != pid {
		return nil, fmt.Errorf("%s speaks of process %v, want %d: %w", filepath.Base(path), content["pid"], pid, ErrNotReady)
	}
	addresses := map[string]string{}
	for name, value := range content {
		if s, ok := value.(string); ok {
			addresses[name] = s
		}
	}
	return addresses, nil
}
