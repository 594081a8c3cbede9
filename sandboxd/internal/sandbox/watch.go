package sandbox

import (
	"context"
	"io"
	"syscall"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/proctree"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/worker"
)

// memoryPoll is how often a running sandbox is looked at for memory kills, and
// memoryWatch how often for its memory where no control group bounds that.
const (
	memoryPoll  = 50 * time.Millisecond
	memoryWatch = 10 * time.Millisecond
)

// flushShare says when a program is told to write out what it has printed: when all
// but this part of its memory is used.
const flushShare = 4

// outOfMemory returns a channel that is closed when the kernel has killed a
// process of the sandbox for its memory: gVisor may outlive the loss of one of its
// processes and hang, and the time limit would get the blame. Where there is no
// control group it is closed when the sandbox holds more than its limit.
func (s *Instance) outOfMemory(ctx context.Context) <-chan struct{} {
	over, held, every := func(int64) bool { return s.cfg.Group.Usage().OOMKills > 0 }, s.cfg.Group.Memory, memoryPoll
	switch {
	case s.cfg.Group.Memory() == 0 && s.cfg.Kernel != nil && s.cfg.MemoryLimit > 0:
		pid := s.cmd.Process.Pid
		over, every = func(held int64) bool { return held > s.cfg.MemoryLimit }, memoryWatch
		held = func() int64 { return s.cfg.Kernel.Memory(pid) }
	case s.cfg.Group == nil:
		return nil
	}
	hit := make(chan struct{})
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		flushed := false
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.exited:
				return
			case <-tick.C:
			}
			now := held()
			if over(now) {
				close(hit)
				return
			}
			// A memory kill comes without warning, and takes what was printed and
			// not yet written along.
			if !flushed && s.cfg.MemoryLimit > 0 && now > s.cfg.MemoryLimit/flushShare*(flushShare-1) {
				flushed = true
				_ = s.signal(worker.FlushSignal)
			}
		}
	}()
	return hit
}

func (s *Instance) hasExited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// usage is what the sandbox has consumed, by its control group or, without one,
// by the host's account of its processes.
func (s *Instance) usage() cgroup.Usage {
	if s.cfg.Group != nil {
		return s.cfg.Group.Usage()
	}
	if !s.hasExited() {
		var u cgroup.Usage
		u.CPU, u.PeakMemory = proctree.Usage(s.cmd.Process.Pid)
		return u
	}
	u := cgroup.Usage{CPU: s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()}
	if ru, ok := s.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.PeakMemory = ru.Maxrss << 10
	}
	return u
}

// cpu is the CPU time that the sandbox has consumed.
func (s *Instance) cpu() time.Duration {
	if s.cfg.Group != nil {
		return s.cfg.Group.CPU()
	}
	return s.usage().CPU
}

// drainPatience bounds the wait for the end of the streams once the sandbox's
// process is gone: only what the pipes still hold is left to read.
const drainPatience = time.Second

// drainToEnd reads the streams to their ends; a stray holder of a pipe is not
// waited for.
func (s *Instance) drainToEnd() {
	for _, f := range s.streams {
		_ = f.SetReadDeadline(time.Now().Add(drainPatience))
	}
	s.readers.Wait()
}

// drainNow reads what the pipes hold. The program has ended, so everything that
// it wrote is there; the ends of the streams come only with the sandbox's.
func (s *Instance) drainNow() {
	for _, f := range s.streams {
		_ = f.SetReadDeadline(time.Unix(1, 0)) // ends the readers
	}
	s.readers.Wait()
	for i, to := range []io.Writer{s.opening, s.errOpening} {
		_ = s.streams[i].SetReadDeadline(time.Time{})
		raw, err := s.streams[i].SyscallConn()
		if err != nil {
			continue
		}
		buf := make([]byte, 32<<10)
		// A child that outlives the program for a moment could go on writing:
		// a pipe holds at most 1 MiB, so that much ends it.
		_ = raw.Read(func(fd uintptr) bool {
			for total := 0; total < 1<<20; {
				n, err := syscall.Read(int(fd), buf)
				if err == syscall.EINTR {
					continue
				}
				if n <= 0 {
					break
				}
				_, _ = to.Write(buf[:n])
				total += n
			}
			return true
		})
	}
}
