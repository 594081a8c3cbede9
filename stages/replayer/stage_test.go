package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/stages/replayer/perform"
	"github.com/sluice-rl/sluice/stages/replayer/replay/replaytest"
	"github.com/sluice-rl/sluice/topology/process"
)

// recordedRun is an archive of a small run.
func recordedRun(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "recorded")
	w, err := archive.Create(dir, archive.Parquet)
	if err != nil {
		t.Fatal(err)
	}
	run := replaytest.Record(replaytest.Shape{Seed: 1, Steps: 3, Groups: 3, Size: 4})
	for _, topic := range replaytest.Topics {
		for _, r := range run.Records(topic) {
			if err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func replayed(t *testing.T, args ...string) (sum perform.Summary, stderr string, err error) {
	t.Helper()
	var out, said bytes.Buffer
	if err = process.Execute(program(), process.System{Args: args, Stdout: &out, Stderr: &said}); out.Len() > 0 {
		if jerr := json.Unmarshal(out.Bytes(), &sum); jerr != nil {
			t.Fatalf("%v: %s", jerr, out.String())
		}
	}
	return sum, said.String(), err
}

func TestReplayOfAnArchiveUnderAnotherReward(t *testing.T) {
	dir, out := recordedRun(t), filepath.Join(t.TempDir(), "out")
	file := filepath.Join(t.TempDir(), "reward.yaml")
	if err := os.WriteFile(file, []byte("rewards:\n  - {name: shaped, kind: retool_shaped, per_turn: 0.1, limit: -0.6}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--id", "shaped", "--archive", dir, "--to", out, "--until", "batches", "--reward", file}
	sum, said, err := replayed(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	if sum.ID != "shaped" || sum.Scored == 0 || sum.RewardChanged == 0 || sum.NowCorrect+sum.NowWrong != 0 || sum.Steps == 0 {
		t.Errorf("%+v: want changed rewards and the same verdicts", sum)
	}
	if !strings.Contains(said, "scoring: ") {
		t.Errorf("no progress: %q", said)
	}
	again, _, err := replayed(t, args...)
	if err != nil || !cmp.Equal(sum, again) {
		t.Errorf("finished, and called again: %+v, %v", again, err)
	}
	// A replay is an archive itself, and can be replayed: back to the old rewards.
	back, _, err := replayed(t, "--id", "back", "--archive", out, "--to", filepath.Join(t.TempDir(), "back"))
	if err != nil || back.Scored != sum.Scored || back.RewardChanged != sum.RewardChanged || back.Used+back.Degenerate+back.Dropped != sum.Used+sum.Degenerate+sum.Dropped {
		t.Errorf("back: %+v, %v", back, err)
	}
	// As Parquet it is the same.
	columns := filepath.Join(t.TempDir(), "columns")
	if _, said, err := replayed(t, append(slices.Clone(args), "--to", columns, "--format", "parquet")...); err != nil || !strings.Contains(said, "writing: ") {
		t.Errorf("to Parquet: %v, %q", err, said)
	}
	for _, topic := range []string{"scored", "grouped", "ppo-batches"} {
		if diff := cmp.Diff(records(t, out, topic), records(t, columns, topic)); diff != "" {
			t.Errorf("%s as Parquet:\n%s", topic, diff)
		}
	}
	// The same id with another reward is not gone on with.
	if _, _, err := replayed(t, "--id", "shaped", "--archive", dir, "--to", out, "--until", "batches"); !errors.Is(err, process.ErrUnusable) {
		t.Errorf("another reward under the same id: %v, want ErrUnusable", err)
	}
}

func records(t *testing.T, dir, topic string) (all []archive.Record) {
	t.Helper()
	a, err := archive.Open(dir)
	if err == nil {
		err = a.Read(topic, func(r archive.Record) error { all = append(all, r); return nil })
	}
	if err != nil || len(all) == 0 {
		t.Fatalf("%d records of %s in %s: %v", len(all), topic, dir, err)
	}
	return all
}

// A replay that finds nothing says so: it is a filter that is wrong.
func TestNothingToReplay(t *testing.T) {
	dir := recordedRun(t)
	_, _, err := replayed(t, "--id", "none", "--archive", dir, "--to", filepath.Join(t.TempDir(), "out"), "--run", "other", "--until", "scores")
	if !errors.Is(err, perform.ErrNothing) || !strings.Contains(err.Error(), "not selected") {
		t.Errorf("of another run: %v, want ErrNothing", err)
	}
	// One file has no closings.
	_, _, err = replayed(t, "--id", "one", "--archive", filepath.Join(dir, "scored.parquet"), "--to", filepath.Join(t.TempDir(), "out"))
	if !errors.Is(err, perform.ErrNothing) || !strings.Contains(err.Error(), "stop at scores") {
		t.Errorf("groups of a file of scores: %v, want ErrNothing", err)
	}
	// A reward that fails leaves ungraded what it fails on, and the reason is said.
	file := filepath.Join(t.TempDir(), "reward.yaml")
	if err := os.WriteFile(file, []byte("rewards:\n  - {name: e, kind: expression, expression: '1.0 / double(turns - turns)'}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	sum, _, err := replayed(t, "--id", "inf", "--archive", dir, "--to", filepath.Join(t.TempDir(), "out"), "--reward", file)
	if err == nil || !strings.Contains(err.Error(), "failed on") || sum.RewardFailed == 0 || sum.Graded != 0 || sum.NowWrong != 0 || len(sum.Examples) == 0 || !strings.Contains(sum.Examples[0], "+Inf") {
		t.Errorf("a reward without end: %+v, %v", sum, err)
	}
}

func TestReplayFlagsThatCannotWork(t *testing.T) {
	dir := recordedRun(t)
	for _, c := range []struct{ args, word string }{
		{"", "--id"},
		{"--id a.b", "--id"},
		{"--id a --until soon --archive " + dir + " --to " + t.TempDir(), "soon"},
		{"--id a --from prompts --archive " + dir + " --to " + t.TempDir(), "prompts"},
		{"--id a --archive /nowhere", "/nowhere"},
		{"--id a --since 2026-11-02T00:00:00Z --before 2026-11-01T00:00:00Z", "--before"},
		{"--id a --reward /nowhere.yaml", "/nowhere.yaml"},
		{"--id a --reward x --read-invalid-calls", "exclude each other"},
		{"--id a --token-reduction max", "--token-reduction"},
		{"--id a --parallel -1", "--parallel"},
		{"--id a --steps 0", "steps"},
		{"--id a --format parquet", "--to"},
		{"--id a --to out --format csv", "csv"},
		{"--id a --to out.parquet", "--format parquet"},
		{"--id a --to out.jsonl", "want a folder"},
		{"--id a --question q --until batches --archive " + dir + " --to " + t.TempDir(), "whole steps"},
		{"--id a extra", "extra"},
	} {
		_, _, err := replayed(t, strings.Fields(c.args)...)
		if !errors.Is(err, process.ErrUsage) || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%q: %v, want a usage error with %q", c.args, err, c.word)
		}
	}
	var help bytes.Buffer
	if err := process.Execute(program(), process.System{Args: []string{"--help"}, Stdout: &help, Stderr: &help}); err != nil || !strings.Contains(help.String(), "--until") {
		t.Errorf("--help: %v, %q", err, help.String())
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p, now := newProgress(&out), time.Unix(0, 0)
	p.now = func() time.Time { return now }
	for _, at := range []perform.Progress{
		{Phase: "scoring", Done: 100, Share: 0.25}, {Phase: "scoring", Done: 300, Share: 0.759}, {Phase: "scoring", Done: 400, Share: 1, Ended: true},
		{Phase: "batching", Done: 1, Share: 0.5}, {Phase: "writing", Done: 7, Share: 1, Ended: true},
	} {
		p.show(at)
		now = now.Add(2 * time.Second)
	}
	want := "scoring: 100 trajectories (25 %)\nscoring: 300 trajectories (75 %), 100/s\nscoring: 400 trajectories, done, 75/s\n" +
		"batching: 1 steps (50 %)\nwriting: 7 records, done\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
