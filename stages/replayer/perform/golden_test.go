package perform

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/replayer/replay/replaytest"
)

var rewrite = flag.Bool("rewrite-golden", false, "write testdata/format1 anew: only for a change of the contracts before their first release")

// The archive in testdata/format1/recorded was exported by the first version. Every later
// one must replay it to the same rewards, closings and batches, byte for byte.
func TestWhatTheFirstVersionRecordedIsReplayed(t *testing.T) {
	golden := filepath.Join("testdata", "format1")
	if *rewrite {
		recorded := export(t, replaytest.Record(replaytest.Shape{Seed: 77, Steps: 2, Groups: 3, Size: 3, Tokens: 6}), archive.JSONL)
		if err := os.RemoveAll(golden); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(golden, "recorded"), os.DirFS(recorded)); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	cfg := config(t, filepath.Join(golden, "recorded"), out)
	cfg.Rewards = zeroOne(t)
	sum, err := Run(t.Context(), cfg)
	if err != nil || sum.Scored == 0 || sum.Steps == 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	got := files(t, out)
	if *rewrite {
		if err := os.CopyFS(filepath.Join(golden, "replayed"), os.DirFS(out)); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(golden, "replayed", ".replay")); err != nil {
			t.Fatal(err)
		}
	}
	want := files(t, filepath.Join(golden, "replayed"))
	for _, name := range []string{"grouped.jsonl", "ppo-batches.jsonl", "replay.json"} {
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s (-then +now):\n%s", name, diff)
		}
	}
	// How a verdict is explained may become better; what it pays may not change.
	type score struct {
		Graded, Correct, Format bool
		Reward                  float64
		Answer, Name, Version   string
	}
	scores := func(dir string) (all []score) {
		for _, m := range contents(t, dir, "scored") {
			s := m.(*sluicev1.Scored)
			all = append(all, score{s.GetGraded(), s.GetCorrect(), s.GetValidFormat(), s.GetReward(), s.GetAnswer(), nameOf(s), versionOf(s)})
		}
		return all
	}
	if diff := cmp.Diff(scores(filepath.Join(golden, "replayed")), scores(out)); diff != "" {
		t.Errorf("scores (-then +now):\n%s", diff)
	}
}

func nameOf(s *sluicev1.Scored) string {
	if len(s.GetScores()) == 0 {
		return ""
	}
	return s.GetScores()[0].GetName()
}

func versionOf(s *sluicev1.Scored) string {
	if len(s.GetScores()) == 0 {
		return ""
	}
	return s.GetScores()[0].GetVersion()
}
