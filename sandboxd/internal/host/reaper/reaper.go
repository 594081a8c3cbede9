// Package reaper collects processes that the daemon did not start and inherits.
//
// gVisor's kernel is a grandchild of the daemon. When its parent is killed, the
// system gives it to the nearest ancestor that asked for such orphans, or to
// process 1, and until somebody waits for it a dead one keeps its number. In a
// container the daemon often is process 1.
//
// Promises: it never collects what somebody in this program waits for: a process in
// another session than ours is an orphan, since nothing here starts sessions, and so
// is a member of a process group that is neither ours nor its own; of the others
// only those that have been dead for a while. It asks by system calls alone: what
// /proc is asked about a process makes its end cost the host several milliseconds.
package reaper

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// every is how often it looks without being told of a death, and soon how long it
// gives others to wait for their own.
const (
	every = 5 * time.Second
	soon  = 20 * time.Millisecond
)

// patience is how long a dead child may lie that could be somebody's here.
const patience = 30 * time.Second

// Reaper collects orphans until it is closed.
type Reaper struct {
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	first int       // the dead child that is somebody's here, 0 if there is none
	since time.Time // when it was found
}

// New makes this process the one that inherits orphans, and begins.
func New() (*Reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("inherit orphans: %w", err)
	}
	r := &Reaper{stop: make(chan struct{})}
	deaths := make(chan os.Signal, 1)
	signal.Notify(deaths, syscall.SIGCHLD)
	r.done.Go(func() {
		defer signal.Stop(deaths)
		tick := time.NewTimer(every)
		defer tick.Stop()
		for {
			select {
			case <-deaths:
			case <-tick.C:
			case <-r.stop:
				return
			}
			next := every
			if r.collect() {
				next = soon
			}
			tick.Reset(next)
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

// collect waits for the dead, up to one that is somebody's here: the system names
// them in their order, so that what lies behind it must wait too. Then it returns
// true.
func (r *Reaper) collect() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		pid := dead()
		if pid == 0 {
			r.first = 0
			return false
		}
		if pid != r.first {
			r.first, r.since = pid, time.Now()
		}
		if !isOrphan(pid) && time.Since(r.since) <= patience {
			return true
		}
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		r.first = 0
	}
}

// dead returns a dead child that was not waited for, 0 if there is none, and leaves
// it as it is.
func dead() int {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0
		}
		break
	}
	// si_pid, which stands behind the three numbers that unix.Siginfo names, and a
	// gap on machines with 64 bits.
	return int((*[5]int32)(unsafe.Pointer(&info))[4])
}

func isOrphan(pid int) bool {
	session, err := unix.Getsid(pid)
	if err != nil {
		return false
	}
	group, err := unix.Getpgid(pid)
	if err != nil {
		return false
	}
	ours, err := unix.Getsid(0)
	return err == nil && orphan(pid, family{group, session}, family{unix.Getpgrp(), ours})
}

// family is a process's group and session.
type family struct{ group, session int }

// orphan says that a child cannot have been started here.
func orphan(pid int, its, own family) bool {
	return its.session != own.session || its.group != pid && its.group != own.group
}
