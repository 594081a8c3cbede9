package sandbox

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
)

// memoryPoll is how often a running sandbox is looked at for OOM kills.
const memoryPoll = 100 * time.Millisecond

// outOfMemory returns a channel that is closed when the kernel has killed a
// process of the sandbox for its memory. gVisor may outlive the loss of one of
// its processes and hang; without this, the time limit would get the blame.
func (s *Instance) outOfMemory(ctx context.Context) <-chan struct{} {
	if s.cfg.Group == nil {
		return nil
	}
	hit := make(chan struct{})
	go func() {
		tick := time.NewTicker(memoryPoll)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.exited:
				return
			case <-tick.C:
				if s.cfg.Group.Usage().OOMKills > 0 {
					close(hit)
					return
				}
			}
		}
	}()
	return hit
}

// askForEnd returns a channel that receives the program's status as soon as
// gVisor's kernel knows it; nothing comes if the sandbox dies as a whole.
func (s *Instance) askForEnd() <-chan syscall.WaitStatus {
	if s.control == nil {
		return nil
	}
	notice := make(chan syscall.WaitStatus, 1)
	go func() {
		if status, err := s.control.Wait(); err == nil {
			notice <- status
		}
	}()
	return notice
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
		return treeUsage(s.cmd.Process.Pid)
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
	for i, to := range []io.Writer{s.opening, s.stderr} {
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

// readRuntimeLog returns the last error in a runtime log: JSON objects one
// after another, without separators.
func readRuntimeLog(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var last string
	for d := json.NewDecoder(io.LimitReader(f, 1<<20)); ; {
		var entry struct {
			Msg   string `json:"msg"`
			Level string `json:"level"`
		}
		if err := d.Decode(&entry); err != nil {
			return strings.TrimSpace(last)
		}
		if entry.Level == "error" {
			last = entry.Msg
		}
	}
}
