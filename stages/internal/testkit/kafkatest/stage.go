package kafkatest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/stages/internal/stage"
)

// Running is a stage at work.
type Running struct {
	t      testing.TB
	cancel context.CancelFunc
	done   chan error
}

// Start runs a stage's Run beside the test.
func (w *World) Start(run func(context.Context, *stage.Env) error, env *stage.Env) *Running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Running{t: w.T, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- run(ctx, env) }()
	return r
}

// Stop ends the stage as a signal would and wants a clean end.
func (r *Running) Stop() {
	r.t.Helper()
	r.cancel()
	if err := <-r.done; err != nil && !errors.Is(err, context.Canceled) {
		r.t.Errorf("the stage ended with: %v", err)
	}
}

// Ended waits for the stage to end by itself and returns its error.
func (r *Running) Ended() error {
	r.t.Helper()
	defer r.cancel()
	select {
	case err := <-r.done:
		return err
	case <-time.After(10 * time.Minute):
		r.t.Fatal("the stage did not end in 10 minutes")
		return nil
	}
}

func contextFor(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
