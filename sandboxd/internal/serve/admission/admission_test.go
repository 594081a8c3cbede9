package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func held(t *testing.T, g *Gate, kind Kind, owner string) *Ticket {
	t.Helper()
	ticket, err := g.Acquire(t.Context(), kind, owner)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// asking asks in the background; who is served is appended to order.
func asking(t *testing.T, g *Gate, kind Kind, owner string, order *[]string, name string) {
	go func() {
		ticket, err := g.Acquire(t.Context(), kind, owner)
		if err == nil {
			*order = append(*order, name)
			ticket.Release()
		}
	}()
	synctest.Wait()
}

func TestCallersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 1, Reservable: 1, Queue: 10})
		first := held(t, g, Call, "")
		var order []string
		for i := range 3 {
			asking(t, g, Call, "", &order, fmt.Sprint(i))
		}
		first.Release()
		synctest.Wait()
		if !slices.Equal(order, []string{"0", "1", "2"}) {
			t.Errorf("served in order %v, want 0 1 2", order)
		}
	})
}

func TestACallComesBeforeReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 1, Reservable: 1, Queue: 10})
		first := held(t, g, Call, "")
		var order []string
		asking(t, g, Reservation, "", &order, "reservation")
		asking(t, g, Call, "", &order, "call")
		first.Release()
		synctest.Wait()
		if !slices.Equal(order, []string{"call", "reservation"}) {
			t.Errorf("served in order %v, want the call first", order)
		}
	})
}

// The state in which a run once stood still: every reservable slot idle, and a call that
// asks for one.
func TestACallTakesTheSlotOfAnIdleReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 2, Reservable: 2, Queue: 10})
		longest := held(t, g, Reservation, "a")
		time.Sleep(time.Millisecond)
		other := held(t, g, Reservation, "a")
		call := held(t, g, Call, "a") // at once: the clock stands still
		select {
		case <-longest.Lost():
		default:
			t.Error("the reservation that was idle longest still has its slot")
		}
		if longest.Begin() {
			t.Error("a call begins in a slot that was taken away")
		}
		longest.Release()
		if !other.Begin() {
			t.Fatal("the other reservation is gone too")
		}
		// One that runs a call is never taken away.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := g.Acquire(ctx, Call, "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want to wait for a call to end", err)
		}
		var order []string
		asking(t, g, Call, "b", &order, "b")
		other.End()
		synctest.Wait()
		if len(order) != 1 {
			t.Error("a reservation whose call has ended keeps its slot from a call that waits")
		}
		call.Release()
		if s := g.State(); s.Held != 0 || s.Reserved != 0 || s.EvictedForCalls != 2 {
			t.Errorf("left over: %+v", s)
		}
	})
}

func TestAnIdleReservationLapsesForOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 3, Reservable: 1, Queue: 10, Lapse: time.Second})
		idle := held(t, g, Reservation, "a")
		time.Sleep(time.Hour) // nobody waits: it stays
		if !idle.Begin() {
			t.Fatal("it was taken away though nobody needed it")
		}
		start := time.Now()
		done := make(chan time.Duration)
		go func() {
			held(t, g, Reservation, "b").Release()
			done <- time.Since(start)
		}()
		time.Sleep(time.Minute)
		idle.End()
		if took := <-done; took != time.Minute+time.Second {
			t.Errorf("the other waited %v, want until a second after the call's end", took)
		}
		if s := g.State(); s.EvictedForReservations != 1 {
			t.Errorf("%d lapsed, want 1", s.EvictedForReservations)
		}
	})
}

func TestOwnersShareEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 4, Reservable: 4, Queue: 100})
		var mu sync.Mutex
		served := map[string]int{}
		work := func(owner string) {
			for {
				ticket, err := g.Acquire(t.Context(), Call, owner)
				if err != nil {
					return
				}
				time.Sleep(time.Second)
				mu.Lock()
				served[owner]++
				mu.Unlock()
				ticket.Release()
			}
		}
		for range 40 {
			go work("many")
		}
		for range 4 {
			go work("few")
		}
		time.Sleep(100*time.Second + time.Millisecond)
		g.Close()
		time.Sleep(2 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if served["few"] < 190 || served["many"] < 190 {
			t.Errorf("served %v in 100 s on 4 slots, want about 200 each", served)
		}
	})
}

func TestFullQueueSendsAway(t *testing.T) {
	g := New(Config{Slots: 1, Reservable: 1})
	held(t, g, Call, "")
	if _, err := g.Acquire(t.Context(), Call, ""); !errors.Is(err, ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	if s := g.State(); s.Waiting != 0 {
		t.Errorf("%d wait, want none", s.Waiting)
	}
}

func TestGivingUpFreesThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 1, Reservable: 1, Queue: 1})
		first := held(t, g, Call, "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Acquire(ctx, Call, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		if s := g.State(); s.Waiting != 0 {
			t.Errorf("%d waiting, want none", s.Waiting)
		}
		first.Release()
		first.Release() // twice is once
		if s := g.State(); s.Held != 0 {
			t.Errorf("%d held, want none", s.Held)
		}
	})
}

func TestASlotIsLeftToCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 2, Reservable: 1, Queue: 5})
		idle := held(t, g, Reservation, "")
		var order []string
		asking(t, g, Reservation, "", &order, "reservation")
		held(t, g, Call, "").Release()
		select {
		case <-idle.Lost():
			t.Error("a call took a reservation's slot though one was free")
		default:
		}
		g.Close()
	})
}

func TestCloseSendsEverybodyAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 1, Reservable: 1, Queue: 1})
		held(t, g, Call, "")
		errs := make(chan error, 1)
		go func() {
			_, err := g.Acquire(t.Context(), Call, "")
			errs <- err
		}()
		synctest.Wait()
		g.Close()
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("who waited got %v, want ErrClosed", err)
		}
		if _, err := g.Acquire(t.Context(), Call, ""); !errors.Is(err, ErrClosed) {
			t.Errorf("newcomer got %v, want ErrClosed", err)
		}
	})
}

// Whatever the schedule: holders never exceed the slots, a reservation that runs a call is
// never taken away, no call waits while a reservation is idle, every call is served in the
// end though reservations come and stay for ever, and all is returned.
func TestTheGateUnderAnySchedule(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{Slots: rapid.IntRange(1, 4).Draw(rt, "slots"), Queue: 60, Lapse: 5 * time.Millisecond}
		cfg.Reservable = rapid.IntRange(0, cfg.Slots).Draw(rt, "reservable")
		type client struct {
			kind             Kind
			owner            string
			comes, stays     time.Duration
			impatient, calls bool
		}
		clients := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) client {
			return client{
				kind: Kind(rapid.IntRange(0, 1).Draw(rt, "kind")), owner: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "owner"),
				comes: time.Duration(rapid.IntRange(0, 30).Draw(rt, "comes")) * time.Millisecond,
				stays: time.Duration(rapid.IntRange(1, 20).Draw(rt, "stays")) * time.Millisecond,
				// A reservation that never ends by itself, or that runs a call.
				impatient: rapid.Bool().Draw(rt, "impatient"), calls: rapid.Bool().Draw(rt, "calls"),
			}
		}), 1, 40).Draw(rt, "clients")
		synctest.Test(t, func(t *testing.T) {
			g := New(cfg)
			ctx, end := context.WithCancel(t.Context())
			calls, done := 0, make(chan struct{}, len(clients))
			for _, c := range clients {
				if c.kind == Call {
					calls++
				}
				go func() {
					time.Sleep(c.comes)
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					if c.impatient && c.kind == Reservation {
						defer time.AfterFunc(c.stays/2, cancel).Stop()
					}
					ticket, err := g.Acquire(ctx, c.kind, c.owner)
					if s := g.State(); s.Held > cfg.Slots || s.Reserved > cfg.Reservable || s.WaitingCalls > 0 && s.Idle > 0 {
						t.Errorf("%+v with %+v", s, cfg)
					}
					switch {
					case err != nil:
						return
					case c.kind == Call:
						time.Sleep(c.stays)
						ticket.Release()
						done <- struct{}{}
					case c.calls && ticket.Begin():
						time.Sleep(c.stays)
						select {
						case <-ticket.Lost():
							t.Error("a slot was taken away while a call ran in it")
						default:
						}
						ticket.End()
						fallthrough
					default:
						select { // idle for ever
						case <-ticket.Lost():
						case <-ctx.Done():
						}
						ticket.Release()
					}
				}()
			}
			time.Sleep(time.Minute)
			if len(done) != calls {
				t.Errorf("%d of %d calls were served in a minute: %+v", len(done), calls, g.State())
			}
			end()
			synctest.Wait()
			if s := g.State(); s.Held != 0 || s.Waiting != 0 || s.Reserved != 0 {
				t.Errorf("left over: %+v", s)
			}
		})
	})
}
