package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/serve/admission"
)

// reservation is a slot that its holder keeps between calls.
type reservation struct {
	ctx  context.Context // ends with the reservation
	busy bool
}

// Reserve waits for a slot and keeps it until release is called; release ends a
// call that still runs in it.
func (s *Service) Reserve(ctx context.Context) (id string, waited time.Duration, release func(), err error) {
	arrived := time.Now()
	if err := s.admit(); err != nil {
		return "", 0, nil, err
	}
	waitCtx, cancelWait := context.WithTimeoutCause(ctx, s.cfg.MaxWait, admission.ErrFull)
	defer cancelWait()
	ticket, err := s.gate.Acquire(waitCtx, true)
	if err != nil {
		return "", 0, nil, err
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	id = "res-" + hex.EncodeToString(b[:])
	held, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.mu.Lock()
	s.reservations[id] = &reservation{ctx: held}
	s.mu.Unlock()
	return id, time.Since(arrived), func() {
		s.mu.Lock()
		delete(s.reservations, id)
		s.mu.Unlock()
		cancel(context.Canceled)
		ticket.Release()
	}, nil
}

// enter makes a call the one call of its reservation. The call ends with the
// caller or with the reservation, whichever is first.
func (s *Service) enter(ctx context.Context, id string) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reservations[id]
	if r == nil {
		return nil, nil, ErrUnknownReservation
	}
	if r.busy {
		return nil, nil, ErrReservationBusy
	}
	r.busy = true
	joined, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })
	return joined, func() {
		stop()
		cancel(nil)
		s.mu.Lock()
		r.busy = false
		s.mu.Unlock()
	}, nil
}
