package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrChild is in the chain of every error about a child that cannot be kept running.
var ErrChild = errors.New("process cannot be kept running")

// Config of a Supervisor. The zero value of a duration takes its default.
type Config struct {
	// LogDir takes one file per child, NAME.log, to which its output is appended.
	LogDir string
	// Tell receives what a person should know (a child died, is restarted). It is
	// called from several goroutines, one call at a time.
	Tell func(text string)
	// The pause before the first restart and the longest one: 500 ms, 10 s.
	FirstPause, LongestPause time.Duration
	// Grace is how long a child may take to stop before it is killed: 15 s.
	Grace time.Duration
	// Steady is how long a child must run for its next death to count as the
	// first: 30 s.
	Steady time.Duration
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&c.FirstPause, 500*time.Millisecond)
	set(&c.LongestPause, 10*time.Second)
	set(&c.Grace, 15*time.Second)
	set(&c.Steady, 30*time.Second)
	if c.Tell == nil {
		c.Tell = func(string) {}
	}
	return c
}

// Supervisor keeps children running.
type Supervisor struct {
	cfg    Config
	spawn  chan spawnRequest
	closed chan struct{}
	failed chan error

	mu       sync.Mutex
	children []*Child
	// stopping: what is started from now on ends at once.
	stopping bool
	// ours are the processes that somebody waits for already.
	ours map[int]bool
	// deaths counts processes of ours that ended.
	deaths  int
	telling sync.Mutex
}

type spawnRequest struct {
	cmd  *exec.Cmd
	done chan error
}

// New makes LogDir and the thread that children are started from.
func New(cfg Config) (*Supervisor, error) {
	if err := os.MkdirAll(cfg.LogDir, 0o755); err != nil {
		return nil, fmt.Errorf("log directory: %w", err)
	}
	// Orphans of killed children come to us instead of to init, so that KillAll
	// can find them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	s := &Supervisor{
		cfg: cfg.withDefaults(), spawn: make(chan spawnRequest), closed: make(chan struct{}), failed: make(chan error, 1),
		ours: map[int]bool{},
	}
	go s.spawner()
	return s, nil
}

// spawner starts every child from one thread that lives as long as the supervisor:
// the parent death signal is sent when the *thread* that started a child ends.
//
// It also collects orphans that have ended, which nobody else waits for: here, because
// only here no child of ours can be started at the same time and be taken for one.
func (s *Supervisor) spawner() {
	runtime.LockOSThread()
	collect := time.NewTicker(time.Second)
	defer collect.Stop()
	for {
		select {
		case r := <-s.spawn:
			err := r.cmd.Start()
			if err == nil {
				s.mu.Lock()
				s.ours[r.cmd.Process.Pid] = true
				s.mu.Unlock()
			}
			r.done <- err
		case <-collect.C:
			s.collectOrphans()
		case <-s.closed:
			return
		}
	}
}

func (s *Supervisor) startProcess(cmd *exec.Cmd) error {
	r := spawnRequest{cmd, make(chan error, 1)}
	select {
	case s.spawn <- r:
		return <-r.done
	case <-s.closed:
		return errors.New("the supervisor was closed")
	}
}

// Failed gives the first error of a child that cannot be kept running.
func (s *Supervisor) Failed() <-chan error { return s.failed }

func (s *Supervisor) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

func (s *Supervisor) tell(format string, args ...any) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.cfg.Tell(fmt.Sprintf(format, args...))
}

// StopAll stops the children named in each tier at once, tier after tier, then those
// that no tier names.
func (s *Supervisor) StopAll(tiers ...[]string) {
	s.noMore()
	for _, names := range tiers {
		s.stopEach(func(c *Child) bool {
			for _, name := range names {
				if c.spec.Name == name {
					return true
				}
			}
			return false
		})
	}
	s.stopEach(func(*Child) bool { return true })
	endOrphans()
}

func (s *Supervisor) noMore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
}

func (s *Supervisor) stopEach(which func(*Child) bool) {
	var wait sync.WaitGroup
	for _, c := range s.all() {
		if which(c) {
			wait.Go(c.Stop)
		}
	}
	wait.Wait()
}

// KillAll ends every child at once. The children named as gentle get SIGTERM first
// and a few seconds, because something outside their process group depends on them.
func (s *Supervisor) KillAll(gentle ...string) {
	s.noMore()
	var wait sync.WaitGroup
	for _, c := range s.all() {
		grace := time.Duration(0)
		for _, name := range gentle {
			if c.spec.Name == name {
				grace = 5 * time.Second
			}
		}
		wait.Go(func() { c.stop(grace) })
	}
	wait.Wait()
	endOrphans()
}

// Close ends the starting thread; call it after StopAll or KillAll.
func (s *Supervisor) Close() { close(s.closed) }

// Child returns the child of that name, nil if there is none.
func (s *Supervisor) Child(name string) *Child {
	for _, c := range s.all() {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}

func (s *Supervisor) all() []*Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Child(nil), s.children...)
}

// signalGroup signals a whole process group; a group that is gone is no error.
func signalGroup(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) }
