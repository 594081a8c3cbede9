package up

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sluice-rl/sluice/topology/process/lock"
)

// endWithin bounds how long the processes of a `sluice up` that was killed may take to
// end: the kernel has told them to when it died.
const endWithin = 45 * time.Second

// awaitLeftovers waits until no process holds a part of the data any more. A start
// too early behind a kill -9 would be refused each directory that is still
// locked, or move it away under a process that writes it. say is told once, if there
// is something to wait for.
func (d *directory) awaitLeftovers(ctx context.Context, within time.Duration, say func(format string, args ...any)) error {
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
		case <-ctx.Done():
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
			held, err := lock.Held(path)
			if err != nil {
				return "", fmt.Errorf("--dir: %w", err)
			}
			if held {
				return filepath.Dir(path), nil
			}
		}
	}
	return "", nil
}
