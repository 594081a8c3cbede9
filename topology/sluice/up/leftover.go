package up

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// endWithin bounds how long the processes of a `sluice up` that was killed may take to
// end: the kernel has told them to when it died.
const endWithin = 45 * time.Second

// awaitLeftovers waits until no process holds a part of the data any more. Whoever
// started too early behind a kill -9 would be refused each directory that is still
// locked, or move it away under a process that writes it. say is told once, if there
// is something to wait for.
func (d *directory) awaitLeftovers(within time.Duration, signals <-chan os.Signal, say func(format string, args ...any)) error {
	for began := time.Now(); ; {
		held, err := d.held()
		if err != nil || held == "" {
			return err
		}
		if say != nil {
			say("a process of an earlier start still holds %s: waiting for it to end", held)
			say = nil
		}
		if time.Since(began) > within {
			return fmt.Errorf("%w: a process still holds %s: stop it, or give --dir another directory", ErrUnusable, held)
		}
		select {
		case <-signals:
			return ErrStopped
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// held names a folder of the data that a process has locked, "" if there is none.
func (d *directory) held() (string, error) {
	for _, pattern := range []string{"lock", "*.lock"} {
		paths, err := filepath.Glob(filepath.Join(d.file("data"), "*", pattern))
		if err != nil {
			return "", fmt.Errorf("--dir: %w", err)
		}
		for _, path := range paths {
			f, err := os.Open(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", fmt.Errorf("--dir: %w", err)
			}
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return filepath.Dir(path), nil
			}
			if err != nil {
				return "", fmt.Errorf("--dir: %s: %w", path, err)
			}
		}
	}
	return "", nil
}
