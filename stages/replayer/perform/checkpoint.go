package perform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// The phases of a replay.
const (
	phaseScoring  = "scoring"
	phaseBatching = "batching"
	// phaseGrouping is told of phaseBatching where it stops at groups; phaseWriting is
	// only told, too: it is begun anew.
	phaseGrouping = "grouping"
	phaseWriting  = "writing"
	phaseDone     = "done"
)

// checkpoint is how far a replay is.
type checkpoint struct {
	Version     int    `json:"version"`
	ID          string `json:"id"`
	Fingerprint string `json:"fingerprint"`
	Phase       string `json:"phase"`
	// Bounds are fixed at the first start, by topic.
	Bounds   map[string]Bounds `json:"bounds"`
	Position Position          `json:"position"`
	// Step is how many steps have been closed.
	Step    int     `json:"step"`
	Buffer  int64   `json:"buffer"`
	Mark    Mark    `json:"mark"`
	Summary Summary `json:"summary"`
}

const (
	checkpointVersion = 2
	checkpointFile    = "checkpoint.json"
	bufferFile        = "members.buffer"
)

// loadCheckpoint returns nil where there is none.
func loadCheckpoint(dir, id, fingerprint string) (*checkpoint, error) {
	path := filepath.Join(dir, checkpointFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &checkpoint{}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case c.Version != checkpointVersion:
		return nil, fmt.Errorf("%w: %s has version %d, this build writes %d: begin again under another id", ErrOther, path, c.Version, checkpointVersion)
	case c.ID != id || c.Fingerprint != fingerprint:
		return nil, fmt.Errorf("%w: %s was begun as %q with other rewards, input, range or rules: give the same ones to go on, or another --id", ErrOther, path, c.ID)
	}
	return c, nil
}

func (c *checkpoint) save(dir string) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, checkpointFile)
	f, err := os.CreateTemp(dir, checkpointFile+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// patience is how long a replay waits for the one before it: killed together with what
// started it, that one may still be keeping its last checkpoint.
const patience = 3 * time.Second

// lock keeps a second process away from a state folder. The lock goes with the process.
func lock(ctx context.Context, dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(patience); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if time.Now().After(until) || ctx.Err() != nil {
			f.Close()
			return nil, fmt.Errorf("%w: %s: %w", ErrBusy, dir, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return func() { f.Close() }, nil
}
