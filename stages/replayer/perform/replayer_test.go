package perform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/archive/topic"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/stages/replayer/replay/replaytest"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

// export writes a run as an archive, as `sluice export` does.
func export(t testing.TB, run *replaytest.Run, format string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	w, err := archive.Create(dir, format)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range replaytest.Topics {
		if err := w.Begin(topic); err != nil {
			t.Fatal(err)
		}
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

// config replays an archive whole into a new folder.
func config(t testing.TB, dir, out string) Config {
	t.Helper()
	a, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		ID: "again", Source: NewArchiveSource(a), Trajectories: "scored", Until: Batches,
		Rewards: reward.Default(), Batches: step.DefaultRules,
		Sink: NewFolderSink(out, "again", archive.JSONL, filepath.Join(out, ".replay")), State: filepath.Join(out, ".replay"), Fingerprint: "f", Every: time.Hour,
	}
}

// files are what a folder holds, without the state.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

// sizes makes a failed comparison of folders readable.
func sizes(m map[string]string) string {
	var out []string
	for name, text := range m {
		out = append(out, fmt.Sprintf("%s %d", name, len(text)))
	}
	return strings.Join(out, ", ")
}

func contents(t testing.TB, dir, topic string) []proto.Message {
	t.Helper()
	a, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []proto.Message
	err = a.Read(topic, func(r archive.Record) error {
		m, err := r.Decode()
		out = append(out, m)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// zeroOne is another reward than the recorded one.
func zeroOne(t testing.TB) *reward.Set {
	t.Helper()
	set, err := reward.NewSet("zero_one", reward.Scorer{Name: "zero_one", Version: "1", Logic: reward.ZeroOne()})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestTheSameRewardReplaysWhatWasRecorded(t *testing.T) {
	run := replaytest.Record(replaytest.Shape{Seed: 1, Steps: 4, Groups: 5, Size: 6})
	for _, format := range []string{archive.JSONL, archive.Parquet} {
		dir, out := export(t, run, format), filepath.Join(t.TempDir(), "out")
		sum, err := Run(t.Context(), config(t, dir, out))
		if err != nil {
			t.Fatal(err)
		}
		if sum.Scored != int64(len(run.Scored)) || sum.RewardChanged != 0 || sum.IncompleteGroups != 0 || sum.Steps != int64(len(run.Batches)) || sum.MicroBatches != int64(len(run.Micro)) {
			t.Errorf("%s: summary %+v", format, sum)
		}
		// Scores in the order of the archive, the rest in that of places.
		if diff := cmp.Diff(contents(t, dir, "scored"), contents(t, out, "scored"), protocmp.Transform()); diff != "" {
			t.Errorf("%s: scores (-recorded +replayed):\n%s", format, diff)
		}
		var closed []proto.Message
		for _, g := range run.Closed {
			closed = append(closed, g)
		}
		if diff := cmp.Diff(closed, contents(t, out, "grouped"), protocmp.Transform()); diff != "" {
			t.Errorf("%s: closings:\n%s", format, diff)
		}
		got := contents(t, out, "ppo-batches")
		if len(got) != len(run.Batches)+len(run.Micro) {
			t.Fatalf("%s: %d records in ppo-batches, want %d", format, len(got), len(run.Batches)+len(run.Micro))
		}
		for _, want := range run.Messages("ppo-batches") {
			found := false
			for _, m := range got {
				found = found || proto.Equal(want, m)
			}
			if !found {
				t.Errorf("%s: not replayed as it was recorded: %v", format, want)
			}
		}
	}
}

// Whatever the parallelism and the format of the archive: the same bytes.
func TestTheBytesDoNotDependOnParallelism(t *testing.T) {
	run := replaytest.Record(replaytest.Shape{Seed: 2, Steps: 6, Groups: 6, Size: 8})
	lines, columns := export(t, run, archive.JSONL), export(t, run, archive.Parquet)
	var first map[string]string
	for _, c := range []struct {
		dir     string
		workers int
	}{{lines, 1}, {lines, 2}, {lines, 7}, {columns, 3}} {
		out := filepath.Join(t.TempDir(), "out")
		cfg := config(t, c.dir, out)
		cfg.Workers, cfg.Rewards = c.workers, zeroOne(t)
		if _, err := Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		got := files(t, out)
		if first == nil {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Fatalf("%d workers: %s, want %s", c.workers, sizes(got), sizes(first))
		}
	}
	if len(first["scored.jsonl"]) == 0 || len(first["ppo-batches.jsonl"]) == 0 {
		t.Errorf("nothing was replayed: %s", sizes(first))
	}
}

// inRows cuts batches smaller, so that there are more of them.
type inRows struct {
	Source
	rows int
}

func (s inRows) Read(ctx context.Context, name string, b Bounds, behind Position, f func(Batch) error) error {
	at := int64(0)
	return s.Source.Read(ctx, name, b, Position{}, func(whole Batch) error {
		all, err := whole.Records()
		for len(all) > 0 && err == nil {
			n := min(s.rows, len(all))
			last := topic.Position{Partition: all[n-1].Partition, Offset: all[n-1].Offset}
			if at += int64(n); at > behind.Records {
				err = f(Batch{ofTypes(all[:n]), Position{Records: at, Last: &last}, whole.Share})
			}
			all = all[n:]
		}
		return err
	})
}

// errDead stands for a process that died.
var errDead = errors.New("dead")

// A process dies at every point that there is, one after the other, with a checkpoint
// after each commit; the next one goes on. The bytes are those of an undisturbed replay.
func TestDeathAtEveryPoint(t *testing.T) {
	for _, format := range []string{archive.JSONL, archive.Parquet} {
		t.Run(format, func(t *testing.T) { deathAtEveryPoint(t, format) })
	}
}

func deathAtEveryPoint(t *testing.T, format string) {
	dir := export(t, replaytest.Record(replaytest.Shape{Seed: 3, Steps: 3, Groups: 4, Size: 8}), archive.JSONL)
	config := func(t *testing.T, dir, out string) Config {
		cfg := config(t, dir, out)
		cfg.Sink = NewFolderSink(out, cfg.ID, format, cfg.State)
		cfg.Source = inRows{cfg.Source, 5}
		return cfg
	}
	calm := filepath.Join(t.TempDir(), "calm")
	cfg := config(t, dir, calm)
	points := 0
	cfg.Every = time.Nanosecond
	cfg.at = func(string) error { points++; return nil }
	want, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if points < 25 {
		t.Fatalf("%d points: too few to mean anything", points)
	}
	for _, every := range []time.Duration{time.Nanosecond, time.Hour} {
		out := filepath.Join(t.TempDir(), "out")
		deaths, done := 0, false
		for life := 1; !done; life++ {
			cfg := config(t, dir, out)
			cfg.Every = every
			left := life // each life gets one point further than the one before
			cfg.at = func(string) error {
				if left--; left == 0 {
					return errDead
				}
				return nil
			}
			got, err := Run(t.Context(), cfg)
			switch {
			case errors.Is(err, errDead):
				deaths++
			case err != nil:
				t.Fatalf("life %d: %v", life, err)
			default:
				done = true
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("summary:\n%s", diff)
				}
			}
		}
		if deaths < 5 {
			t.Errorf("%d deaths: too few to mean anything", deaths)
		}
		left, err := filepath.Glob(filepath.Join(out, ".replay", "*"))
		if err != nil || len(left) != 2 {
			t.Errorf("%v, %v: want a checkpoint and a lock to be left", left, err)
		}
		if diff := cmp.Diff(files(t, calm), files(t, out)); diff != "" {
			t.Errorf("after %d deaths: %s, want %s", deaths, sizes(files(t, out)), sizes(files(t, calm)))
		}
	}
}

// An interruption keeps what was committed, and its folder says that it is not finished.
func TestInterruption(t *testing.T) {
	run := replaytest.Record(replaytest.Shape{Seed: 4, Steps: 10, Groups: 4, Size: 8})
	dir, out := export(t, run, archive.Parquet), filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(t.Context())
	cfg := config(t, dir, out)
	commits := 0
	cfg.at = func(point string) error {
		if point == "committed" {
			if commits++; commits == 3 {
				cancel()
			}
		}
		return nil
	}
	if _, err := Run(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want context.Canceled", err)
	}
	if _, err := archive.Open(out); !errors.Is(err, archive.ErrUnfinished) {
		t.Errorf("the folder opens with %v, want ErrUnfinished", err)
	}
	cfg = config(t, dir, out)
	again := 0
	cfg.at = func(point string) error {
		if point == "committed" {
			again++
		}
		return nil
	}
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "whole")
	all := 0
	cfg = config(t, dir, whole)
	cfg.at = func(point string) error {
		if point == "committed" {
			all++
		}
		return nil
	}
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files(t, whole), files(t, out)); diff != "" {
		t.Errorf("%s, want %s", sizes(files(t, out)), sizes(files(t, whole)))
	}
	if again >= all {
		t.Errorf("%d commits after the interruption, %d in all: nothing was kept", again, all)
	}
	// Once finished, the same call says so again and writes nothing.
	cfg = config(t, dir, out)
	cfg.at = func(point string) error { t.Errorf("a finished replay came to %q", point); return nil }
	if sum, err := Run(t.Context(), cfg); err != nil || sum.Scored == 0 {
		t.Errorf("a finished replay again: %+v, %v", sum, err)
	}
	if err := os.Remove(filepath.Join(out, "grouped.jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), cfg); !errors.Is(err, ErrOther) {
		t.Errorf("a finished replay whose output is gone: %v, want ErrOther", err)
	}
}

// A replay that is started again at once waits for the one that is still ending.
func TestALockThatIsGivenUpSoonIsTaken(t *testing.T) {
	dir := t.TempDir()
	release, err := lock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, release)
	again, err := lock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestWhatIsRefused(t *testing.T) {
	run := replaytest.Record(replaytest.Shape{Seed: 5, Steps: 2, Groups: 2, Size: 2})
	dir := export(t, run, archive.JSONL)
	begun := filepath.Join(t.TempDir(), "begun")
	cfg := config(t, dir, begun)
	cfg.at = func(point string) error {
		if point == "committed" {
			return errDead
		}
		return nil
	}
	if _, err := Run(t.Context(), cfg); !errors.Is(err, errDead) {
		t.Fatal(err)
	}
	busy := t.TempDir()
	release, err := lock(t.Context(), busy)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for name, c := range map[string]struct {
		change func(*Config)
		want   error
	}{
		"another configuration":  {func(c *Config) { c.Fingerprint = "g" }, ErrOther},
		"another id":             {func(c *Config) { c.ID = "other" }, ErrOther},
		"another process":        {func(c *Config) { c.State = busy }, ErrBusy},
		"a folder that is used":  {func(c *Config) { c.Sink, c.State = NewFolderSink(dir, "again", archive.JSONL, ""), t.TempDir() }, ErrOther},
		"another one's folder":   {func(c *Config) { c.Sink, c.State = NewFolderSink(begun, "x", archive.JSONL, ""), t.TempDir() }, ErrOther},
		"batches of questions":   {func(c *Config) { c.Select.Questions = []string{"q1"} }, ErrConfig},
		"an unknown stop":        {func(c *Config) { c.Until = "soon" }, ErrConfig},
		"an unknown topic":       {func(c *Config) { c.Trajectories = "prompts" }, ErrConfig},
		"rules that cannot work": {func(c *Config) { c.Batches.ClipLow = 0 }, ErrConfig},
	} {
		cfg := config(t, dir, begun)
		c.change(&cfg)
		if _, err := Run(t.Context(), cfg); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "scored.jsonl"), archive.JSONHeader(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), config(t, dir, begun)); !errors.Is(err, ErrOther) {
		t.Errorf("an archive that changed: %v, want ErrOther", err)
	}
}

// Filters leave trajectories out; groups and steps that are no longer whole are named.
func TestSelections(t *testing.T) {
	run := replaytest.Record(replaytest.Shape{Seed: 6, Steps: 4, Groups: 4, Size: 4, Calm: true})
	dir := export(t, run, archive.JSONL)
	for name, c := range map[string]struct {
		change func(*Config)
		want   func(Summary) bool
	}{
		"steps": {func(c *Config) { c.Select.FirstStep, c.Select.LastStep = 2, 3 },
			func(s Summary) bool {
				return s.Scored == 32 && s.NotMeant == 32 && s.Steps == 2 && s.IncompleteGroups == 0
			}},
		// What was closed before is not asked for, as it is not where topics are read.
		"since": {func(c *Config) {
			c.Select.Since, c.Until = replaytest.Begin.Add(50*time.Millisecond), Groups
		}, func(s Summary) bool { return s.Scored == 14 && s.NotMeant == 50 && s.IncompleteGroups < 16 }},
		"a data source, to groups": {func(c *Config) { c.Select.DataSources, c.Until = []string{"math"}, Groups },
			func(s Summary) bool {
				return s.Scored > 0 && s.NotMeant > 0 && s.Used+s.Degenerate == s.Scored/4 && s.IncompleteGroups == 0
			}},
		"scores alone": {func(c *Config) { c.Until = Scores }, func(s Summary) bool { return s.Scored == 64 && s.Used == 0 && s.Steps == 0 }},
		"offsets": {func(c *Config) { c.Select.Offsets = map[int32]archive.Span{1: {From: 0, To: 3}} },
			func(s Summary) bool {
				return s.Scored <= 3 && s.IncompleteGroups > 0 && s.IncompleteSteps == 4 && len(s.Examples) == maxExamples
			}},
	} {
		out := filepath.Join(t.TempDir(), "out")
		cfg := config(t, dir, out)
		c.change(&cfg)
		if sum, err := Run(t.Context(), cfg); err != nil || !c.want(sum) {
			t.Errorf("%s: %+v, %v", name, sum, err)
		}
	}
}
