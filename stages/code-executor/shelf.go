package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/client"
)

// shelf holds the reservations of all slots. Reservations are alike: a slot puts one
// here before it polls and takes any one when it has a record. There are never fewer
// here than slots that have polled.
type shelf struct {
	sandboxes sandboxes
	log       *slog.Logger
	ready     func(error)

	mu   sync.Mutex
	free []reservation
	// down: sandboxd is away, and it was said.
	down bool
}

// reserve is what the runner calls before a slot polls. It fails only if ctx ends.
func (s *shelf) reserve(ctx context.Context) (release func(), err error) {
	r, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	s.put(r)
	return func() {
		if r := s.take(); r != nil {
			r.Release()
		}
	}, nil
}

// get waits for a reservation for as long as it takes: being busy is no failure, and
// an outage is said once for all slots.
func (s *shelf) get(ctx context.Context) (reservation, error) {
	const first, most = 100 * time.Millisecond, 5 * time.Second
	for wait := first; ; wait = min(2*wait, most) {
		r, err := s.sandboxes.Reserve(ctx)
		if err == nil {
			s.up()
			return r, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var busy *client.BusyError
		if errors.As(err, &busy) && busy.Code == "busy" {
			s.up()
		} else {
			s.away(err)
		}
		pause := wait
		if busy != nil && busy.RetryAfter > 0 {
			pause = busy.RetryAfter
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns a reservation that still holds, nil if there is none.
func (s *shelf) take() reservation {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.free) > 0 {
		r := s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
		select {
		case <-r.Lost():
			r.Release()
		default:
			return r
		}
	}
	return nil
}

func (s *shelf) put(r reservation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, r)
}

func (s *shelf) away(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return
	}
	s.down = true
	s.log.Warn("sandboxd takes no programs: waiting for it", "error", err)
	s.ready(err)
}

func (s *shelf) up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.down {
		return
	}
	s.down = false
	s.log.Info("sandboxd takes programs again")
	s.ready(nil)
}
