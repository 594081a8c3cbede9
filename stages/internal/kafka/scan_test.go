package kafka

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology"
)

// Scan sees what is committed from a time on, once, and ends at the end.
func TestScan(t *testing.T) {
	top, err := topology.Default()
	if err != nil {
		t.Fatal(err)
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "ns.policy-updates"), kfake.SeedTopics(2, "ns.trainer-reports"))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	cluster := ClusterConfig{Brokers: broker.ListenAddrs(), Namespace: "ns.", Topology: top}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	writeUpdate := func(cl *kgo.Client, step uint64, at time.Time, partition int32) {
		t.Helper()
		r, err := cluster.encode(Output{Topic: "policy-updates", Body: &sluicev1.PolicyUpdate{RunId: "run", Step: step}})
		if err != nil {
			t.Fatal(err)
		}
		r.Timestamp, r.Partition = at, partition
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	old, recent := time.Now().Add(-time.Hour), time.Now()
	cl, err := NewClient(cluster, "test", "writer", kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	writeUpdate(cl, 1, old, 0)
	writeUpdate(cl, 2, recent, 0)
	writeUpdate(cl, 3, recent, 1)

	tx, err := NewClient(cluster, "test", "transactional", kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("tx"))
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	for step, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := tx.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		writeUpdate(tx, uint64(4+step), recent, 1)
		if err := tx.EndTransaction(ctx, end); err != nil {
			t.Fatal(err)
		}
	}

	scan := func(since time.Time, topic string) map[uint64]int {
		t.Helper()
		seen := map[uint64]int{}
		err := Scan(ctx, cluster, "test", topic, since, func(m Message) error {
			if m.Topic != topic {
				return fmt.Errorf("topic %q, want %q without the namespace", m.Topic, topic)
			}
			seen[m.Body.(*sluicev1.PolicyUpdate).GetStep()]++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	if diff := cmp.Diff(map[uint64]int{1: 1, 2: 1, 3: 1, 5: 1}, scan(time.Time{}, "policy-updates")); diff != "" {
		t.Errorf("from the start, the aborted step 4 left out (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[uint64]int{2: 1, 3: 1, 5: 1}, scan(recent.Add(-time.Minute), "policy-updates")); diff != "" {
		t.Errorf("since a minute ago (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[uint64]int{}, scan(time.Time{}, "trainer-reports")); diff != "" {
		t.Errorf("an empty topic (-want +got):\n%s", diff)
	}
	stop := errors.New("stop")
	if err := Scan(ctx, cluster, "test", "policy-updates", time.Time{}, func(Message) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v, want the callback's", err)
	}
}
