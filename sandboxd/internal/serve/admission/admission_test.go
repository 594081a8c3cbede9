package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 1, Reservable: 1, Queue: 10})
		first, err := g.Acquire(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 3 {
			go func() {
				ticket, err := g.Acquire(t.Context(), false)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				ticket.Release()
			}()
			synctest.Wait()
		}
		first.Release()
		synctest.Wait()
		if len(order) != 3 || order[0] != 0 || order[1] != 1 || order[2] != 2 {
			t.Errorf("served in order %v, want 0 1 2", order)
		}
	})
}

func TestFullQueueSendsAway(t *testing.T) {
	g := New(Config{Slots: 1, Reservable: 1})
	if _, err := g.Acquire(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Acquire(t.Context(), false); !errors.Is(err, ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
}

func TestGivingUpFreesThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 1, Reservable: 1, Queue: 1})
		first, _ := g.Acquire(t.Context(), false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Acquire(ctx, false); !errors.Is(err, context.DeadlineExceeded) {
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

func TestIdleReservationsDoNotStarveCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 2, Reservable: 1, Queue: 5})
		if _, err := g.Acquire(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = g.Acquire(t.Context(), true) }() // waits for a reservable slot
		synctest.Wait()
		call, err := g.Acquire(t.Context(), false)
		if err != nil {
			t.Fatalf("a call must pass a waiting reservation: %v", err)
		}
		call.Release()
		g.Close()
	})
}

func TestCloseSendsWaitersAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 1, Reservable: 1, Queue: 1})
		_, _ = g.Acquire(t.Context(), false)
		errs := make(chan error, 1)
		go func() {
			_, err := g.Acquire(t.Context(), false)
			errs <- err
		}()
		synctest.Wait()
		g.Close()
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("waiter got %v, want ErrClosed", err)
		}
		if _, err := g.Acquire(t.Context(), false); !errors.Is(err, ErrClosed) {
			t.Errorf("newcomer got %v, want ErrClosed", err)
		}
	})
}

// Whatever the interleaving, holders never exceed the slots and all is returned.
func TestNeverMoreHoldersThanSlots(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{Slots: rapid.IntRange(1, 4).Draw(rt, "slots"), Queue: rapid.IntRange(0, 6).Draw(rt, "queue")}
		cfg.Reservable = rapid.IntRange(0, cfg.Slots).Draw(rt, "reservable")
		kinds := rapid.SliceOfN(rapid.Bool(), 1, 30).Draw(rt, "kinds")
		waits := rapid.SliceOfN(rapid.IntRange(0, 5), len(kinds), len(kinds)).Draw(rt, "waits")
		synctest.Test(t, func(t *testing.T) {
			g := New(cfg)
			for i, reservation := range kinds {
				go func() {
					time.Sleep(time.Duration(waits[i]) * time.Millisecond)
					ctx, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
					defer cancel()
					ticket, err := g.Acquire(ctx, reservation)
					if err != nil {
						return
					}
					if s := g.State(); s.Held > cfg.Slots || s.Reserved > cfg.Reservable {
						t.Errorf("%+v exceeds %+v", s, cfg)
					}
					time.Sleep(2 * time.Millisecond)
					ticket.Release()
				}()
			}
			time.Sleep(time.Second)
			if s := g.State(); s.Held != 0 || s.Waiting != 0 || s.Reserved != 0 {
				t.Errorf("left over: %+v", s)
			}
		})
	})
}
