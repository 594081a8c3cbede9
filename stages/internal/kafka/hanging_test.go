package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/integration/apachekafka"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/status"
)

// A stage whose offsets hang on the real broker, by a transaction of a process that is
// gone or by its own, is at work within seconds and says what it did.
func TestKeyedGoesOnThoughMarkersAreLost(t *testing.T) {
	broker := apachekafka.Start(t)
	w := newRealWorld(t, broker.Address)
	ids := map[string]string{}
	for i := range 48 {
		ids[fmt.Sprintf("%sreward-scorer-%02d", testNamespace, i)] = testNamespace + "reward-scorer"
	}
	made := broker.HangTransactions(10, testNamespace+"trajectories", ids)
	own := strings.TrimPrefix(made[0].TransactionalID, testNamespace+"reward-scorer-")

	cl, err := NewClient(w.cluster(), "test", "check")
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	resp, err := kadm.NewClient(cl).FetchOffsets(kadm.RequireStable(t.Context()), testNamespace+"reward-scorer")
	if err = errors.Join(err, resp.Error()); !errors.Is(err, kerr.UnstableOffsetCommit) {
		t.Fatalf("offsets before the stage comes: %v; want unstable ones, or the test proves nothing", err)
	}
	for _, instance := range []string{"other", own} {
		// The first ends what hangs, as a process that takes a dead one's place does; of
		// the second's own nothing is left, or it would be it.
		before := w.countScored()
		w.put(trajectories(before, before+40)...)
		p := w.start(instance, func(ctx context.Context, c ClusterConfig) error {
			c.Status = status.NewBoard(nil)
			return RunKeyed(ctx, KeyedConfig{Cluster: c, Stage: "reward-scorer", BatchRecords: 16},
				func(p int32) Machine { return &counter{partition: p} })
		})
		began := time.Now()
		w.eventually("all scored", func() bool { return w.countScored() == before+40 })
		t.Logf("instance %s: all scored after %v", instance, time.Since(began))
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if instance == "other" {
			n, err := testutil.GatherAndCount(p.cluster.Metrics.(*prometheus.Registry), "sluice_hanging_transactions_ended_total")
			if err != nil || n == 0 {
				t.Errorf("no metric of what was ended (%v)", err)
			}
		}
	}
	w.scoredOnce(w.countScored())
}

// newRealWorld is a world around a broker of its own, in real time.
func newRealWorld(t *testing.T, address string) *world {
	w := newWorldWithout(t)
	w.brokers = []string{address}
	w.log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for name, tp := range w.top.Topics {
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), tp.Partitions, 1, map[string]*string{
			"max.message.bytes": kadm.StringPtr(fmt.Sprint(w.top.MaxMessageBytes)),
		}, testNamespace+name); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// What ending a lost marker by an abort leaves: outputs and state are committed and the
// offsets are not. A machine that drops what it has taken already makes it right.
func TestKeyedTakesRecordsAgainWhoseOffsetsWereAborted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(trajectories(0, 60)...)
		once := func(p int32) Machine { return &deduper{counter: counter{partition: p}, seen: map[string]bool{}} }
		run := func(ctx context.Context, c ClusterConfig) error {
			return RunKeyed(ctx, KeyedConfig{Cluster: c, Stage: "reward-scorer", BatchRecords: 16}, once)
		}
		first := w.start("a", run)
		w.eventually("all scored", func() bool { return w.countScored() == 60 })
		if err := first.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		w.rewind("reward-scorer", 3)
		w.put(trajectories(60, 100)...)
		w.start("b", run)
		w.eventually("the rest", func() bool { return w.countScored() >= 100 })
		time.Sleep(time.Minute)
		w.scoredOnce(100)
	})
}

// rewind takes back the last n offsets of each partition that a group committed.
func (w *world) rewind(group string, n int64) {
	w.t.Helper()
	cl, err := NewClient(w.cluster(), "test", "rewind")
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	all, err := adm.FetchOffsets(w.t.Context(), testNamespace+group)
	if err != nil {
		w.t.Fatal(err)
	}
	offsets, rewound := kadm.Offsets{}, 0
	all.Each(func(o kadm.OffsetResponse) {
		offsets.AddOffset(o.Topic, o.Partition, max(0, o.At-n), -1)
		rewound += int(min(n, o.At))
	})
	if rewound == 0 {
		w.t.Fatal("nothing was committed: the test proves nothing")
	}
	if err := adm.CommitAllOffsets(w.t.Context(), testNamespace+group, offsets); err != nil {
		w.t.Fatal(err)
	}
}

// deduper is a counter that drops trajectories it has taken already, as the real machines
// do.
type deduper struct {
	counter
	seen map[string]bool
}

func (d *deduper) Restore(key string, value []byte) error {
	if key != "n" {
		d.seen[key] = true
		return nil
	}
	return d.counter.Restore(key, value)
}

func (d *deduper) Step(m Message, now time.Time) (Effects, error) {
	key := fmt.Sprint(m.Body.(*sluicev1.Trajectory).GetCopy())
	if d.seen[key] {
		return Effects{}, nil
	}
	d.seen[key] = true
	e, err := d.counter.Step(m, now)
	e.State = append(e.State, StateChange{Key: key, Value: []byte{1}})
	return e, err
}
