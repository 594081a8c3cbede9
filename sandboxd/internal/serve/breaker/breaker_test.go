package breaker

import (
	"testing"
	"time"
)

func TestBreaker(t *testing.T) {
	now := time.Unix(1000, 0)
	b := New(Config{Window: 4, Threshold: 3, Cooldown: 10 * time.Second})
	report := func(reason string, wantChanged, wantOpen bool) {
		t.Helper()
		if got := b.Report(now, reason); got != wantChanged {
			t.Fatalf("Report(%q) changed = %v, want %v", reason, got, wantChanged)
		}
		if open, _, _ := b.Open(now); open != wantOpen {
			t.Fatalf("open = %v, want %v", open, wantOpen)
		}
	}
	// Failures spread among successes stay below the threshold of the window.
	report("a", false, false)
	report("", false, false)
	report("b", false, false)
	report("", false, false)
	report("", false, false)
	// Three of the last four open it.
	report("c", false, false)
	report("d", false, false)
	report("e", true, true)
	if _, reason, after := b.Open(now); reason != "e" || after != 10*time.Second {
		t.Fatalf("reason %q after %s, want e and 10s", reason, after)
	}
	// No probe before the cooldown; a failed one starts it anew.
	if b.MayProbe(now) {
		t.Fatal("a probe was allowed at once")
	}
	now = now.Add(10 * time.Second)
	if !b.MayProbe(now) {
		t.Fatal("no probe was allowed after the cooldown")
	}
	report("still", false, true)
	if b.MayProbe(now) {
		t.Fatal("a failed probe must wait again")
	}
	now = now.Add(10 * time.Second)
	report("", true, false)
	// A closed breaker has forgotten what opened it.
	report("x", false, false)
}

// One failure in a hundred is borne for a thousand results, more is not.
func TestRareFailuresOpenItToo(t *testing.T) {
	for every, opens := range map[int]bool{200: false, 100: false, 80: true, 0: false} {
		now := time.Unix(1000, 0)
		b := New(Config{Window: 20, Threshold: 5, SlowWindow: 1000, SlowThreshold: 10, Cooldown: time.Second})
		opened := false
		for i := 1; i <= 5000 && !opened; i++ {
			reason := ""
			if every > 0 && i%every == 0 {
				reason = "died"
			}
			b.Report(now, reason)
			opened, _, _ = b.Open(now)
		}
		if opened != opens {
			t.Errorf("one failure in %d: open %v, want %v", every, opened, opens)
		}
	}
}
