package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/verdict"
	"github.com/sluice-rl/sluice/sandboxd/internal/worker"
)

// drainPatience bounds the wait for the end of the streams once the sandbox's
// process is gone: only what the pipes still hold is left to read.
const drainPatience = time.Second

// memoryPoll is how often a running sandbox is looked at for OOM kills.
const memoryPoll = 100 * time.Millisecond

// Run gives the sandbox its one program and returns how it went. It returns an
// error only if ctx ends, the sandbox was used before, or the program cannot be
// framed. The streams, the outcome and the measurements of the result are set;
// waiting times and protections are the caller's to add.
func (s *Sandbox) Run(ctx context.Context, code string, limit time.Duration) (api.Result, error) {
	if s.used {
		return api.Result{}, ErrUsed
	}
	s.used = true
	frame, err := worker.Frame(code)
	if err != nil {
		return api.Result{}, err
	}
	s.cfg.Group.SetBackground(false)
	s.cfg.Group.ResetPeak()
	before := s.usage()
	begin := time.Now()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	go s.send(frame)

	watch, endWatch := context.WithCancel(ctx)
	defer endWatch()
	stop := verdict.NotStopped
	select {
	case <-s.exited:
	case <-s.outOfMemory(watch):
		stop = verdict.StoppedMemory
	case <-timer.C:
		stop = verdict.StoppedTime
	case <-s.overflow:
		stop = verdict.StoppedOutput
	case <-ctx.Done():
		stop = verdict.StoppedByOwner
	}
	wall := time.Since(begin)
	after := s.usage() // before the kill: a dead group on v2 still counts, but a killed one may be gone
	if stop != verdict.NotStopped {
		s.Kill()
		<-s.exited
	}
	if stop == verdict.StoppedByOwner {
		return api.Result{}, context.Cause(ctx)
	}
	s.drain(drainPatience)
	select {
	case <-s.overflow: // the flood was still in the pipe when the program ended
		if stop == verdict.NotStopped {
			stop = verdict.StoppedOutput
		}
	default:
	}
	final := s.usage()
	return s.report(stop, wall, final.CPU-before.CPU, max(after.PeakMemory, final.PeakMemory), final.OOMKills), nil
}

func (s *Sandbox) report(stop verdict.Stop, wall, cpu time.Duration, peak, oom int64) api.Result {
	r := api.Result{
		WallMS: ms(wall), CPUMS: ms(cpu), PeakMemory: peak,
		Warm: s.cfg.Warm, Image: s.cfg.Image, SandboxID: s.cfg.ID,
	}
	r.Stdout.Kept, r.Stdout.Total, r.Stdout.Truncated = s.stdout.Bytes()
	r.Stderr.Kept, r.Stderr.Total, r.Stderr.Truncated = s.stderr.Bytes()
	failure := ""
	if s.status != 0 {
		failure = s.RuntimeError()
	}
	if failure != "" {
		// The runtime repeats its failure on the stderr it shares with the
		// program; that line is not the program's.
		line := []byte(failure + "\n")
		if kept, ok := bytes.CutSuffix(r.Stderr.Kept, line); ok {
			r.Stderr.Kept, r.Stderr.Total = kept, r.Stderr.Total-int64(len(line))
		}
	}
	v := verdict.Decide(verdict.Evidence{
		Started: s.Started(), Stop: stop, Status: s.status, RuntimeError: failure, OOMKills: oom, Stderr: r.Stderr.Kept,
	})
	r.Outcome, r.ExitCode, r.Exception, r.Message = v.Outcome, v.ExitCode, v.Exception, v.Message
	return r
}

// outOfMemory returns a channel that is closed when the kernel has killed a
// process of the sandbox for its memory. gVisor may outlive the loss of one of
// its processes and hang; without this, the time limit would get the blame.
func (s *Sandbox) outOfMemory(ctx context.Context) <-chan struct{} {
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

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

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

// Started says that the worker acknowledged the program: from then on the
// program may have done anything.
func (s *Sandbox) Started() bool {
	select {
	case <-s.opening.running:
		return true
	default:
		return false
	}
}
