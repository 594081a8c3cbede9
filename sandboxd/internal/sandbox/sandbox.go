package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/proctree"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/spawn"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/output"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/worker"
)

// ErrUsed occurs when a second program is given to a sandbox.
var ErrUsed = errors.New("sandbox was used before")

// StartError occurs when a sandbox ended or fell silent before it was ready.
type StartError struct {
	ID     string
	Reason string
	// Said is what it wrote, trusted since no program had run.
	Said string
}

func (e *StartError) Error() string {
	return fmt.Sprintf("sandbox %s did not start: %s: %s", e.ID, e.Reason, e.Said)
}

// Config describes one sandbox to start.
type Config struct {
	ID    string
	Image string
	Warm  bool
	// Argv and Env are the command on the host.
	Argv, Env []string
	// Dir is its working folder on the host, "" for the daemon's.
	Dir string
	// Credential and namespaces of the host process, nil for the daemon's.
	Attr *syscall.SysProcAttr
	// Group receives the process before it executes anything; may be nil.
	Group *cgroup.Group
	// Kernel tells of the program from below it; nil for a plain process.
	Kernel Kernel
	// MemoryLimit is in bytes, 0 for none. It is kept by looking where no control
	// group keeps it.
	MemoryLimit int64
	// Folder is removed with the sandbox; "" for none.
	Folder string
	// Await is the line to wait for: worker.Ready, or worker.Checkpoint.
	Await string
	// Hurry is set for a clone, which waits for a nudge before it makes itself
	// ready, and is closed once somebody waits for it: until then it gets little
	// of the CPU, and if it is still open at the nudge the clone rehearses.
	Hurry <-chan struct{}
	// Shared says that it may run one program after another, each in a process of its
	// own: see Renew.
	Shared bool
	// KeepOutput is how many bytes of each stream to keep.
	KeepOutput int
	// OutputLimit bounds both streams together, in bytes.
	OutputLimit int64
}

// Instance is a started sandbox. Start makes it; Destroy must be called.
type Instance struct {
	cfg   Config
	cmd   *exec.Cmd
	stdin *os.File

	stdout, stderr *output.Tail
	// What comes before a program's own output, on either stream.
	opening, errOpening *opening
	readers             sync.WaitGroup
	streams             [2]*os.File

	exited  chan struct{} // closed when the host process was reaped
	waitErr error
	status  int

	overflow  chan struct{} // closed when the output budget is exceeded
	used      bool
	renewable bool          // the last program has ended by itself
	program   int           // its process in the sandbox
	conn      Connection    // nil without a kernel
	ended     <-chan Ending // as soon as the program's process ends
	waited    <-chan syscall.WaitStatus
	heardBy   string
	destroy   sync.Once
}

// joinScript puts the shell into every control group named before "--" and
// becomes the command after it: nothing of the sandbox runs outside its group.
const joinScript = `while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"`

// Start starts a sandbox and waits until it has written cfg.Await.
func Start(ctx context.Context, sp *spawn.Spawner, cfg Config) (Sandbox, error) {
	s := &Instance{cfg: cfg, program: 1, exited: make(chan struct{})}
	lines := []string{cfg.Await, worker.Run}
	if cfg.Hurry != nil {
		lines = append([]string{worker.Awake}, lines...)
	}
	s.openStreams(lines)
	if err := s.launch(sp); err != nil {
		return nil, errors.Join(fmt.Errorf("start sandbox %s: %w", cfg.ID, err), s.cleanUp())
	}
	if cfg.Hurry != nil {
		ready := make(chan struct{})
		defer close(ready)
		cfg.Group.SetBackground(true)
		go s.hurry(ready)
		if err := s.hear(ctx, worker.Awake); err != nil {
			return nil, err
		}
		// The nudge wakes it on the very way on which its program will.
		_, _ = s.stdin.Write([]byte{s.nudge()}) // a dead worker's exit tells it
	}
	if err := s.hear(ctx, cfg.Await); err != nil {
		return nil, err
	}
	if err := s.settle(); err != nil {
		return nil, s.failStart(err.Error())
	}
	return s, nil
}

// openStreams prepares for a program's streams, on which the worker first writes
// these lines, and on stderr those of the second list.
func (s *Instance) openStreams(lines []string, stderr ...string) {
	s.overflow = make(chan struct{})
	overflow := s.overflow
	budget := output.NewBudget(s.cfg.OutputLimit, func() { close(overflow) })
	s.stdout, s.stderr = output.NewTail(s.cfg.KeepOutput, budget), output.NewTail(s.cfg.KeepOutput, budget)
	s.opening, s.errOpening = newOpening(s.stdout, lines...), newOpening(s.stderr, stderr...)
}

// read begins to read a stream.
func (s *Instance) read(from io.Reader, to io.Writer) {
	s.readers.Go(func() { _, _ = io.CopyBuffer(onlyWriter{to}, onlyReader{from}, make([]byte, 32<<10)) })
}

// hurry gives the clone its full weight as soon as somebody waits for it.
func (s *Instance) hurry(ready <-chan struct{}) {
	select {
	case <-s.cfg.Hurry:
		s.cfg.Group.SetBackground(false)
	case <-ready:
	}
}

// nudge says whether the clone is to rehearse: it costs a fifth of the clone's CPU,
// and saves a caller a few milliseconds.
func (s *Instance) nudge() byte {
	select {
	case <-s.cfg.Hurry:
		return worker.Go
	default:
		return worker.Rehearse
	}
}

// hear waits until the worker has written line; if it never will, it destroys the
// sandbox.
func (s *Instance) hear(ctx context.Context, line string) error {
	select {
	case <-s.opening.reached(line):
		return nil
	case <-s.exited:
		s.readers.Wait()
		return s.failStart(fmt.Sprintf("it ended with status %d", s.status))
	case <-ctx.Done():
		return s.failStart(context.Cause(ctx).Error())
	}
}

// settle does ahead of the call what need not be done while a caller waits.
func (s *Instance) settle() error {
	if s.cfg.Shared && s.cfg.Await == worker.Ready {
		if err := s.expect(); err != nil {
			return err
		}
	} else if err := s.connect(); err != nil {
		return err
	}
	s.cfg.Group.SetBackground(false)
	s.cfg.Group.ResetPeak()
	return nil
}

func (s *Instance) failStart(reason string) error {
	said, _, _ := s.stderr.Bytes()
	failure := ""
	if s.cfg.Kernel != nil {
		failure = s.cfg.Kernel.Failure()
	}
	err := &StartError{ID: s.cfg.ID, Reason: reason, Said: fmt.Sprintf("%q %s", said, failure)}
	return errors.Join(err, s.Destroy())
}

func (s *Instance) launch(sp *spawn.Spawner) error {
	argv := s.cfg.Argv
	if files := s.cfg.Group.ProcsFiles(); len(files) > 0 {
		argv = append(append(append([]string{"/bin/sh", "-c", joinScript, "sh"}, files...), "--"), argv...)
	}
	s.cmd = exec.Command(argv[0], argv[1:]...)
	s.cmd.Env, s.cmd.Dir, s.cmd.SysProcAttr = s.cfg.Env, s.cfg.Dir, s.cfg.Attr
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	inR, inW, err := os.Pipe()
	if err != nil {
		return err
	}
	theirs, s.stdin, s.cmd.Stdin = append(theirs, inR), inW, inR
	for i, to := range []io.Writer{s.opening, s.errOpening} {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		theirs, s.streams[i] = append(theirs, w), r
		if i == 0 {
			s.cmd.Stdout = w
		} else {
			s.cmd.Stderr = w
		}
		s.read(r, to)
	}
	if err := sp.Start(s.cmd); err != nil {
		return err
	}
	if s.cfg.Kernel != nil {
		s.ended = s.cfg.Kernel.Expect(s.cmd.Process.Pid, s.program)
	}
	go func() {
		s.waitErr = s.cmd.Wait()
		s.status = processStatus(s.cmd.ProcessState)
		close(s.exited)
	}()
	return nil
}

// ID names the sandbox.
func (s *Instance) ID() string { return s.cfg.ID }

// Image names what it was made from.
func (s *Instance) Image() string { return s.cfg.Image }

// Warm says that it was restored from a checkpoint.
func (s *Instance) Warm() bool { return s.cfg.Warm }

// Exited is closed when the sandbox's host process has ended.
func (s *Instance) Exited() <-chan struct{} { return s.exited }

// Kill ends everything in the sandbox, at once.
func (s *Instance) Kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	select {
	case <-s.exited:
	default:
		// The runtime's process dies first; what it started has a
		// parent-death signal. The group catches what has not.
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	}
	s.cfg.Group.Kill()
}

// Destroy kills the sandbox and removes its traces. It may be called twice.
func (s *Instance) Destroy() error {
	var err error
	s.destroy.Do(func() {
		// Removing a control group waits for the last of its processes. Asking /proc
		// for them would make each one's end cost as much as a tenth of a restore.
		var family []int
		if s.cfg.Group == nil && !s.hasExited() {
			family = proctree.Of(s.cmd.Process.Pid)
		}
		s.Kill()
		<-s.exited
		vanish(family)
		err = s.cleanUp()
	})
	return err
}

// cleanUp closes and removes what belongs to the sandbox on the host.
func (s *Instance) cleanUp() error {
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
	if s.conn != nil {
		_ = s.conn.Close()
	}
	for _, f := range s.streams {
		if f != nil {
			_ = f.Close() // ends a reader that a stray holder of the pipe keeps waiting
		}
	}
	s.readers.Wait()
	if s.cfg.Kernel != nil && s.cmd != nil && s.cmd.Process != nil {
		s.cfg.Kernel.Forget(s.cmd.Process.Pid)
	}
	err := s.cfg.Group.Remove()
	if s.cfg.Folder != "" {
		err = errors.Join(err, os.RemoveAll(s.cfg.Folder))
	}
	return err
}

// send writes the program and closes stdin, so that the program reads end of
// file; in a shared sandbox it never has this stdin. A worker that dies meanwhile
// makes it fail, which the exit tells anyway.
func (s *Instance) send(frame []byte) {
	_, _ = s.stdin.Write(frame)
	if !s.cfg.Shared {
		_ = s.stdin.Close()
	}
}

func processStatus(state *os.ProcessState) int {
	if state == nil {
		return -1
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok {
		return statusOf(ws)
	}
	return state.ExitCode()
}

// statusOf writes a wait status as shells do: 128+N for signal N.
func statusOf(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// onlyWriter and onlyReader hide ReadFrom and WriteTo, so that the given
// buffer is used.
type onlyWriter struct{ io.Writer }
type onlyReader struct{ io.Reader }
