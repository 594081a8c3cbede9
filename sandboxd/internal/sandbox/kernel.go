package sandbox

import (
	"context"
	"syscall"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/host/proctree"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/verdict"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/worker"
)

// Kernel is what lies between the host and the program, if anything does, and
// tells of the program from below it. Without one the host's process is the
// program, and its end is the program's.
type Kernel interface {
	// Expect returns a channel that receives a program's end as it happens, and
	// is closed when the kernel is gone. pid is the sandbox's process on the host,
	// program the program's in the sandbox. Forget ends it.
	Expect(pid, program int) <-chan Ending
	Forget(pid int)
	// Connect makes a connection on which to ask for the program's end.
	Connect() (Connection, error)
	// Failure is what the kernel or its runtime wrote of a failure of their own,
	// "" if nothing.
	Failure() string
	// Stuck says why the kernel does not serve the program, "" if it does.
	Stuck(pid int) string
	// Signal sends a signal to the program's process.
	Signal(program int, signal syscall.Signal) error
	// Memory is what the sandbox holds at this moment, in bytes; 0 if unknown.
	Memory(pid int) int64
}

// Ending is a program's end as the kernel reports it.
type Ending struct {
	// Status is the exit status, 128+N for signal N.
	Status int
	// Foreign says that it died of a signal that nobody in the sandbox can have
	// sent: somebody on the host did, or the kernel gave the program up.
	Foreign bool
}

// Connection is a connection to a kernel.
type Connection interface {
	// Wait returns when the program has ended, with its status.
	Wait() (syscall.WaitStatus, error)
	Close() error
}

// How the end of a program became known, fastest first.
const (
	HeardExit    = "exit call"   // the kernel reported it as it happened
	HeardWait    = "wait"        // the kernel answered a wait
	HeardRuntime = "runtime end" // the sandbox's process on the host ended
)

// end is how a run came to its end.
type end struct {
	stop    verdict.Stop
	status  int
	heardBy string // "" if it was stopped
	foreign bool   // see Ending
}

// takePatience bounds the wait until the worker has taken the program. The
// program's own time runs from then on.
const takePatience = 30 * time.Second

// await returns when the program has ended or must be ended.
func (s *Instance) await(ctx context.Context, limit time.Duration) end {
	timer := time.NewTimer(takePatience)
	defer timer.Stop()
	taken := s.opening.reached(worker.Run)
	watch, endWatch := context.WithCancel(ctx)
	defer endWatch()
	outOfMemory := s.outOfMemory(watch)
	ended, waited := s.ended, s.waited
	for {
		select {
		case <-taken:
			taken = nil
			timer.Reset(limit)
		case e, more := <-ended:
			if more {
				return end{status: e.Status, foreign: e.Foreign, heardBy: HeardExit}
			}
			ended = nil
		case ws, more := <-waited:
			if more {
				return s.detailed(ended, statusOf(ws))
			}
			waited = nil
		case <-s.exited:
			return s.lastWords(ended, waited)
		case <-outOfMemory:
			return end{stop: verdict.StoppedMemory, status: -1}
		case <-timer.C:
			return end{stop: verdict.StoppedTime, status: -1}
		case <-s.overflow:
			return end{stop: verdict.StoppedOutput, status: -1}
		case <-ctx.Done():
			return end{stop: verdict.StoppedByOwner, status: -1}
		}
	}
}

// reportPatience bounds the wait for reports that a dead kernel's sockets may
// still hold.
const reportPatience = 2 * time.Second

// lastWords looks for what the kernel reported before its process ended.
func (s *Instance) lastWords(ended <-chan Ending, waited <-chan syscall.WaitStatus) end {
	patience := time.NewTimer(reportPatience)
	defer patience.Stop()
	for ended != nil || waited != nil {
		select {
		case e, more := <-ended:
			if more {
				return end{status: e.Status, foreign: e.Foreign, heardBy: HeardExit}
			}
			ended = nil
		case ws, more := <-waited:
			if more {
				return s.detailed(ended, statusOf(ws))
			}
			waited = nil
		case <-patience.C:
			ended, waited = nil, nil
		}
	}
	return end{status: s.status, heardBy: HeardRuntime}
}

// detailPatience bounds the wait for the report that says more than the wait's
// answer; it was sent first.
const detailPatience = 100 * time.Millisecond

// detailed prefers the report of the end to the answer of a wait, which does not
// say where a signal came from.
func (s *Instance) detailed(ended <-chan Ending, status int) end {
	if status > 128 {
		patience := time.NewTimer(detailPatience)
		defer patience.Stop()
		select {
		case e, more := <-ended:
			if more {
				return end{status: e.Status, foreign: e.Foreign, heardBy: HeardExit}
			}
		case <-patience.C:
		}
	}
	return end{status: status, heardBy: HeardWait}
}

// connect opens the connection to the kernel, ahead of the call.
func (s *Instance) connect() error {
	if s.cfg.Kernel == nil {
		return nil
	}
	conn, err := s.cfg.Kernel.Connect()
	if err != nil {
		return err
	}
	s.conn = conn
	waited := make(chan syscall.WaitStatus, 1)
	s.waited = waited
	go func() {
		defer close(waited)
		if status, err := conn.Wait(); err == nil {
			waited <- status
		}
	}()
	return nil
}

// failure is what the sandbox's own side says about a failure of its own: by now
// the host's process has ended without a report of the program's end.
func (s *Instance) failure() string {
	if s.cfg.Kernel == nil {
		return ""
	}
	if why := s.cfg.Kernel.Failure(); why != "" {
		return why
	}
	return "gVisor's kernel died without a report of the program's end; its process ended with status " + verdict.Status(s.status)
}

// stuck says why the kernel did not serve its program, "" if it did.
func (s *Instance) stuck() string {
	if s.cfg.Kernel == nil || s.hasExited() {
		return ""
	}
	return s.cfg.Kernel.Stuck(s.cmd.Process.Pid)
}

// A program that is about to be ended is given flushPause to write out what it has
// printed, again while it does, up to flushPatience.
const (
	flushPause    = 50 * time.Millisecond
	flushPatience = 300 * time.Millisecond
)

// flush has the program write out what it has printed. It need not obey.
func (s *Instance) flush() {
	before := int64(-1)
	for begin := time.Now(); time.Since(begin) < flushPatience; {
		_, out, _ := s.stdout.Bytes()
		_, err, _ := s.stderr.Bytes()
		if out+err == before {
			return
		}
		before = out + err
		if s.signal(worker.FlushSignal) != nil {
			return
		}
		select {
		case <-s.exited:
			return
		case <-s.overflow:
			return
		case <-time.After(flushPause):
		}
	}
}

func (s *Instance) signal(signal syscall.Signal) error {
	if s.cfg.Kernel == nil {
		return s.cmd.Process.Signal(signal)
	}
	return s.cfg.Kernel.Signal(s.program, signal)
}

// vanishPatience bounds the wait for the end of killed processes.
const vanishPatience = 2 * time.Second

// vanish waits until none of pids lives; a zombie lives no more.
func vanish(pids []int) {
	for deadline := time.Now().Add(vanishPatience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		alive := false
		for _, pid := range pids {
			if s, ok := proctree.Read(pid); ok && s.State != 'Z' && s.State != 'X' {
				alive = true
			}
		}
		if !alive {
			return
		}
	}
}
