// Package serve runs calls: it joins admission, the source of sandboxes, the
// circuit breaker and the metrics. It knows neither HTTP nor gVisor.
//
// Promises: one sandbox per call, destroyed afterwards; waiting and starting
// are measured apart from running; a sandbox that dies before it took the
// program is replaced once; a caller that goes away ends its call.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/admission"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/breaker"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/keep"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/metrics"
)

// ErrUnknownReservation occurs when a call names a reservation that is not held.
var ErrUnknownReservation = errors.New("no such reservation")

// ErrReservationBusy occurs when a call names a reservation that already runs one.
var ErrReservationBusy = errors.New("the reservation already runs a call")

// ErrStopping is the cause with which contexts of calls end when the daemon ends
// them.
var ErrStopping = errors.New("the daemon is stopping and has ended the call")

// TrippedError occurs while the circuit breaker is open.
type TrippedError struct {
	Reason     string
	RetryAfter time.Duration
}

func (e *TrippedError) Error() string {
	return "the circuit breaker is open after repeated infrastructure failures; the last: " + e.Reason
}

// BegunError occurs when a call was ended from outside after its program had begun: its
// caller or its reservation went away, or the daemon is stopping.
type BegunError struct{ Err error }

func (e *BegunError) Error() string { return "ended after the program had begun: " + e.Err.Error() }
func (e *BegunError) Unwrap() error { return e.Err }

// InvalidError occurs when a request is refused for what it says.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }
func (e *InvalidError) Unwrap() error { return e.Err }

// Source provides sandboxes.
type Source interface {
	// Take returns a sandbox that is ready; cold asks for a booted one.
	Take(ctx context.Context, image string, cold bool) (sandbox.Sandbox, error)
}

// Config bounds calls.
type Config struct {
	DefaultTimeout time.Duration
	MaxTimeout     time.Duration
	// MaxCode is the largest program in bytes.
	MaxCode int
	// MaxWait bounds the time in the queue.
	MaxWait time.Duration
	// Images lists the names that a request may ask for.
	Images []string
	// Choose picks an image for a program.
	Choose func(code string) string
	// Keep says what is kept of the sandboxes of trajectories; nil for nothing: each
	// call has a sandbox of its own.
	Keep *keep.Config
}

// Service runs calls. Make it with New.
type Service struct {
	cfg         Config
	gate        *admission.Gate
	source      Source
	breaker     *breaker.Breaker
	metrics     *metrics.Metrics
	protections api.Protections
	log         *slog.Logger

	kept   *keep.Keeper   // nil for none
	ending sync.WaitGroup // sandboxes being destroyed

	mu           sync.Mutex
	reservations map[string]*reservation
	places       map[string]*place // by owner and key
	running      int
}

// New joins the parts.
func New(cfg Config, gate *admission.Gate, source Source, b *breaker.Breaker, m *metrics.Metrics, p api.Protections, log *slog.Logger) *Service {
	s := &Service{cfg: cfg, gate: gate, source: source, breaker: b, metrics: m, protections: p, log: log,
		reservations: map[string]*reservation{}, places: map[string]*place{}}
	if cfg.Keep != nil {
		s.kept = keep.New(*cfg.Keep, s.discard, log)
	}
	return s
}

// SetProtections changes what results say of the protections.
func (s *Service) SetProtections(p api.Protections) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.protections = p
}

func (s *Service) protected() api.Protections {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.protections
}

// Run runs one program.
func (s *Service) Run(ctx context.Context, req api.Request) (api.Result, error) {
	arrived := time.Now()
	if err := s.check(req); err != nil {
		return api.Result{}, &InvalidError{err}
	}
	if err := s.admit(); err != nil {
		return api.Result{}, err
	}
	ctx, release, err := s.slot(ctx, req)
	if err != nil {
		return api.Result{}, err
	}
	defer release()
	wait := time.Since(arrived)
	s.count(1)
	defer s.count(-1)

	result, start, err := s.execute(ctx, req)
	if err != nil {
		return api.Result{}, err
	}
	result.QueueWaitMS, result.StartMS = milliseconds(wait), milliseconds(start)
	result.Protections = s.protected()
	s.observe(req, result, wait, start)
	return result, nil
}

func (s *Service) check(req api.Request) error {
	if err := req.Validate(s.cfg.MaxCode, s.cfg.MaxTimeout); err != nil {
		return err
	}
	if req.Image == "" {
		return nil
	}
	for _, name := range s.cfg.Images {
		if name == req.Image {
			return nil
		}
	}
	return fmt.Errorf("image %q is unknown: want one of %s", req.Image, strings.Join(s.cfg.Images, ", "))
}

// admit refuses everything while the breaker is open.
func (s *Service) admit() error {
	if open, reason, after := s.breaker.Open(time.Now()); open {
		return &TrippedError{Reason: reason, RetryAfter: after}
	}
	return nil
}

// slot finds the call's slot: its reservation's, or one from the queue.
func (s *Service) slot(ctx context.Context, req api.Request) (context.Context, func(), error) {
	if req.Reservation != "" {
		return s.enter(ctx, req.Reservation)
	}
	waitCtx, cancel := context.WithTimeoutCause(ctx, s.cfg.MaxWait, admission.ErrFull)
	defer cancel()
	ticket, err := s.gate.Acquire(waitCtx, admission.Call, req.Owner)
	if err != nil {
		return nil, nil, err
	}
	return ctx, ticket.Release, nil
}

// execute takes a sandbox and runs the program. If there is none to be had, or it
// turns out dead before it took the program, another one is tried, and at last one
// that is booted, unless too much time has passed.
func (s *Service) execute(ctx context.Context, req api.Request) (result api.Result, start time.Duration, err error) {
	name := req.Image
	if name == "" {
		name = s.cfg.Choose(req.Code)
	}
	limit := req.Timeout()
	if limit == 0 {
		limit = s.cfg.DefaultTimeout
	}
	home := s.home(req, name)
	begin := time.Now()
	for attempt, cold := range []bool{req.Cold, req.Cold, true} {
		if attempt > 0 && time.Since(begin) > retryTime {
			break
		}
		box, calls, err := s.take(ctx, home, attempt, name, cold)
		if err != nil {
			if ctx.Err() != nil {
				return api.Result{}, 0, context.Cause(ctx)
			}
			s.log.Error("no sandbox could be made", "image", name, "cold", cold, "err", err)
			result = api.Result{Outcome: api.InfraError, ExitCode: -1, Cause: api.CauseStart, Image: name, Message: "no sandbox could be made: " + err.Error()}
			continue
		}
		start = time.Since(begin)
		result, err = box.Run(ctx, req.Code, limit)
		taken := box.Started()
		result.SandboxCall = calls + 1
		if home == "" || err != nil || result.Outcome == api.InfraError {
			s.discard(box)
		} else {
			s.kept.Keep(home, box, calls+1)
		}
		if err != nil && taken {
			return api.Result{}, 0, &BegunError{err}
		}
		if err != nil {
			return api.Result{}, 0, err
		}
		if result.Outcome != api.InfraError || taken {
			return result, start, nil
		}
		s.metrics.Replaced.WithLabelValues(metrics.DiedTaken).Inc()
		s.log.Warn("a sandbox died before it took the program", "sandbox", box.ID(), "reason", result.Message)
	}
	return result, time.Since(begin), nil
}

// home is where the sandbox of a call is kept for the next one of its trajectory; ""
// for nowhere.
func (s *Service) home(req api.Request, image string) string {
	if s.kept == nil || req.Trajectory == "" || req.Cold {
		return ""
	}
	return fmt.Sprintf("%q %q %s", req.Owner, req.Trajectory, image)
}

// take returns the sandbox for an attempt, and how many programs it has run.
func (s *Service) take(ctx context.Context, home string, attempt int, image string, cold bool) (sandbox.Sandbox, int, error) {
	if home != "" && attempt == 0 {
		if box, calls := s.kept.Take(ctx, home); box != nil {
			return box, calls, nil
		}
	}
	box, err := s.source.Take(ctx, image, cold)
	return box, 0, err
}

// Kept is how many sandboxes wait for the next call of their trajectory.
func (s *Service) Kept() int { return s.kept.Len() }

// retryTime bounds how long a call is tried again: where every start hangs, one is
// enough to know.
const retryTime = 30 * time.Second

// discard destroys a sandbox off the caller's path.
func (s *Service) discard(box sandbox.Sandbox) {
	s.ending.Go(func() {
		if err := box.Destroy(); err != nil {
			s.metrics.CleanupFailures.Inc()
			s.log.Error("sandbox left traces", "sandbox", box.ID(), "err", err)
		}
	})
}

func (s *Service) observe(req api.Request, r api.Result, wait, start time.Duration) {
	kind := "cold"
	if r.Warm {
		kind = "warm"
	}
	s.metrics.Calls.WithLabelValues(string(r.Outcome), r.Image, kind).Inc()
	s.metrics.QueueWait.Observe(wait.Seconds())
	s.metrics.Start.Observe(start.Seconds())
	s.metrics.Run.Observe(r.WallMS / 1000)
	failure := ""
	if r.Outcome == api.InfraError {
		failure = r.Message
		s.log.Error("call failed for the infrastructure", "sandbox", r.SandboxID, "label", req.Label, "reason", r.Message)
	}
	s.report(failure)
	s.log.Debug("call", "sandbox", r.SandboxID, "label", req.Label, "outcome", r.Outcome, "exit", r.ExitCode,
		"wall_ms", r.WallMS, "wait_ms", r.QueueWaitMS, "start_ms", r.StartMS, "warm", r.Warm, "image", r.Image)
}

func (s *Service) report(failure string) {
	if !s.breaker.Report(time.Now(), failure) {
		return
	}
	if open, reason, _ := s.breaker.Open(time.Now()); open {
		s.metrics.Tripped.Set(1)
		s.log.Error("circuit breaker opened: calls are refused until a probe succeeds", "reason", reason)
		return
	}
	s.metrics.Tripped.Set(0)
	s.log.Info("circuit breaker closed: calls are taken again")
}

// Probe runs a real program past admission and the breaker, and tells the
// breaker how it went; cold boots a sandbox for it.
func (s *Service) Probe(ctx context.Context, cold bool) error {
	result, _, err := s.execute(ctx, api.Request{Code: "print(6*7)", Label: "probe", Cold: cold})
	switch {
	case err != nil:
	case result.Outcome != api.OK:
		err = fmt.Errorf("probe ended as %s: %s", result.Outcome, result.Message)
	case strings.TrimSpace(result.Stdout.Text()) != "42":
		err = fmt.Errorf("probe printed %q, want 42", result.Stdout.Text())
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		s.report(err.Error())
		return err
	}
	s.report("")
	return nil
}

// ShouldProbe says that the breaker waits for a probe.
func (s *Service) ShouldProbe() bool { return s.breaker.MayProbe(time.Now()) }

func (s *Service) count(n int) {
	s.mu.Lock()
	s.running += n
	s.mu.Unlock()
}

// Running is the number of calls that hold a sandbox or wait for one in their slot.
func (s *Service) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// Wait waits until every discarded sandbox is gone.
func (s *Service) Wait() { s.ending.Wait() }

// Close gives up what is kept for trajectories, and waits. It may be called twice.
func (s *Service) Close() {
	s.kept.Close()
	s.Wait()
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Tripped says whether the circuit breaker is open, and why.
func (s *Service) Tripped() (bool, string) {
	open, reason, _ := s.breaker.Open(time.Now())
	return open, reason
}
