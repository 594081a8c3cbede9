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
	ctx    context.Context // ends with the reservation
	ticket *admission.Ticket
	busy   bool
}

// Reserved is a slot that was reserved.
type Reserved struct {
	ID     string
	Waited time.Duration
	// Lost is closed when the slot was taken away, which happens only while no call
	// runs in it.
	Lost <-chan struct{}
	// Release gives the slot back and ends a call that still runs in it.
	Release func()
}

// Reserve waits for a slot and keeps it until Release is called, or until somebody with
// a better claim needs it.
func (s *Service) Reserve(ctx context.Context, owner string) (Reserved, error) {
	arrived := time.Now()
	if err := s.admit(); err != nil {
		return Reserved{}, err
	}
	waitCtx, cancelWait := context.WithTimeoutCause(ctx, s.cfg.MaxWait, admission.ErrFull)
	defer cancelWait()
	ticket, err := s.gate.Acquire(waitCtx, admission.Reservation, owner)
	if err != nil {
		return Reserved{}, err
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	id := "res-" + hex.EncodeToString(b[:])
	held, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.mu.Lock()
	s.reservations[id] = &reservation{ctx: held, ticket: ticket}
	s.mu.Unlock()
	return Reserved{ID: id, Waited: time.Since(arrived), Lost: ticket.Lost(), Release: func() {
		s.mu.Lock()
		delete(s.reservations, id)
		s.mu.Unlock()
		cancel(context.Canceled)
		ticket.Release()
	}}, nil
}

// enter makes a call the one call of its reservation. The call ends with the
// caller or with the reservation, whichever is first.
func (s *Service) enter(ctx context.Context, id string) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reservations[id]
	switch {
	case r == nil:
		return nil, nil, ErrUnknownReservation
	case r.busy:
		return nil, nil, ErrReservationBusy
	case !r.ticket.Begin():
		return nil, nil, ErrUnknownReservation
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
		r.ticket.End()
	}, nil
}
