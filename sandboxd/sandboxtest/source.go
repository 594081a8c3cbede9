package sandboxtest

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
)

// source makes sandboxes that run nothing.
type source struct{ program Program }

func (s source) Take(context.Context, string, bool) (sandbox.Sandbox, error) {
	return &scripted{program: s.program, id: "test-" + rand.Text()[:8], exited: make(chan struct{})}, nil
}

type scripted struct {
	program Program
	id      string
	started atomic.Bool
	exited  chan struct{}
}

func (s *scripted) ID() string              { return s.id }
func (s *scripted) Image() string           { return "test" }
func (s *scripted) Warm() bool              { return true }
func (s *scripted) Started() bool           { return s.started.Load() }
func (s *scripted) Exited() <-chan struct{} { return s.exited }
func (s *scripted) Destroy() error          { return nil }

func (s *scripted) Run(ctx context.Context, code string, limit time.Duration) (api.Result, error) {
	s.started.Store(true)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin := time.Now()
	r := s.program(limited, code)
	switch {
	case ctx.Err() != nil:
		return api.Result{}, context.Cause(ctx)
	case limited.Err() != nil:
		r = api.Result{Outcome: api.Timeout, ExitCode: -1}
	}
	r.WallMS = float64(time.Since(begin).Microseconds()) / 1000
	r.Image, r.Warm, r.SandboxID = s.Image(), true, s.id
	return r, nil
}
