package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-rl/sluice/schemas/identity"

	"github.com/sluice-rl/sluice/topology/process/lock"
)

// Store holds one run's file. Make it with Open, give it back with Close.
type Store struct {
	path       string
	runID      string
	vocabulary string
	lock       *lock.Lock
}

// Open creates the directory where needed and takes the run's lock; ErrInUse where
// another process holds it. vocabulary names the tokenizer.
func Open(dir, runID, vocabulary string) (*Store, error) {
	if err := identity.CheckRunID(runID); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	held, err := lock.Take(filepath.Join(dir, runID+".lock"))
	switch {
	case errors.Is(err, lock.ErrHeld):
		return nil, fmt.Errorf("%w: %w", ErrInUse, err)
	case err != nil:
		return nil, fmt.Errorf("state lock: %w", err)
	}
	return &Store{path: filepath.Join(dir, runID+".json"), runID: runID, vocabulary: vocabulary, lock: held}, nil
}

// Close gives the lock back.
func (s *Store) Close() error { return s.lock.Close() }

// Load reads the state; found is false where there is none yet.
func (s *Store) Load() (st State, found bool, err error) {
	b, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return New(), false, nil
	}
	if err != nil {
		return State{}, false, fmt.Errorf("read state: %w", err)
	}
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &head); err != nil || head.Format < 1 {
		return State{}, false, fmt.Errorf("%w: %s is no state of simpolicy (format %d): %w", ErrUnusable, s.path, head.Format, errOrNone(err))
	}
	if head.Format > Format {
		return State{}, false, fmt.Errorf("%w: %s has format %d, this build reads up to %d: use the newer simpolicy or another --state-dir", ErrNewer, s.path, head.Format, Format)
	}
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return State{}, false, fmt.Errorf("%w: %s: %w", ErrUnusable, s.path, err)
	}
	if st, err = fromFile(f, s.runID, s.vocabulary); err != nil {
		return State{}, false, fmt.Errorf("%s: %w", s.path, err)
	}
	return st, true, nil
}

func errOrNone(err error) error {
	if err == nil {
		return errors.New("no format number")
	}
	return err
}

// Save writes the state; once it returns, a crash of the machine does not lose it.
func (s *Store) Save(st State) error {
	b, err := json.MarshalIndent(toFile(st, s.runID, s.vocabulary), "", " ")
	if err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	if err := writeDurably(s.path, append(b, '\n')); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	return nil
}

func writeDurably(path string, b []byte) error {
	next := path + ".next"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
