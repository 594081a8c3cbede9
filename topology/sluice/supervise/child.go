package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/process/readyfile"
)

// triesBeforeReady bounds the restarts of a child that never became ready.
const triesBeforeReady = 5

// Spec is what to run.
type Spec struct {
	// Name is unique; it names the log file.
	Name string
	Path string
	// Args gives the arguments. From the second start on it is given the addresses
	// that the child listened on before, so that it can take the same ports again.
	Args func(before map[string]string) []string
	// Env is the child's environment; nil: the supervisor's own.
	Env []string
	// Dir is the working directory; empty: the supervisor's.
	Dir string
	// ReadyFile appears once the child can serve. Empty: ready once started.
	ReadyFile string
	// Finishes: exit status 0 is the end of its work, not a death.
	Finishes bool
	// Dispensable: nothing else needs it, so where it cannot be kept running that is
	// told, and is no failure of the supervisor's.
	Dispensable bool
	// Orphaned is what the child gets if the supervisor is killed: SIGKILL if 0.
	Orphaned syscall.Signal
}

// Child is one supervised process, through all its restarts.
type Child struct {
	spec Spec
	s    *Supervisor

	mu        sync.Mutex
	stopping  bool
	pid       int
	addresses map[string]string
	restarts  int
	err       error

	ready    chan struct{} // closed when first ready
	finished chan struct{} // closed when it will not be started again
	stopOnce chan struct{} // closed when Stop was called
}

// Start starts a child and keeps it running until it is stopped. It does not wait
// until the child is ready.
func (s *Supervisor) Start(spec Spec) *Child {
	c := &Child{
		spec: spec, s: s,
		ready: make(chan struct{}), finished: make(chan struct{}), stopOnce: make(chan struct{}),
	}
	s.mu.Lock()
	s.children = append(s.children, c)
	if s.stopping {
		c.stopping = true
		close(c.stopOnce)
	}
	s.mu.Unlock()
	go c.keep()
	return c
}

// WaitReady waits until the child can serve and returns its addresses.
func (c *Child) WaitReady(ctx context.Context) (map[string]string, error) {
	select {
	case <-c.ready:
	case <-c.finished:
		select {
		case <-c.ready:
		default:
			if err := c.Err(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%s was stopped before it was ready", c.spec.Name)
		}
	case <-ctx.Done():
		return nil, fmt.Errorf("%s is not ready: %w\n%s", c.spec.Name, context.Cause(ctx), c.tail())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addresses, nil
}

// Finished is closed when the child will not be started again: its work is done, it
// was stopped, or it failed.
func (c *Child) Finished() <-chan struct{} { return c.finished }

// Err is why a finished child failed; nil if it did not.
func (c *Child) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// PID is the running process, 0 if none runs now.
func (c *Child) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid
}

// Restarts counts how often the child was started again.
func (c *Child) Restarts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restarts
}

// LogPath is the file with the child's output.
func (c *Child) LogPath() string { return filepath.Join(c.s.cfg.LogDir, c.spec.Name+".log") }

// keep runs the child again and again.
func (c *Child) keep() {
	defer close(c.finished)
	pause, neverReady := c.s.cfg.FirstPause, 0
	for {
		started := time.Now()
		wasReady, err := c.run()
		if c.isStopping() {
			return
		}
		if err == nil && c.spec.Finishes {
			return
		}
		if neverReady++; wasReady {
			neverReady = 0
		}
		if why := useless(err, neverReady); why != "" {
			c.giveUp(err, why)
			return
		}
		if time.Since(started) > c.s.cfg.Steady {
			pause = c.s.cfg.FirstPause
		}
		c.s.tell("%s died (%s); starting it again in %v; log: %s", c.spec.Name, describe(err), pause, c.LogPath())
		select {
		case <-time.After(pause):
		case <-c.stopOnce:
			return
		}
		pause = min(2*pause, c.s.cfg.LongestPause)
		c.mu.Lock()
		c.restarts++
		c.mu.Unlock()
	}
}

// run runs the process once, to its end.
func (c *Child) run() (wasReady bool, err error) {
	log, err := os.OpenFile(c.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return false, err
	}
	defer log.Close()
	if c.spec.ReadyFile != "" {
		if err := readyfile.Remove(c.spec.ReadyFile); err != nil {
			return false, err
		}
	}
	c.mu.Lock()
	before := c.addresses
	c.mu.Unlock()
	cmd := exec.Command(c.spec.Path, c.spec.Args(before)...)
	cmd.Env = c.spec.Env
	cmd.Dir = c.spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	orphaned := c.spec.Orphaned
	if orphaned == 0 {
		orphaned = syscall.SIGKILL
	}
	// A group of its own: the terminal's Ctrl-C must reach the supervisor alone,
	// which stops the children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphaned}
	if err := c.begin(cmd); err != nil {
		return false, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err, wasReady = c.watch(cmd.Process.Pid, ended)
	// What the process left in its group must not outlive it.
	signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	c.mu.Lock()
	c.pid = 0
	c.mu.Unlock()
	c.s.forget(cmd.Process.Pid)
	return wasReady, err
}

// begin starts the process unless the child is to stop.
func (c *Child) begin(cmd *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return errors.New("stopped")
	}
	if err := c.s.startProcess(cmd); err != nil {
		return err
	}
	c.pid = cmd.Process.Pid
	return nil
}

// watch waits for the ready file and for the end of the process.
func (c *Child) watch(pid int, ended <-chan error) (err error, wasReady bool) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		if !wasReady {
			wasReady = c.lookReady(pid)
		}
		if wasReady {
			look.Stop()
		}
		select {
		case err := <-ended:
			return err, wasReady
		case <-look.C:
		}
	}
}

func (c *Child) lookReady(pid int) bool {
	var addresses map[string]string
	if c.spec.ReadyFile != "" {
		var err error
		if addresses, err = readyfile.Read(c.spec.ReadyFile, pid); err != nil {
			return false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addresses = addresses
	select {
	case <-c.ready:
	default:
		close(c.ready)
	}
	return true
}

func (c *Child) giveUp(cause error, why string) {
	err := fmt.Errorf("%w: %s: %s; %s\n%s", ErrChild, c.spec.Name, describe(cause), why, c.tail())
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	if c.spec.Dispensable {
		c.s.tell("%s cannot be kept running: %s; %s; log: %s", c.spec.Name, describe(cause), why, c.LogPath())
		return
	}
	c.s.fail(err)
}

// Stop asks the child to stop and returns when it has; after the grace it is killed.
// It may be called twice.
func (c *Child) Stop() { c.stop(c.s.cfg.Grace) }

func (c *Child) stop(grace time.Duration) {
	c.mu.Lock()
	if !c.stopping {
		c.stopping = true
		close(c.stopOnce)
	}
	pid := c.pid
	c.mu.Unlock()
	if pid != 0 && grace > 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM)
		select {
		case <-c.finished:
			return
		case <-time.After(grace):
			c.s.tell("%s did not stop within %v: killed; log: %s", c.spec.Name, grace, c.LogPath())
		}
	}
	if pid != 0 {
		signalGroup(pid, syscall.SIGKILL)
	}
	<-c.finished
}

func (c *Child) isStopping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping
}

// useless says why a dead child is not worth another try, "" if it is.
func useless(err error, neverReady int) string {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == process.ExitUsage:
		return "it refuses its flags or configuration, so another try is useless"
	case errors.As(err, &exit) && exit.ExitCode() == process.ExitUnusable:
		return "it cannot use what it depends on, so another try is useless"
	case err != nil && !errors.As(err, &exit):
		return "it cannot be started"
	case neverReady >= triesBeforeReady:
		return fmt.Sprintf("it died %d times before it was ready", neverReady)
	}
	return ""
}

func describe(err error) string {
	if err == nil {
		return "exit status 0 though its work is not done"
	}
	return err.Error()
}
