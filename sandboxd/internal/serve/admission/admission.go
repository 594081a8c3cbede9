// Package admission decides who may use a sandbox now, who waits, and who is
// sent away.
//
// Promises: never more holders than slots; waiters are served in the order in
// which they came; a waiter that gives up frees its place; at least
// Slots-Reservable slots are never held by reservations, so that idle
// reservations cannot starve single calls; Close sends every waiter away.
package admission

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrFull occurs when the queue has no place left.
var ErrFull = errors.New("every slot is taken and the queue is full")

// ErrClosed occurs when the gate was closed: the daemon is stopping.
var ErrClosed = errors.New("no calls are taken any more")

// Config bounds the gate.
type Config struct {
	// Slots is how many calls and reservations there may be at once.
	Slots int
	// Reservable is how many of these reservations may hold.
	Reservable int
	// Queue is how many callers may wait.
	Queue int
}

// Validate says what is wrong with the bounds.
func (c Config) Validate() error {
	switch {
	case c.Slots < 1:
		return fmt.Errorf("slots is %d, want at least 1", c.Slots)
	case c.Reservable < 0 || c.Reservable > c.Slots:
		return fmt.Errorf("reservable slots is %d, want 0 to %d (the slots)", c.Reservable, c.Slots)
	case c.Queue < 0:
		return fmt.Errorf("queue is %d, want 0 or more", c.Queue)
	}
	return nil
}

// Gate hands out slots. Make it with New.
type Gate struct {
	cfg      Config
	mu       sync.Mutex
	held     int
	reserved int
	waiters  *list.List // of *waiter
	closed   bool
	// hold is a moving average of how long a slot is held by a call.
	hold time.Duration
}

type waiter struct {
	reservation bool
	granted     chan struct{}
	err         error
}

// New returns an open gate. The config must be valid.
func New(cfg Config) *Gate { return &Gate{cfg: cfg, waiters: list.New()} }

// Ticket is one held slot.
type Ticket struct {
	gate        *Gate
	reservation bool
	since       time.Time
	once        sync.Once
}

// Acquire waits for a slot. It fails with ErrFull, ErrClosed or ctx's cause.
func (g *Gate) Acquire(ctx context.Context, reservation bool) (*Ticket, error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil, ErrClosed
	}
	if g.waitersFor(reservation) == 0 && g.free(reservation) {
		g.grant(reservation)
		g.mu.Unlock()
		return g.ticket(reservation), nil
	}
	if g.waiters.Len() >= g.cfg.Queue || reservation && g.cfg.Reservable == 0 {
		g.mu.Unlock()
		return nil, ErrFull
	}
	w := &waiter{reservation: reservation, granted: make(chan struct{})}
	place := g.waiters.PushBack(w)
	g.mu.Unlock()

	select {
	case <-w.granted:
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		select {
		case <-w.granted: // granted at the same moment
			if w.err == nil {
				g.release(reservation)
			}
		default:
			g.waiters.Remove(place)
		}
		return nil, context.Cause(ctx)
	}
	if w.err != nil {
		return nil, w.err
	}
	return g.ticket(reservation), nil
}

func (g *Gate) ticket(reservation bool) *Ticket {
	return &Ticket{gate: g, reservation: reservation, since: time.Now()}
}

// waitersFor counts those that a newcomer of this kind must not overtake: a
// single call may pass reservations that wait for a reservable slot.
func (g *Gate) waitersFor(reservation bool) int {
	n := 0
	for e := g.waiters.Front(); e != nil; e = e.Next() {
		if reservation || !e.Value.(*waiter).reservation || g.reserved < g.cfg.Reservable {
			n++
		}
	}
	return n
}

func (g *Gate) free(reservation bool) bool {
	return g.held < g.cfg.Slots && (!reservation || g.reserved < g.cfg.Reservable)
}

func (g *Gate) grant(reservation bool) {
	g.held++
	if reservation {
		g.reserved++
	}
}

// release frees a slot and serves whom it can, in order.
func (g *Gate) release(reservation bool) {
	g.held--
	if reservation {
		g.reserved--
	}
	for e := g.waiters.Front(); e != nil; {
		next := e.Next()
		if w := e.Value.(*waiter); g.free(w.reservation) {
			g.grant(w.reservation)
			g.waiters.Remove(e)
			close(w.granted)
		}
		e = next
	}
}

// Release gives the slot back. It may be called twice.
func (t *Ticket) Release() {
	t.once.Do(func() {
		t.gate.mu.Lock()
		defer t.gate.mu.Unlock()
		if !t.reservation {
			t.gate.learn(time.Since(t.since))
		}
		t.gate.release(t.reservation)
	})
}

// learn keeps a moving average over about eight calls.
func (g *Gate) learn(d time.Duration) {
	if g.hold == 0 {
		g.hold = d
		return
	}
	g.hold += (d - g.hold) / 8
}

// RetryAfter estimates when a slot may be free, between 100 ms and 30 s.
func (g *Gate) RetryAfter() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.hold * time.Duration(g.waiters.Len()+1) / time.Duration(g.cfg.Slots)
	return min(max(d, 100*time.Millisecond), 30*time.Second)
}

// Close sends every waiter away and takes nobody any more. Tickets stay valid.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for e := g.waiters.Front(); e != nil; e = e.Next() {
		w := e.Value.(*waiter)
		w.err = ErrClosed
		close(w.granted)
	}
	g.waiters.Init()
}

// State is a snapshot for health and metrics.
type State struct{ Slots, Reservable, Held, Reserved, Waiting int }

// State returns a snapshot.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return State{Slots: g.cfg.Slots, Reservable: g.cfg.Reservable, Held: g.held, Reserved: g.reserved, Waiting: g.waiters.Len()}
}
