// Package spawn starts processes that die with the daemon.
//
// Linux sends a child its parent-death signal when the *thread* that forked it
// ends, not the process. A Spawner therefore forks from one goroutine that owns
// one thread for as long as the Spawner lives.
package spawn

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// ErrClosed occurs when a process is started after Close.
var ErrClosed = errors.New("spawner is closed")

// Spawner starts processes. Make it with New.
type Spawner struct {
	work chan func()
	done chan struct{}
	once sync.Once
}

// New starts the owning thread.
func New() *Spawner {
	s := &Spawner{work: make(chan func()), done: make(chan struct{})}
	go func() {
		// Never unlocked: the thread ends with this goroutine, and with it,
		// by the parent-death signal, whatever is still running.
		runtime.LockOSThread()
		for {
			select {
			case f := <-s.work:
				f()
			case <-s.done:
				return
			}
		}
	}()
	return s
}

// Start starts cmd in a process group of its own with SIGKILL as its
// parent-death signal.
func (s *Spawner) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setpgid = true
	result := make(chan error, 1)
	select {
	case s.work <- func() { result <- cmd.Start() }:
		return <-result
	case <-s.done:
		return ErrClosed
	}
}

// Close ends the owning thread; processes it started and that still run are
// killed. It may be called twice.
func (s *Spawner) Close() { s.once.Do(func() { close(s.done) }) }
