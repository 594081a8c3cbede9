// Package state owns a daemon's state directory: one daemon at a time, and
// nothing left of the one before.
//
// Reads and writes: the directory, /proc, the sandboxes' control groups.
// Promises: two daemons with two directories never touch each other's
// processes, groups or files.
package state

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
	"github.com/sluice-rl/sluice/topology/process/lock"
)

// ErrInUse occurs when another daemon holds the directory.
var ErrInUse = errors.New("state directory is in use by another sandboxd")

// Dir is a locked state directory.
type Dir struct {
	Path string
	// Run holds a folder per running sandbox. It lies in memory where the machine has
	// a place for that: a disk's file system takes a tenth of a restore's time for
	// files that live a second.
	Run string
	// Key is a short name unique to the path; ids and groups begin with it.
	Key  string
	lock *lock.Lock
}

// Open makes and locks the directory.
func Open(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	held, err := lock.Take(filepath.Join(abs, "lock"))
	switch {
	case errors.Is(err, lock.ErrHeld):
		return nil, fmt.Errorf("%w: %w", ErrInUse, err)
	case err != nil:
		return nil, fmt.Errorf("state directory: %w", err)
	}
	d := &Dir{Path: abs, Key: key(abs), lock: held}
	d.Run = d.chooseRun()
	return d, nil
}

func key(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:])[:8]
}

// RunPlaces lists where the folder of running sandboxes may be for a state directory,
// the best first.
func RunPlaces(path string) []string { return (&Dir{Path: path, Key: key(path)}).runPlaces() }

// Close gives the lock up, and the folder of running sandboxes, which is empty.
func (d *Dir) Close() error {
	if d.Run != d.ownRun() {
		_ = os.Remove(d.Run)
	}
	return d.lock.Close()
}

func (d *Dir) ownRun() string { return filepath.Join(d.Path, "run") }

func (d *Dir) runPlaces() []string {
	var st unix.Stat_t
	if unix.Stat(d.Path, &st) != nil {
		return []string{d.ownRun()}
	}
	// Containers can share these places, and have state directories of one name.
	name := fmt.Sprintf("%s-%x-%x", d.GroupName(), st.Dev, st.Ino)
	var places []string
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), "/run", "/dev/shm"} {
		if filepath.IsAbs(dir) {
			places = append(places, filepath.Join(dir, name))
		}
	}
	return append(places, d.ownRun())
}

// chooseRun makes that folder in the first file system in memory that lets us, else
// in the state directory. Where everybody may write, one that is there already must
// be ours and closed to others.
func (d *Dir) chooseRun() string {
	for _, place := range d.runPlaces() {
		var fs unix.Statfs_t
		if unix.Statfs(filepath.Dir(place), &fs) != nil || fs.Type != unix.TMPFS_MAGIC {
			continue
		}
		if err := os.Mkdir(place, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			continue
		}
		var st unix.Stat_t
		if unix.Lstat(place, &st) == nil && st.Mode == unix.S_IFDIR|0o700 && int(st.Uid) == os.Geteuid() {
			return place
		}
	}
	return d.ownRun()
}

// GroupName is the name of the daemon's parent control group.
func (d *Dir) GroupName() string { return "sandboxd-" + d.Key }

// Prefix begins the id of every sandbox of this directory.
func (d *Dir) Prefix() string { return "sbx-" + d.Key + "-" }

// Swept counts what a predecessor left behind.
type Swept struct{ Processes, Groups, Folders, Sockets int }

// Total is the sum.
func (s Swept) Total() int { return s.Processes + s.Groups + s.Folders + s.Sockets }

// Sweep removes whatever a predecessor left: processes first, since they hold
// the rest.
func (d *Dir) Sweep(groups *cgroup.Manager, log *slog.Logger) (Swept, error) {
	var s Swept
	var err error
	s.Groups, err = groups.Sweep()
	s.Processes = d.killProcesses()
	for _, run := range []string{d.Run, d.ownRun()} {
		entries, readErr := os.ReadDir(run)
		if readErr != nil && !errors.Is(readErr, os.ErrNotExist) {
			err = errors.Join(err, readErr)
		}
		for _, e := range entries {
			s.Folders++
			err = errors.Join(err, os.RemoveAll(filepath.Join(run, e.Name())))
		}
	}
	// Where the state directory's path is too long for a socket, runsc puts its
	// control sockets here.
	for _, dir := range []string{"/var/run", "/run", "/tmp"} {
		sockets, _ := filepath.Glob(filepath.Join(dir, "runsc-"+d.Prefix()+"*"))
		for _, socket := range sockets {
			if os.Remove(socket) == nil {
				s.Sockets++
			}
		}
	}
	if s.Total() > 0 {
		log.Warn("swept what a predecessor left", "processes", s.Processes, "groups", s.Groups, "folders", s.Folders, "sockets", s.Sockets)
	}
	if err != nil {
		return s, fmt.Errorf("sweep: %w", err)
	}
	return s, nil
}

// ours says whether an argument is the one that every runtime process of this
// directory carries, and nothing else does.
func (d *Dir) ours(arg string) bool {
	root, ok := strings.CutPrefix(arg, "--root=")
	return ok && strings.HasPrefix(filepath.Base(root), d.Prefix()) && slices.Contains(d.runPlaces(), filepath.Dir(root))
}

// killProcesses kills every runtime process of this directory, until none is
// left.
func (d *Dir) killProcesses() int {
	killed := map[int]bool{}
	for range 100 {
		pids := d.Processes()
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed[pid] = true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return len(killed)
}

// Processes lists the runtime processes of this directory that are alive.
func (d *Dir) Processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue
		}
		for arg := range strings.SplitSeq(string(cmdline), "\x00") {
			if d.ours(arg) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}
