package perform

import (
	"flag"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
	"github.com/sluice-rl/sluice/stages/replayer/replay/replaytest"
)

// benchTrajectories is how many trajectories the benchmark records: 100,000 take a few
// GB of memory for the broker.
var benchTrajectories = flag.Int("replay-trajectories", 10_000, "trajectories that BenchmarkReplay replays")

// BenchmarkReplay replays trajectories of a few hundred tokens from a broker into topics,
// and from an archive of each format into one of the same, and reads the same records
// bare, and copies them, in the same run. It reports the rates, and the replay's time as a
// multiple of the reading's and of the copying's.
func BenchmarkReplay(b *testing.B) {
	kafkatest.RunReal(b, func(w *kafkatest.World) {
		folder := b.TempDir()
		written := recordMany(b, w, folder, *benchTrajectories)
		for _, from := range []string{"kafka", archive.Parquet, archive.JSONL} {
			for _, until := range []Until{Scores, Groups, Batches} {
				b.Run(from+"/"+string(until), func(b *testing.B) {
					for i := range b.N {
						id := fmt.Sprintf("%s-%d-%d", until, b.N, i)
						var cfg Config
						var copied Sink
						if from == "kafka" {
							makeTopics(b, w, id)
							makeTopics(b, w, id+"-copy")
							var done func()
							cfg, done = kafkaConfig(b, w, id, b.TempDir())
							defer done()
							sink, err := NewTopicSink(w.Cluster(), id+"-copy")
							if err != nil {
								b.Fatal(err)
							}
							defer sink.Close()
							copied = sink
						} else {
							out := filepath.Join(b.TempDir(), "out")
							cfg = config(b, filepath.Join(folder, from), out)
							cfg.Sink = NewFolderSink(out, cfg.ID, from, cfg.State)
							copied = NewFolderSink(filepath.Join(b.TempDir(), "copy"), "copy", from, b.TempDir())
						}
						cfg.Until, cfg.Every = until, 5*time.Second
						measure(b, cfg, copied, written)
					}
				})
			}
		}
	})
}

// recordMany records at least n trajectories in the broker and in archives of both
// formats, and counts them.
func recordMany(b *testing.B, w *kafkatest.World, folder string, n int) (written int) {
	b.Helper()
	var writers []*archive.Writer
	for _, format := range []string{archive.Parquet, archive.JSONL} {
		aw, err := archive.Create(filepath.Join(folder, format), format)
		if err != nil {
			b.Fatal(err)
		}
		writers = append(writers, aw)
	}
	for seed := uint64(0); written < n; seed++ {
		const steps, groups, size = 10, 10, 8
		run := replaytest.Record(replaytest.Shape{Seed: seed, Steps: steps, Groups: groups, Size: size, Tokens: 400, Text: 1200, Calm: true})
		var outputs []kafka.Output
		for _, t := range run.Scored {
			t.Trajectory.Prompt.Group.RunId = fmt.Sprint("run-", seed)
		}
		for _, g := range run.Closed {
			g.Group.RunId = fmt.Sprint("run-", seed)
		}
		for _, topic := range []string{"scored", "grouped"} {
			for _, m := range run.Messages(topic) {
				outputs = append(outputs, kafka.Output{Topic: topic, Body: m})
			}
			for _, r := range run.Records(topic) {
				for _, aw := range writers {
					if err := aw.Write(r); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		w.Put(outputs...)
		written += len(run.Scored)
	}
	for _, aw := range writers {
		if err := aw.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return written
}

// measure reads bare, copies bare, then replays.
func measure(b *testing.B, cfg Config, copied Sink, written int) {
	b.Helper()
	copying := copyBare(b, cfg.Source, copied)
	n, began := float64(written), cpuTime(b)
	bare, bytes := readBare(b, cfg.Source)
	b.ReportMetric((cpuTime(b)-began).Seconds()*1e6/n, "cpu-µs/read")
	start, cpu := time.Now(), cpuTime(b)
	sum, err := Run(b.Context(), cfg)
	took := time.Since(start)
	b.ReportMetric((cpuTime(b)-cpu).Seconds()*1e6/n, "cpu-µs/replayed")
	if err != nil || sum.Scored != int64(written) {
		b.Fatalf("%+v, %v: want %d scored", sum, err, written)
	}
	b.ReportMetric(n/took.Seconds(), "replayed/s")
	b.ReportMetric(n/bare.Seconds(), "read/s")
	b.ReportMetric(float64(bytes)/bare.Seconds()/1e6, "read-MB/s")
	b.ReportMetric(took.Seconds()/bare.Seconds(), "times-reading")
	b.ReportMetric(took.Seconds()/copying.Seconds(), "times-copying")
}

// copyBare reads the trajectories and writes them as they are, on one goroutine: what a
// replay that scored nothing would have to do.
func copyBare(b *testing.B, from Source, to Sink) time.Duration {
	b.Helper()
	bounds, err := from.Bounds(b.Context(), "scored", archive.Selection{})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := to.Resume(b.Context(), []string{"scored"}, Mark{}); err != nil {
		b.Fatal(err)
	}
	err = from.Read(b.Context(), "scored", bounds, Position{}, func(batch Batch) error {
		records, err := batch.Records()
		var items []Item
		for _, r := range records {
			it := Item{Topic: r.Topic, Time: r.Time, Record: r.Record}
			if to.WantsJSON() && err == nil {
				it.JSON, err = archive.JSONBody(r.Record)
			}
			items = append(items, it)
		}
		if err != nil {
			return err
		}
		return to.Write(b.Context(), items)
	})
	if err == nil {
		_, err = to.Sync(b.Context())
	}
	if err == nil {
		err = to.Finish(b.Context(), Summary{}, func(_, _ int64) {})
	}
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// cpuTime is the processor time of this process, the broker in it included: a busy
// machine does not change it.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// readBare reads the trajectories and looks at nothing.
func readBare(b *testing.B, s Source) (took time.Duration, bytes int64) {
	b.Helper()
	bounds, err := s.Bounds(b.Context(), "scored", archive.Selection{})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	err = s.Read(b.Context(), "scored", bounds, Position{}, func(batch Batch) error {
		records, err := batch.Records()
		for _, r := range records {
			bytes += int64(len(r.Value))
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(began), bytes
}
