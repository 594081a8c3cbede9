package horizon_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/stages/internal/horizon"
)

var run = horizon.Run{ID: "r"}

func TestHorizon(t *testing.T) {
	h := horizon.New(2)
	if h.Past(run, 1) {
		t.Error("a step of an unknown run is past")
	}
	for step := uint64(1); step <= 2; step++ {
		if forget := h.See(run, step); forget != nil || !h.Keep(run, step, "s"+strconv.FormatUint(step, 10)) {
			t.Errorf("step %d: forgets %v", step, forget)
		}
	}
	if diff := cmp.Diff([]string{"s1"}, h.See(run, 3)); diff != "" {
		t.Errorf("at step 3 of 2 kept (-want +got):\n%s", diff)
	}
	if !h.Past(run, 1) || h.Past(run, 2) {
		t.Errorf("past 1: %t, past 2: %t; want only the first", h.Past(run, 1), h.Past(run, 2))
	}
	if h.Keep(run, 1, "late") {
		t.Error("a key of a past step is kept")
	}
	if forget := h.See(run, 1); forget != nil {
		t.Errorf("an old step moves the horizon: %v", forget)
	}
	if h.Past(horizon.Run{ID: "r", Incarnation: 1}, 1) {
		t.Error("another incarnation has the same horizon")
	}
}

// In whatever order steps are seen: what has been forgotten in the end is what lies
// keep steps behind the highest, each key once.
func TestForgetsTheSameInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.Uint64Range(1, 5).Draw(t, "keep")
		steps := rapid.SliceOfN(rapid.Uint64Range(1, 20), 1, 30).Draw(t, "steps")
		h := horizon.New(keep)
		var forgotten, want []string
		for i, s := range steps {
			key := strconv.Itoa(i)
			forgotten = append(forgotten, h.See(run, s)...)
			if !h.Keep(run, s, key) {
				forgotten = append(forgotten, key)
			}
		}
		highest := slices.Max(steps)
		for i, s := range steps {
			if s+keep <= highest {
				want = append(want, strconv.Itoa(i))
			}
			if h.Past(run, s) != (s+keep <= highest) {
				t.Fatalf("Past(%d) is wrong at highest %d, keep %d", s, highest, keep)
			}
		}
		slices.Sort(forgotten)
		slices.Sort(want)
		if diff := cmp.Diff(want, forgotten); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}
