package up

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-rl/sluice/topology/process/lock"
)

// runFormat is the version of run.json and of the layout of the directory.
const runFormat = 1

// run is run.json: which run the directory holds.
type run struct {
	Format int    `json:"format"`
	RunID  string `json:"run_id"`
	// Options is what identifies the run, as flags.
	Options string `json:"options"`
	Steps   uint64 `json:"steps"`
	// Finished: its summary was written.
	Finished bool      `json:"finished"`
	Started  time.Time `json:"started"`
	// Seconds it ran before the last interruption.
	Seconds float64 `json:"seconds"`
	// Namespace and Database are where its records and rows are.
	Namespace string `json:"namespace,omitempty"`
	Database  string `json:"database,omitempty"`
	// Ports that were taken, by process: a run that goes on takes them again if it
	// can, because addresses stand in records.
	Ports map[string]int `json:"ports,omitempty"`
}

// directory is a locked run directory.
type directory struct {
	path string
	lock *lock.Lock
}

// openDirectory makes and locks the directory.
func openDirectory(path string) (*directory, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	entries, err := os.ReadDir(abs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	ours := false
	for _, e := range entries {
		ours = ours || e.Name() == "lock"
	}
	if len(entries) > 0 && !ours {
		return nil, fmt.Errorf("%w: --dir %s holds %q and is no directory of a run: name an empty one", ErrUnusable, abs, entries[0].Name())
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	held, err := lock.Take(filepath.Join(abs, "lock"))
	switch {
	case errors.Is(err, lock.ErrHeld):
		return nil, fmt.Errorf("%w: another `sluice up` runs in %s: %w: stop it, or give this one another --dir", ErrUnusable, abs, err)
	case err != nil:
		return nil, fmt.Errorf("--dir: %w", err)
	}
	return &directory{abs, held}, nil
}

func (d *directory) Close() { d.lock.Close() }

// file is a path in the directory.
func (d *directory) file(parts ...string) string {
	return filepath.Join(append([]string{d.path}, parts...)...)
}

// holds says whether the directory has a part.
func (d *directory) holds(parts ...string) bool {
	_, err := os.Stat(d.file(parts...))
	return err == nil
}

// open decides which run this is: the interrupted one, or a new one. resumed tells.
func (d *directory) open(o Options) (r run, resumed bool, err error) {
	old, ok, err := d.load()
	if err != nil {
		return run{}, false, err
	}
	// One that never got to run, such as for a wrong path, ties nobody to its options.
	same := old.Options == o.identity()
	if ok && !old.Finished && !o.New && (same || old.Seconds > 0) {
		if !same {
			return run{}, false, fmt.Errorf("%w: %s holds an interrupted run that was started with\n    %s\nand this one says\n    %s\nGive the same options to go on with it, or --new to drop it", ErrUsage, d.path, old.Options, o.identity())
		}
		old.Steps = o.Steps
		return old, true, d.makeFolders()
	}
	if ok && (!o.Keep || !old.Finished) {
		if err := d.wipe(); err != nil {
			return run{}, false, err
		}
	}
	r = run{Format: runFormat, RunID: newRunID(), Options: o.identity(), Steps: o.Steps, Started: time.Now().UTC(), Namespace: o.Namespace, Database: o.CHDatabase}
	if err := os.RemoveAll(d.file("summary.json")); err != nil {
		return run{}, false, fmt.Errorf("--dir: %w", err)
	}
	if err := d.makeFolders(); err != nil {
		return run{}, false, err
	}
	return r, false, d.save(r)
}

// wipe moves what a run left into the trash, which emptyTrash removes: thousands of
// files, for which a start need not wait. It names what it takes, so that nothing of
// somebody else's goes with it.
func (d *directory) wipe() error {
	trash := d.file("trash", newRunID())
	if err := os.MkdirAll(trash, 0o755); err != nil {
		return fmt.Errorf("remove the data of the last run: %w", err)
	}
	for _, name := range []string{"data", "problems", "logs", "ready", "summary.json", "run.json"} {
		err := os.Rename(d.file(name), filepath.Join(trash, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the data of the last run: %w", err)
		}
	}
	return nil
}

// emptyTrash removes what wipe moved, also what an earlier start did not come to.
func (d *directory) emptyTrash() error {
	if err := os.RemoveAll(d.file("trash")); err != nil {
		return fmt.Errorf("remove the data of an earlier run: %w", err)
	}
	return nil
}

func (d *directory) makeFolders() error {
	// Ready files of killed processes must not be believed by anybody.
	if err := os.RemoveAll(d.file("ready")); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	for _, name := range []string{"data", "problems", "logs", "ready"} {
		if err := os.MkdirAll(d.file(name), 0o755); err != nil {
			return fmt.Errorf("--dir: %w", err)
		}
	}
	return nil
}

func (d *directory) load() (r run, ok bool, err error) {
	b, err := os.ReadFile(d.file("run.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return run{}, false, nil
	}
	if err != nil {
		return run{}, false, fmt.Errorf("--dir: %w", err)
	}
	if err := json.Unmarshal(b, &r); err != nil || r.Format < 1 {
		return run{}, false, fmt.Errorf("%w: %s is damaged: remove %s", ErrUnusable, d.file("run.json"), d.path)
	}
	if r.Format > runFormat {
		return run{}, false, fmt.Errorf("%w: %s was written by a newer version (format %d, this one reads up to %d): use that version, or another --dir", ErrUnusable, d.path, r.Format, runFormat)
	}
	return r, true, nil
}

func (d *directory) save(r run) error { return writeJSON(d.file("run.json"), r) }

// writeJSON writes a file whole or not at all.
func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	if err := os.WriteFile(path+".tmp", append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}

// newRunID is a name that no other run has.
func newRunID() string {
	b := make([]byte, 3)
	_, _ = rand.Read(b) // never fails
	return "demo-" + time.Now().UTC().Format("20060102-150405") + "-" + hex.EncodeToString(b)
}
