// Package kafkatest gives tests of stages a broker in virtual time: kfake on a network
// of its own within a testing/synctest bubble, with the topology's topics. Benchmarks
// get one in real time.
package kafkatest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/process"
)

// namespace shows that nothing forgets the prefix.
const namespace = "t."

// World is a broker, and what a test needs to talk to it.
type World struct {
	T        testing.TB
	Topology topology.Topology
	// Log goes to the test's output.
	Log *slog.Logger
	// Broker is for tests that make it answer with errors.
	Broker *kfake.Cluster

	brokers []string
	// dialer is nil in real time.
	dialer func(ctx context.Context, network, host string) (net.Conn, error)
	reader *kgo.Client
	seen   map[string][]proto.Message
}

// Run runs f in a bubble of virtual time, with a broker that may be told more.
func Run(t *testing.T, f func(w *World), opts ...kfake.Opt) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := &kfake.VirtualNetwork{}
		w, stop := start(t, append(opts, kfake.Ports(9092), kfake.ListenFn(net.Listen))...)
		defer stop()
		w.dialer = net.DialContext
		w.startReader()
		defer w.reader.Close()
		f(w)
	})
}

// RunReal runs f in real time, on a loopback port: for benchmarks.
func RunReal(t testing.TB, f func(w *World)) {
	t.Helper()
	w, stop := start(t)
	defer stop()
	w.startReader()
	defer w.reader.Close()
	f(w)
}

// start starts a broker with the topology's topics.
func start(t testing.TB, opts ...kfake.Opt) (w *World, stop func()) {
	t.Helper()
	top, err := topology.Default()
	if err != nil {
		t.Fatal(err)
	}
	opts = append(opts, kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{
		"share.record.lock.sweep.interval.ms": "500",
		"message.max.bytes":                   fmt.Sprint(top.MaxMessageBytes),
	}))
	for name, tp := range top.Topics {
		opts = append(opts, kfake.SeedTopics(tp.Partitions, namespace+name))
	}
	broker, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	level := slog.LevelInfo
	if _, bench := t.(*testing.B); bench {
		level = slog.LevelWarn
	}
	return &World{
		T: t, Topology: top, Broker: broker, brokers: broker.ListenAddrs(), seen: map[string][]proto.Message{},
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level})),
	}, broker.Close
}

// Cluster is how a stage reaches the broker.
func (w *World) Cluster() kafka.ClusterConfig {
	return kafka.ClusterConfig{
		Brokers: w.brokers, Namespace: namespace, Topology: w.Topology, Dialer: w.dialer, Log: w.Log,
	}
}

// Env is what stage.Main would give to the stage of that name.
func (w *World) Env(name string) *stage.Env {
	registry := prometheus.NewRegistry()
	health := &process.Health{}
	cluster := w.Cluster()
	cluster.Metrics = registry
	cluster.Ready = health.Ready
	return &stage.Env{
		Log: w.Log.With("stage", name), Metrics: registry, Kafka: cluster,
		Topology: w.Topology, Stage: w.Topology.Stages[name], Health: health,
	}
}

// Put writes messages as a stage would.
func (w *World) Put(outputs ...kafka.Output) {
	w.T.Helper()
	p, err := kafka.NewProducer(w.T.Context(), w.Cluster(), "test")
	if err != nil {
		w.T.Fatal(err)
	}
	defer p.Close()
	if err := p.Produce(w.T.Context(), outputs...); err != nil {
		w.T.Fatal(err)
	}
}

func (w *World) startReader() {
	c := w.Cluster()
	c.Log = nil
	var topics []string
	for name, tp := range w.Topology.Topics {
		if tp.Reader != topology.ReaderChangelog { // its records are no messages
			topics = append(topics, topology.Name(namespace, name))
		}
	}
	cl, err := kafka.NewClient(c, "test", "reader", kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		w.T.Fatal(err)
	}
	w.reader = cl
}

// Await waits, for at most ten virtual minutes, until a topic has n messages, and
// returns all that it has, in order within each partition.
func (w *World) Await(topic string, n int) []proto.Message {
	w.T.Helper()
	deadline := time.Now().Add(10 * time.Minute)
	for len(w.seen[topic]) < n {
		if time.Now().After(deadline) {
			w.T.Fatalf("topic %s has %d messages after 10 minutes, want %d", topic, len(w.seen[topic]), n)
		}
		w.poll()
	}
	return w.seen[topic]
}

// Settle waits for a virtual minute, so that whatever is going to be written is, and
// returns what a topic then has.
func (w *World) Settle(topic string) []proto.Message {
	w.T.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		w.poll()
	}
	return w.seen[topic]
}

func (w *World) poll() {
	ctx, cancel := contextFor(w.T, time.Second)
	defer cancel()
	fetches := w.reader.PollFetches(ctx)
	for it := fetches.RecordIter(); !it.Done(); {
		m, err := kafka.Decode(w.Cluster(), it.Next())
		if err != nil {
			w.T.Fatal(err)
		}
		w.seen[m.Topic] = append(w.seen[m.Topic], m.Body)
	}
}
