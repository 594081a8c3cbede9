package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOpenLoopKeepsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Calls that take longer than the interval do not slow the arrivals.
		var s samples
		begin := time.Now()
		openLoop(t.Context(), &s, 10, time.Second, func(context.Context) error { time.Sleep(3 * time.Second); return nil })
		m := s.measurement(time.Since(begin))
		if m.p50 != 3*time.Second {
			t.Errorf("p50 is %s, want 3s", m.p50)
		}
		if got := m.perSecond * 4; got < 9.9 || got > 10.1 { // ten calls, over 1 s of arrivals and 3 s of the last call
			t.Errorf("%.2f calls, want 10", got)
		}
	})
}

func TestClosedLoopCountsFailuresApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		var s samples
		begin := time.Now()
		closedLoop(t.Context(), &s, 1, time.Second, func(context.Context) error {
			time.Sleep(100 * time.Millisecond)
			if n++; n%2 == 0 {
				return errors.New("no")
			}
			return nil
		})
		m := s.measurement(time.Since(begin))
		if m.failures != 5 || m.p50 != 100*time.Millisecond {
			t.Errorf("got %+v, want 5 failures and a p50 of 100ms", m)
		}
	})
}

func TestTable(t *testing.T) {
	tab := newTable()
	tab.add("a", "print", measurement{p50: 1500 * time.Microsecond, p95: 20 * time.Millisecond, perSecond: 5})
	tab.add("a", "numpy", measurement{why: "no docker"})
	var b strings.Builder
	tab.print(&b)
	want := "| | print | numpy | sympy |\n|---|---|---|---|\n| a | 1.5 / 20, 5.0/s | no docker | not measured |\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
