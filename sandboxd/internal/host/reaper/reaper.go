// Package reaper collects processes that the daemon did not start and inherits.
//
// gVisor's kernel is a grandchild of the daemon. When its parent is killed, the
// system gives it to the nearest ancestor that asked for such orphans, or to
// process 1, and until somebody waits for it a dead one keeps its number. In a
// container the daemon often is process 1.
//
// Reads: /proc. Promises: it never collects what somebody in this program waits
// for: a process in another session than ours is an orphan, since nothing here
// starts sessions, and so is a member of a process group that is neither ours nor
// its own; of the others only those that have been dead for a while.
package reaper

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sluice-rl/sluice/sandboxd/internal/host/proctree"
)

// every is how often it looks without being told of a death.
const every = 5 * time.Second

// patience is how long a dead child may lie that could be somebody's here.
const patience = 30 * time.Second

// Reaper collects orphans until it is closed.
type Reaper struct {
	stop chan struct{}
	done sync.WaitGroup

	mu   sync.Mutex
	seen map[int]time.Time // children that were found dead, and when first
}

// New makes this process the one that inherits orphans, and begins.
func New() (*Reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("inherit orphans: %w", err)
	}
	r := &Reaper{stop: make(chan struct{}), seen: map[int]time.Time{}}
	deaths := make(chan os.Signal, 1)
	signal.Notify(deaths, syscall.SIGCHLD)
	r.done.Go(func() {
		defer signal.Stop(deaths)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-deaths:
			case <-tick.C:
			case <-r.stop:
				return
			}
			r.collect()
		}
	})
	return r, nil
}

// Close ends it; the process still inherits orphans. A nil Reaper does nothing.
func (r *Reaper) Close() {
	if r == nil {
		return
	}
	close(r.stop)
	r.done.Wait()
	r.collect()
}

func (r *Reaper) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, ok := proctree.Read(os.Getpid())
	if !ok {
		return
	}
	dead := map[int]time.Time{}
	for _, pid := range proctree.Children(os.Getpid()) {
		s, ok := proctree.Read(pid)
		if !ok || s.State != 'Z' {
			continue
		}
		since, known := r.seen[pid]
		if !known {
			since = time.Now()
		}
		if orphan(pid, s, own) || time.Since(since) > patience {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			continue
		}
		dead[pid] = since
	}
	r.seen = dead
}

// orphan says that a child cannot have been started here.
func orphan(pid int, s, own proctree.Stat) bool {
	return s.Session != own.Session || s.Group != pid && s.Group != own.Group
}
