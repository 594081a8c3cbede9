package perform

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/stages/replayer/replay/replaytest"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/topology"
)

// bytesAtOnce compares long bytes in less time than cmp takes for each of them.
var bytesAtOnce = cmp.Comparer(bytes.Equal)

// record writes a run into the topics of a broker.
func record(w *kafkatest.World, run *replaytest.Run) {
	var outputs []kafka.Output
	for _, topic := range replaytest.Topics {
		for _, m := range run.Messages(topic) {
			outputs = append(outputs, kafka.Output{Topic: topic, Body: m})
		}
	}
	w.Put(outputs...)
}

// makeTopics makes the topics of a replay, as `sluice replay` does.
func makeTopics(t testing.TB, w *kafkatest.World, id string) {
	t.Helper()
	cl, err := kafka.NewClient(w.Cluster(), "test", "admin")
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, topic := range Batches.topics() {
		name := topology.ReplayNamespace(w.Cluster().Namespace, id) + topic
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), w.Topology.Topics[topic].Partitions, 1, nil, name); err != nil {
			t.Fatal(err)
		}
	}
}

// kafkaConfig replays a broker's topics; done ends its connections.
func kafkaConfig(t testing.TB, w *kafkatest.World, id, state string) (cfg Config, done func()) {
	t.Helper()
	source, err := NewKafkaSource(w.Cluster())
	if err != nil {
		t.Fatal(err)
	}
	sink, err := NewTopicSink(w.Cluster(), id)
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		ID: id, Source: source, Trajectories: "scored", Until: Batches, Rewards: reward.Default(), Batches: step.DefaultRules,
		Sink: sink, State: state, Fingerprint: "f", Every: time.Nanosecond, Log: w.Log,
	}, func() { source.Close(); sink.Close() }
}

// topicBytes are all records of a replay's topics, key and value, by partition. Offsets
// are counted: transactions have markers, and leave gaps where they were aborted.
func topicBytes(t testing.TB, w *kafkatest.World, id string) map[string][]archive.Record {
	t.Helper()
	cluster := w.Cluster()
	cluster.Namespace = topology.ReplayNamespace(cluster.Namespace, id)
	source, err := NewKafkaSource(cluster)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	out := map[string][]archive.Record{}
	for _, topic := range Batches.topics() {
		b, err := source.Bounds(t.Context(), topic, archive.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int32]int64{}
		err = source.Read(t.Context(), topic, b, Position{}, func(batch Batch) error {
			records, err := batch.Records()
			for _, r := range records {
				r.Time = time.Time{} // when it was written
				r.Offset = seen[r.Partition]
				seen[r.Partition]++
				out[topic] = append(out[topic], r)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// From a broker into topics of the replay's own: with the same reward the same messages,
// and the original's topics as they were.
func TestFromTopicsToTopics(t *testing.T) {
	kafkatest.RunReal(t, func(w *kafkatest.World) {
		run := replaytest.Record(replaytest.Shape{Seed: 1, Steps: 3, Groups: 4, Size: 8})
		record(w, run)
		makeTopics(t, w, "calm")
		cfg, done := kafkaConfig(t, w, "calm", t.TempDir())
		defer done()
		sum, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Scored != int64(len(run.Scored)) || sum.RewardChanged != 0 || sum.IncompleteGroups+sum.IncompleteSteps != 0 {
			t.Errorf("summary %+v", sum)
		}
		calm := topicBytes(t, w, "calm")
		for topic, want := range map[string][]proto.Message{
			"scored": run.Messages("scored"), "grouped": run.Messages("grouped")[len(run.Members):], "ppo-batches": run.Messages("ppo-batches"),
		} {
			if len(calm[topic]) != len(want) {
				t.Errorf("%s: %d records, want %d", topic, len(calm[topic]), len(want))
			}
			for _, m := range want {
				found := false
				for _, r := range calm[topic] {
					got, err := r.Decode()
					if err != nil {
						t.Fatal(err)
					}
					found = found || proto.Equal(m, got)
				}
				if !found {
					t.Fatalf("%s: not there: %v", topic, m)
				}
			}
		}
		for _, topic := range replaytest.Topics {
			if got := len(w.Await(topic, len(run.Messages(topic)))); got != len(run.Messages(topic)) {
				t.Errorf("the original's %s has %d records, want %d", topic, got, len(run.Messages(topic)))
			}
		}

		// What others wrote is not taken for ours.
		stranger, done := kafkaConfig(t, w, "calm", t.TempDir())
		defer done()
		if _, err := Run(t.Context(), stranger); !errors.Is(err, ErrOther) {
			t.Errorf("topics that hold records and no checkpoint: %v, want ErrOther", err)
		}

		// A finished replay is finished, but not where its topics are others.
		again, done := kafkaConfig(t, w, "calm", cfg.State)
		defer done()
		if got, err := Run(t.Context(), again); err != nil || got.Scored != sum.Scored {
			t.Errorf("a finished replay again: %+v, %v", got, err)
		}
		makeTopics(t, w, "empty")
		again.Sink, err = NewTopicSink(w.Cluster(), "empty")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), again); !errors.Is(err, ErrOther) {
			t.Errorf("a finished replay whose records are gone: %v, want ErrOther", err)
		}
		again.Sink.(*TopicSink).Close()

		// Processes die at every third point, with what they sent on its way.
		makeTopics(t, w, "deaths")
		state, deaths := t.TempDir(), 0
		for life := 1; ; life += 3 {
			cfg, done := kafkaConfig(t, w, "deaths", state)
			cfg.Source = inRows{cfg.Source, 20}
			if life%2 == 0 {
				cfg.Every = time.Hour
			}
			left := life
			cfg.at = func(string) error {
				if left--; left == 0 {
					return errDead
				}
				return nil
			}
			_, err := Run(t.Context(), cfg)
			done()
			if err == nil {
				break
			}
			if deaths++; !errors.Is(err, errDead) {
				t.Fatal(err)
			}
		}
		if deaths < 4 {
			t.Errorf("%d deaths: too few to mean anything", deaths)
		}
		if diff := cmp.Diff(calm, topicBytes(t, w, "deaths"), bytesAtOnce); diff != "" {
			t.Errorf("after %d deaths:\n%s", deaths, diff)
		}
	})
}

// An archive of topics and the topics themselves give the same bytes.
func TestAnArchiveReplaysAsItsTopicsDo(t *testing.T) {
	kafkatest.RunReal(t, func(w *kafkatest.World) {
		record(w, replaytest.Record(replaytest.Shape{Seed: 2, Steps: 3, Groups: 4, Size: 6}))
		source, err := NewKafkaSource(w.Cluster())
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		dir := filepath.Join(t.TempDir(), "archive")
		aw, err := archive.Create(dir, archive.Parquet)
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range replaytest.Topics {
			b, err := source.Bounds(t.Context(), topic, archive.Selection{})
			if err == nil {
				err = source.Read(t.Context(), topic, b, Position{}, func(batch Batch) error {
					records, err := batch.Records()
					for _, r := range records {
						err = errors.Join(err, aw.Write(r))
					}
					return err
				})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := aw.Close(); err != nil {
			t.Fatal(err)
		}
		a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
		if _, err := Run(t.Context(), config(t, dir, a)); err != nil {
			t.Fatal(err)
		}
		cfg := config(t, dir, b)
		cfg.Source = source
		if _, err := Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files(t, a), files(t, b)); diff != "" {
			t.Errorf("%s from the archive, %s from the topics", sizes(files(t, a)), sizes(files(t, b)))
		}
	})
}

// copyState copies a state folder's files.
func copyState(t testing.TB, from, to string) {
	t.Helper()
	for name, text := range files(t, from) {
		if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
