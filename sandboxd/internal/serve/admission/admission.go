// Package admission decides who may use a slot now, who waits, who gives one up
// and who is sent away.
//
// There are two kinds of callers. A call has a program in hand: nobody else will
// run it. A reservation takes a slot ahead of work that may come; it is idle
// until a call begins in it.
//
// Promises:
//
//   - Never more holders than slots, nor more reservations than Reservable.
//   - A call comes before every reservation, and takes the slot of an idle one
//     if none is free. As calls end, the first of those that wait always moves:
//     no number of idle reservations can hold up a call.
//   - An idle reservation gives its slot to one that waits once it has been
//     idle for Lapse, so that nobody sits on slots that others would use.
//   - Among callers of a kind the slot goes to the owner that holds fewest
//     slots, and of equal ones to who came first: owners share the slots
//     evenly, each in its own order.
//   - A caller that gives up frees its place in the queue; Close sends every
//     waiting caller away.
package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrFull occurs when the queue has no place left.
var ErrFull = errors.New("every slot is taken and the queue is full")

// ErrClosed occurs when the gate was closed: the daemon is stopping.
var ErrClosed = errors.New("no calls are taken any more")

// Kind says what a slot is wanted for.
type Kind int

const (
	// Call is a program in hand.
	Call Kind = iota
	// Reservation is work that may come.
	Reservation
)

// Config bounds the gate.
type Config struct {
	// Slots is how many calls and reservations there may be at once.
	Slots int
	// Reservable is how many of these reservations may hold.
	Reservable int
	// Queue is how many callers may wait.
	Queue int
	// Lapse is how long a reservation may be idle while others wait for one. 0
	// means 250 ms: enough to ask for work once.
	Lapse time.Duration
}

const defaultLapse = 250 * time.Millisecond

// Validate says what is wrong with the bounds.
func (c Config) Validate() error {
	switch {
	case c.Slots < 1:
		return fmt.Errorf("slots is %d, want at least 1", c.Slots)
	case c.Reservable < 0 || c.Reservable > c.Slots:
		return fmt.Errorf("reservable slots is %d, want 0 to %d (the slots)", c.Reservable, c.Slots)
	case c.Queue < 0:
		return fmt.Errorf("queue is %d, want 0 or more", c.Queue)
	case c.Lapse < 0:
		return fmt.Errorf("lapse is %v, want 0 or more", c.Lapse)
	}
	return nil
}

// Gate hands out slots. Make it with New.
type Gate struct {
	cfg Config

	mu       sync.Mutex
	holders  []*Ticket // in the order in which they got their slots
	waiting  []*waiter // in the order in which they came
	reserved int
	closed   bool
	lapse    *time.Timer // nil unless a reservation waits for one that is idle
	evicted  map[Kind]int
	// hold is a moving average of how long a slot is held by a call.
	hold time.Duration
}

type waiter struct {
	kind  Kind
	owner string
	// answer brings the ticket; it is closed without one if the gate closes.
	answer chan *Ticket
}

// Ticket is one held slot.
type Ticket struct {
	gate  *Gate
	kind  Kind
	owner string
	since time.Time
	// idle is since when a reservation runs nothing; zero while it runs a call.
	idle time.Time
	gone bool
	lost chan struct{}
}

// New returns an open gate. The config must be valid.
func New(cfg Config) *Gate {
	if cfg.Lapse == 0 {
		cfg.Lapse = defaultLapse
	}
	return &Gate{cfg: cfg, evicted: map[Kind]int{}}
}

// Acquire waits for a slot. It fails with ErrFull, ErrClosed or ctx's cause. owner
// names those who share: callers of one owner count as one.
func (g *Gate) Acquire(ctx context.Context, kind Kind, owner string) (*Ticket, error) {
	w, err := g.enter(kind, owner)
	if err != nil {
		return nil, err
	}
	select {
	case t := <-w.answer:
		return answered(t)
	case <-ctx.Done():
	}
	g.mu.Lock()
	i := slices.Index(g.waiting, w)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		g.settle()
	}
	g.mu.Unlock()
	if i < 0 { // answered at the same moment
		t, err := answered(<-w.answer)
		if err != nil {
			return nil, err
		}
		t.Release()
	}
	return nil, context.Cause(ctx)
}

func answered(t *Ticket) (*Ticket, error) {
	if t == nil {
		return nil, ErrClosed
	}
	return t, nil
}

// enter queues a caller, and serves it at once if that can be.
func (g *Gate) enter(kind Kind, owner string) (*waiter, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	if kind == Reservation && g.cfg.Reservable == 0 {
		return nil, ErrFull
	}
	w := &waiter{kind: kind, owner: owner, answer: make(chan *Ticket, 1)}
	g.waiting = append(g.waiting, w)
	g.settle()
	if len(g.waiting) > g.cfg.Queue && g.waiting[len(g.waiting)-1] == w {
		g.waiting = g.waiting[:len(g.waiting)-1]
		return nil, ErrFull
	}
	return w, nil
}

// settle gives slots to all who can have one now; mu is held. It must be called after
// every change.
func (g *Gate) settle() {
	now := time.Now()
	for g.next(Call) >= 0 && (g.free(Call) || g.evict(Call, now)) {
		g.grant(g.next(Call), now)
	}
	if g.next(Call) < 0 {
		for g.next(Reservation) >= 0 && (g.free(Reservation) || g.evict(Reservation, now.Add(-g.cfg.Lapse))) {
			g.grant(g.next(Reservation), now)
		}
	}
	g.awaitLapse(now)
}

func (g *Gate) free(kind Kind) bool {
	return len(g.holders) < g.cfg.Slots && (kind == Call || g.reserved < g.cfg.Reservable)
}

// next is the place in the queue of who is served next among callers of a kind, -1 if
// none waits.
func (g *Gate) next(kind Kind) int {
	best, least := -1, 0
	for i, w := range g.waiting {
		if w.kind != kind {
			continue
		}
		if n := g.held(w.owner); best < 0 || n < least {
			best, least = i, n
		}
	}
	return best
}

func (g *Gate) held(owner string) int {
	n := 0
	for _, t := range g.holders {
		if t.owner == owner {
			n++
		}
	}
	return n
}

func (g *Gate) grant(i int, now time.Time) {
	w := g.waiting[i]
	g.waiting = slices.Delete(g.waiting, i, i+1)
	t := &Ticket{gate: g, kind: w.kind, owner: w.owner, since: now, lost: make(chan struct{})}
	if w.kind == Reservation {
		t.idle = now
		g.reserved++
	}
	g.holders = append(g.holders, t)
	w.answer <- t
}

// evict takes its slot from an idle reservation, for the sake of a caller of a kind: from
// the owner that holds most, and there from the one idle longest. It returns false if
// none has been idle since before.
func (g *Gate) evict(forKind Kind, before time.Time) bool {
	var victim *Ticket
	most := 0
	for _, t := range g.holders {
		if t.idle.IsZero() || t.idle.After(before) {
			continue
		}
		n := g.held(t.owner)
		if victim == nil || n > most || n == most && t.idle.Before(victim.idle) {
			victim, most = t, n
		}
	}
	if victim == nil {
		return false
	}
	g.evicted[forKind]++
	g.drop(victim)
	return true
}

// drop ends a holder's ticket; mu is held.
func (g *Gate) drop(t *Ticket) {
	t.gone = true
	close(t.lost)
	g.holders = slices.Delete(g.holders, slices.Index(g.holders, t), slices.Index(g.holders, t)+1)
	if t.kind == Reservation {
		g.reserved--
	}
}

// awaitLapse comes back when an idle reservation will have to give way.
func (g *Gate) awaitLapse(now time.Time) {
	if g.lapse != nil {
		g.lapse.Stop()
		g.lapse = nil
	}
	if g.closed || g.next(Reservation) < 0 {
		return
	}
	var first time.Time
	for _, t := range g.holders {
		if !t.idle.IsZero() && (first.IsZero() || t.idle.Before(first)) {
			first = t.idle
		}
	}
	if first.IsZero() {
		return
	}
	g.lapse = time.AfterFunc(first.Add(g.cfg.Lapse).Sub(now), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.settle()
	})
}

// Begin marks a reservation as running a call: it is not taken away until End. It
// returns false if it was taken away already.
func (t *Ticket) Begin() bool {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	if t.gone {
		return false
	}
	t.idle = time.Time{}
	return true
}

// End marks a reservation as idle again.
func (t *Ticket) End() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	if t.gone || t.kind != Reservation {
		return
	}
	t.idle = time.Now()
	t.gate.settle()
}

// Lost is closed when the slot is not held any more: given back, or taken away.
func (t *Ticket) Lost() <-chan struct{} { return t.lost }

// Release gives the slot back. It may be called twice, and after it was taken away.
func (t *Ticket) Release() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	if t.gone {
		return
	}
	if t.kind == Call {
		t.gate.learn(time.Since(t.since))
	}
	t.gate.drop(t)
	t.gate.settle()
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
	d := g.hold * time.Duration(len(g.waiting)+1) / time.Duration(g.cfg.Slots)
	return min(max(d, 100*time.Millisecond), 30*time.Second)
}

// Close sends every waiting caller away and takes nobody any more. Tickets stay valid.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, w := range g.waiting {
		close(w.answer)
	}
	g.waiting = nil
	g.awaitLapse(time.Now())
}

// State is a snapshot for health and metrics.
type State struct {
	Slots, Reservable, Held, Reserved, Waiting int
	// Idle is how many of the reserved slots run nothing.
	Idle int
	// WaitingCalls is how many of those that wait have a program in hand.
	WaitingCalls int
	// EvictedForCalls and EvictedForReservations count idle reservations whose slot
	// was taken away for another caller.
	EvictedForCalls, EvictedForReservations int
}

// State returns a snapshot.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := State{
		Slots: g.cfg.Slots, Reservable: g.cfg.Reservable, Held: len(g.holders), Reserved: g.reserved, Waiting: len(g.waiting),
		EvictedForCalls: g.evicted[Call], EvictedForReservations: g.evicted[Reservation],
	}
	for _, t := range g.holders {
		if !t.idle.IsZero() {
			s.Idle++
		}
	}
	for _, w := range g.waiting {
		if w.kind == Call {
			s.WaitingCalls++
		}
	}
	return s
}
