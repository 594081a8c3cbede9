package main

import (
	"context"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
	"github.com/sluice-rl/sluice/topology"
)

// With --replay-id the writer reads the replay's topics and fills the tables of replays,
// and those alone.
func TestAReplayIsWrittenBesideTheOriginal(t *testing.T) {
	ch := clickhousetest.Start(t)
	kafkatest.RunReal(t, func(w *kafkatest.World) {
		original := everything(1)
		w.Put(original.outputs...)
		cluster := w.Cluster()
		cluster.Namespace = topology.ReplayNamespace(cluster.Namespace, "z")
		cl, err := kafka.NewClient(cluster, "test", "admin")
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		for _, topic := range w.Topology.Stages["metrics-writer"].Reads {
			if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 2, 1, nil, cluster.Namespace+topic); err != nil {
				t.Fatal(err)
			}
		}
		p, err := kafka.NewProducer(t.Context(), cluster, "test")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for _, o := range original.outputs {
			if o.Topic == "scored" || o.Topic == "grouped" || o.Topic == "ppo-batches" {
				if err := p.Produce(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
		}

		c := config{replay: "z", records: 100, bytes: 1 << 20, interval: 50 * time.Millisecond, migrate: true}
		c.target = target{addrs: []string{ch.TCP}, protocol: "native", database: "replayed", user: "writer", password: ch.WriterPassword}
		if err := c.validate(); err != nil {
			t.Fatal(err)
		}
		env := w.Env("metrics-writer")
		running := w.Start(func(ctx context.Context, env *stage.Env) error { return run(ctx, env, c, nil) }, env)
		defer running.Stop()
		want := map[string]uint64{"replay_scores": 2, "replay_groups": 1, "replay_group_fates": 2, "replay_step_batches": 1, "replay_batch_members": 2,
			"trajectories": 0, "turns": 0, "group_members": 0, "groups": 0, "group_fates": 0, "step_batches": 0, "micro_batches": 0, "trainer_reports": 0}
		conn := ch.Open(t, clickhouse.Native, "default")
		count := func(table string) (n uint64) {
			if err := conn.QueryRow(t.Context(), "SELECT count() FROM replayed."+table+" FINAL").Scan(&n); err != nil {
				return 0 // not made yet
			}
			return n
		}
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if count("replay_scores") == 2 && count("replay_batch_members") == 2 && count("replay_group_fates") == 2 {
				break
			}
		}
		for table, n := range want {
			if got := count(table); got != n {
				t.Errorf("%s: %d rows, want %d", table, got, n)
			}
		}
		var id, topic string
		if err := conn.QueryRow(t.Context(), "SELECT any(replay_id), any(source_topic) FROM replayed.replay_scores").Scan(&id, &topic); err != nil || id != "z" || topic != cluster.Namespace+"scored" {
			t.Errorf("replay %q from %q, %v", id, topic, err)
		}
	})
}

func TestReplayIDs(t *testing.T) {
	for id, ok := range map[string]bool{"": true, "z-1_A": true, "a.b": false, "a b": false} {
		c := config{replay: id, records: 1, bytes: 1, interval: 1, target: target{addrs: []string{"h:1"}, protocol: "native", database: "d", user: "u"}}
		if err := c.validate(); (err == nil) != ok {
			t.Errorf("%q: %v, want ok = %t", id, err, ok)
		}
	}
}
