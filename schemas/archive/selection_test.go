package archive_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

func parse(t *testing.T, args ...string) (archive.Selection, error) {
	t.Helper()
	var s archive.Selection
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.Register(f)
	return s, f.Parse(args)
}

// A trajectory of run "run", step 3, question q1 of gsm8k, at partition 1, offset 5, noon;
// and a batch of the same step.
func TestSelections(t *testing.T) {
	traj := encoded(t, "trajectories", 5, trajectory("q1", "x"))
	batch := encoded(t, "ppo-batches", 5, &sluicev1.StepBatch{RunId: "run", Incarnation: 1, Step: 3, ClipLow: 0.8, ClipHigh: 1.2, TokenReduction: 1})
	report := encoded(t, "dead-letters", 5, &sluicev1.DeadLetter{Stage: "s", ErrorType: "e"})
	for args, want := range map[string]string{
		"": "trajectory batch letter", "--run=run": "trajectory batch", "--run=other,run": "trajectory batch", "--run=other": "",
		"--question=q1": "trajectory", "--question=q2": "", "--data-source=gsm8k": "trajectory", "--data-source=math": "",
		"--steps=3": "trajectory batch", "--steps=4": "", "--steps=1-3": "trajectory batch", "--steps=4-": "", "--steps=-3": "trajectory batch", "--steps=-2": "", "--steps=2-": "trajectory batch",
		"--since=2026-11-01T12:00:00Z": "trajectory batch letter", "--since=2026-11-01T13:00:00Z": "", "--before=2026-11-01T12:00:00.123Z": "", "--before=2026-11-01T12:00:00.124Z": "trajectory batch letter",
		"--offsets=1:5-6": "trajectory batch letter", "--offsets=1:0-5": "", "--offsets=0:0-9": "", "--offsets=0:0-9,1:0-9": "trajectory batch letter",
	} {
		var flags []string
		if args != "" {
			flags = []string{args}
		}
		s, err := parse(t, flags...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		var got []string
		for _, c := range []struct {
			name string
			r    archive.Record
		}{{"trajectory", traj}, {"batch", batch}, {"letter", report}} {
			if s.Placed(c.r) && s.Said(c.r) {
				got = append(got, c.name)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q selects %q, want %q", args, text, want)
		}
	}
}

func TestSelectionsThatCannotBeUsed(t *testing.T) {
	for _, args := range []string{"--steps=0", "--steps=5-4", "--steps=x", "--steps=-", "--steps=", "--since=yesterday", "--offsets=1", "--offsets=1:5-5", "--offsets=1:5-4", "--offsets=-1:0-4", "--offsets=1:0-4,1:6-8", "--offsets=1:0-4x"} {
		if _, err := parse(t, args); !errors.Is(err, archive.ErrSelection) {
			t.Errorf("%s: %v, want ErrSelection", args, err)
		}
	}
	if s, err := parse(t, "--since=2026-11-01T12:00:00+01:00"); err != nil || !s.Since.Equal(time.Date(2026, 11, 1, 11, 0, 0, 0, time.UTC)) {
		t.Errorf("%v, %v", s.Since, err)
	}
}
