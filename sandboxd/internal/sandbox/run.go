package sandbox

import (
	"bytes"
	"context"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/verdict"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/worker"
)

// How the end of a program became known, fastest first.
const (
	HeardExit    = "exit call"   // gVisor's kernel reported the call
	HeardWait    = "wait"        // gVisor's kernel answered a wait
	HeardRuntime = "runtime end" // the runtime's process ended
)

// HeardBy tells how the end of the program became known; "" if it was stopped.
func (s *Instance) HeardBy() string { return s.heardBy }

// Run gives the sandbox its one program and returns how it went. It returns an
// error only if ctx ends, the sandbox was used before, or the program cannot be
// framed. The streams, the outcome and the measurements of the result are set;
// waiting times and protections are the caller's to add.
func (s *Instance) Run(ctx context.Context, code string, limit time.Duration) (api.Result, error) {
	if s.used {
		return api.Result{}, ErrUsed
	}
	s.used = true
	frame, err := worker.Frame(code)
	if err != nil {
		return api.Result{}, err
	}
	before := s.cpu()
	begin := time.Now()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	go s.send(frame)

	watch, endWatch := context.WithCancel(ctx)
	defer endWatch()
	stop, status := verdict.NotStopped, -1
	select {
	case status = <-s.ended:
		s.heardBy = HeardExit
	case ws := <-s.waited:
		status, s.heardBy = statusOf(ws), HeardWait
	case <-s.exited:
		s.heardBy = HeardRuntime
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
	var used cgroup.Usage
	if s.cfg.Group == nil {
		used = s.usage() // the dead can no longer be counted
	}
	if stop != verdict.NotStopped {
		s.Kill()
		<-s.exited
	}
	if stop == verdict.StoppedByOwner {
		return api.Result{}, context.Cause(ctx)
	}
	if status < 0 {
		<-s.exited
		status = s.status
		s.drainToEnd()
	} else {
		s.drainNow()
	}
	select {
	case <-s.overflow: // the flood was still in the pipe when the program ended
		if stop == verdict.NotStopped {
			stop = verdict.StoppedOutput
		}
	default:
	}
	if s.cfg.Group != nil {
		used = s.usage() // the kernel's last word, on memory kills above all
	}
	used.CPU = max(used.CPU-before, 0)
	return s.report(stop, status, wall, used), nil
}

func (s *Instance) report(stop verdict.Stop, status int, wall time.Duration, used cgroup.Usage) api.Result {
	r := api.Result{
		WallMS: ms(wall), CPUMS: ms(used.CPU), PeakMemory: used.PeakMemory,
		Warm: s.cfg.Warm, Image: s.cfg.Image, SandboxID: s.cfg.ID,
	}
	r.Stdout.Kept, r.Stdout.Total, r.Stdout.Truncated = s.stdout.Bytes()
	r.Stderr.Kept, r.Stderr.Total, r.Stderr.Truncated = s.stderr.Bytes()
	failure := ""
	if s.hasExited() && s.status != 0 {
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
		Started: s.Started(), Stop: stop, Status: status, RuntimeError: failure, OOMKills: used.OOMKills, Stderr: r.Stderr.Kept,
	})
	r.Outcome, r.ExitCode, r.Exception, r.Message = v.Outcome, v.ExitCode, v.Exception, v.Message
	return r
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Started says that the worker acknowledged the program: from then on the
// program may have done anything.
func (s *Instance) Started() bool {
	select {
	case <-s.opening.reached(worker.Run):
		return true
	default:
		return false
	}
}
