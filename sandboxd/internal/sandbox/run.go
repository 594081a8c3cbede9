package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/verdict"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/worker"
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
	go s.send(frame)

	e := s.await(ctx, limit)
	wall := time.Since(begin)
	s.heardBy = e.heardBy
	failure := ""
	switch {
	case e.stop == verdict.StoppedTime:
		if failure = s.stuck(); failure == "" { // before it is killed
			s.flush()
		}
	case e.heardBy == HeardRuntime:
		failure = s.failure()
	case e.foreign:
		failure = fmt.Sprintf("signal %d came to the program from outside of its sandbox", e.status-128)
	}
	var used cgroup.Usage
	if s.cfg.Group == nil {
		used = s.usage() // the dead can no longer be counted
	}
	if e.stop != verdict.NotStopped {
		s.Kill()
		<-s.exited
	}
	if e.stop == verdict.StoppedByOwner {
		return api.Result{}, context.Cause(ctx)
	}
	if e.stop != verdict.NotStopped || e.heardBy == HeardRuntime {
		s.drainToEnd()
	} else {
		s.drainNow()
	}
	select {
	case <-s.overflow: // the flood was still in the pipe when the program ended
		if e.stop == verdict.NotStopped {
			e.stop = verdict.StoppedOutput
		}
	default:
	}
	if s.cfg.Group != nil {
		used = s.usage() // the kernel's last word, on memory kills above all
	}
	used.CPU = max(used.CPU-before, 0)
	// A process that died before it took the program may have left some of it unread.
	s.renewable = s.cfg.Shared && s.Started() && e.stop == verdict.NotStopped && e.heardBy == HeardExit && failure == ""
	return s.report(e, failure, wall, used), nil
}

func (s *Instance) report(e end, failure string, wall time.Duration, used cgroup.Usage) api.Result {
	r := api.Result{
		WallMS: ms(wall), CPUMS: ms(used.CPU), PeakMemory: used.PeakMemory,
		Warm: s.cfg.Warm, Image: s.cfg.Image, SandboxID: s.cfg.ID,
	}
	r.Stdout.Kept, r.Stdout.Total, r.Stdout.Truncated = s.stdout.Bytes()
	r.Stderr.Kept, r.Stderr.Total, r.Stderr.Truncated = s.stderr.Bytes()
	if failure != "" {
		// The runtime repeats its failure on the stderr it shares with the
		// program; that line is not the program's.
		line := []byte(failure + "\n")
		if kept, ok := bytes.CutSuffix(r.Stderr.Kept, line); ok {
			r.Stderr.Kept, r.Stderr.Total = kept, r.Stderr.Total-int64(len(line))
		}
	}
	v := verdict.Decide(verdict.Evidence{
		Started: s.Started(), Stop: e.stop, Status: e.status, Failure: failure, OOMKills: used.OOMKills, Stderr: r.Stderr.Kept,
	})
	r.Outcome, r.ExitCode, r.Exception, r.Cause, r.Message = v.Outcome, v.ExitCode, v.Exception, v.Cause, v.Message
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
