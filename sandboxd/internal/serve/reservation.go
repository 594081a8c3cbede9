package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/serve/admission"
)

// reservation is a slot that its holder keeps between calls.
type reservation struct {
	id     string
	ctx    context.Context // ends with the reservation
	ticket *admission.Ticket
	end    context.CancelCauseFunc
	busy   bool
	// taken is closed when somebody else with the same key becomes its holder.
	taken chan struct{}
}

// place is a reservation's key, or a wait for it.
type place struct {
	held *reservation            // nil while it is waited for
	stop context.CancelCauseFunc // ends the wait
}

// ErrTakenOver occurs when somebody else reserves with the same key.
var ErrTakenOver = errors.New("another reservation was made with the same key")

// Reserved is a slot that was reserved.
type Reserved struct {
	ID     string
	Waited time.Duration
	// Lost is closed when the slot was taken away, which happens only while no call
	// runs in it.
	Lost <-chan struct{}
	// Taken is closed when somebody else with the same key has become the holder.
	Taken <-chan struct{}
	// Release gives the slot back and ends a call that still runs in it.
	Release func()
}

// Reserve waits for a slot and keeps it until Release is called, or until somebody with
// a better claim needs it.
// Who names a key that is held becomes the holder of that reservation.
func (s *Service) Reserve(ctx context.Context, owner, key string) (Reserved, error) {
	arrived := time.Now()
	if err := s.admit(); err != nil {
		return Reserved{}, err
	}
	waitCtx, cancelWait := context.WithTimeoutCause(ctx, s.cfg.MaxWait, admission.ErrFull)
	defer cancelWait()
	waitCtx, stopWait := context.WithCancelCause(waitCtx)
	defer stopWait(nil)
	p := &place{stop: stopWait}
	if key != "" {
		key = owner + "\x00" + key
		if r := s.claim(key, p); r != nil {
			return s.reserved(r, key, arrived), nil
		}
	}
	ticket, err := s.gate.Acquire(waitCtx, admission.Reservation, owner)
	if err != nil {
		s.leave(key, p)
		return Reserved{}, err
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	r := &reservation{id: "res-" + hex.EncodeToString(b[:]), ticket: ticket}
	r.ctx, r.end = context.WithCancelCause(context.WithoutCancel(ctx))
	s.mu.Lock()
	if key != "" && s.places[key] != p { // somebody came meanwhile
		s.mu.Unlock()
		ticket.Release()
		return Reserved{}, ErrTakenOver
	}
	p.held = r
	s.reservations[r.id] = r
	s.mu.Unlock()
	return s.reserved(r, key, arrived), nil
}

// claim makes p the place of a key. It returns what is held there already; who only
// waits for it is sent away.
func (s *Service) claim(key string, p *place) *reservation {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.places[key]
	if before != nil && before.held != nil {
		select {
		case <-before.held.ticket.Lost(): // its holder has not noticed yet
		default:
			return before.held
		}
	}
	if before != nil {
		before.stop(ErrTakenOver)
	}
	s.places[key] = p
	return nil
}

func (s *Service) leave(key string, p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key != "" && s.places[key] == p {
		delete(s.places, key)
	}
}

// reserved makes the caller the holder of r.
func (s *Service) reserved(r *reservation, key string, arrived time.Time) Reserved {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.taken != nil {
		close(r.taken)
	}
	taken := make(chan struct{})
	r.taken = taken
	return Reserved{ID: r.id, Waited: time.Since(arrived), Lost: r.ticket.Lost(), Taken: taken, Release: func() {
		s.mu.Lock()
		if r.taken != taken { // somebody else holds it
			s.mu.Unlock()
			return
		}
		delete(s.reservations, r.id)
		if p := s.places[key]; key != "" && p != nil && p.held == r {
			delete(s.places, key)
		}
		s.mu.Unlock()
		r.end(context.Canceled)
		r.ticket.Release()
	}}
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
