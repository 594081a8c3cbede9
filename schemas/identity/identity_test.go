package identity

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

func TestPlaceRoundTrips(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := Place{
			Group: Group{
				RunID:       rapid.StringMatching(`[A-Za-z0-9_-]{1,100}`).Draw(rt, "run"),
				Incarnation: rapid.Uint32().Draw(rt, "incarnation"),
				Step:        rapid.Uint64Min(1).Draw(rt, "step"),
				Slot:        rapid.Uint32().Draw(rt, "slot"),
			},
			SampleIndex: rapid.Uint32().Draw(rt, "sample"),
		}
		got, err := ParsePlace(p.String())
		if err != nil || got != p {
			rt.Fatalf("ParsePlace(%q) = %v, %v; want %v", p.String(), got, err, p)
		}
		if g := GroupOf(p.Proto()); g != p.Group {
			rt.Fatalf("GroupOf(Proto()) = %v, want %v", g, p.Group)
		}
	})
}

func TestParsePlaceRefuses(t *testing.T) {
	for _, s := range []string{"", "run/1/2/3", "run.0/0/2/3", "run.0/1/2", "run.x/1/2/3", "ru n.0/1/2/3", "run.0/1/2/-3", "run.0/1/2/3/4"} {
		if _, err := ParsePlace(s); !errors.Is(err, ErrInvalid) {
			t.Errorf("ParsePlace(%q) error = %v, want ErrInvalid", s, err)
		}
	}
}

func TestSeedsDiffer(t *testing.T) {
	g := Group{RunID: "run", Step: 1}
	next := Group{RunID: "run", Step: 2}
	again := Group{RunID: "run", Incarnation: 1, Step: 1}
	other := Group{RunID: "run", Step: 1, Slot: 1}
	seeds := map[uint64]string{}
	for name, s := range map[string]uint64{
		"fork":        Seed(7, g, NoSample, 0, 0),
		"run seed":    Seed(8, g, NoSample, 0, 0),
		"sample 0":    Seed(7, g, 0, 0, 0),
		"sample 1":    Seed(7, g, 1, 0, 0),
		"turn":        Seed(7, g, 0, 0, 1),
		"attempt":     Seed(7, g, 0, 1, 0),
		"step":        Seed(7, next, 0, 0, 0),
		"incarnation": Seed(7, again, 0, 0, 0),
		"slot":        Seed(7, other, 0, 0, 0),
	} {
		if was, dup := seeds[s]; dup {
			t.Errorf("%s and %s have the same seed", was, name)
		}
		seeds[s] = name
	}
	// Pinned: a recorded run must be repeatable by a later version.
	if got, want := Seed(7, g, NoSample, 0, 0), uint64(0xd1b00542c203a30f); got != want {
		t.Errorf("Seed = %#x, want %#x", got, want)
	}
}

func TestIDs(t *testing.T) {
	tr := &sluicev1.Trajectory{
		Prompt:      &sluicev1.Prompt{Group: &sluicev1.GroupPlace{RunId: "demo", Incarnation: 2, Step: 3, Slot: 1}},
		SampleIndex: 5, Copy: 0xc0ffee,
	}
	if got, want := TrajectoryID(tr), "demo.2/3/1/5~0000000000c0ffee"; got != want {
		t.Errorf("TrajectoryID = %q, want %q", got, want)
	}
	if got, want := CallID(tr, 2), "demo.2/3/1/5~0000000000c0ffee/2"; got != want {
		t.Errorf("CallID = %q, want %q", got, want)
	}
}
