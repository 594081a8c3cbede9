package kafka

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sluice-rl/sluice/stages/internal/status"
)

// intakes are the four ways to work, each with the topic whose absence it must say and
// the client without which it is not at work.
var intakes = []struct {
	name, topic, part string
	run               func(context.Context, ClusterConfig) error
}{
	{"share", "code-calls", "kafka share slot 1", func(ctx context.Context, c ClusterConfig) error {
		return RunShare(ctx, ShareConfig{Cluster: c, Stage: "code-executor", Slots: 2}, func(int) Handler { return taking(0) })
	}},
	{"classic", "code-results", "kafka classic", func(ctx context.Context, c ClusterConfig) error {
		return RunClassic(ctx, ClassicConfig{Cluster: c, Stage: "sampler"}, taking(0))
	}},
	{"keyed with broadcasts", "ppo-batcher-changelog", "kafka keyed", func(ctx context.Context, c ClusterConfig) error {
		return RunKeyed(ctx, KeyedConfig{Cluster: c, Stage: "ppo-batcher"}, func(int32) Machine { return &alarm{log: &alarmLog{}} })
	}},
	{"ranges", "trainer-reports", "kafka ranges", func(ctx context.Context, c ClusterConfig) error {
		return RunRanges(ctx, RangesConfig{Cluster: c, Stage: "metrics-writer"}, &store{ranges: map[string]Range{}})
	}},
}

// readiness records what a stage would be at every report of a part.
type readiness struct {
	mu     sync.Mutex
	parts  map[string]error
	begun  bool
	at     map[string]error // the parts when Begun was called
	early  []string
	part   string
	isTrue bool
}

func (r *readiness) tell(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts[name] = err
	r.isTrue = len(r.parts) > 0
	for _, e := range r.parts {
		r.isTrue = r.isTrue && e == nil
	}
	if main, named := r.parts[r.part]; r.isTrue && (!named || main != nil) {
		r.early = append(r.early, name)
	}
}

func (r *readiness) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun, r.at = true, map[string]error{}
	for n, e := range r.parts {
		r.at[n] = e
	}
}

func (r *readiness) ready() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isTrue
}

func watched(part string, c *ClusterConfig) *readiness {
	r := &readiness{parts: map[string]error{}, part: part}
	c.Ready, c.Begun = r.tell, r.begin
	return r
}

// A stage is ready no sooner than the client that does its work, though others (its
// reader of broadcasts, its producer) are up before.
func TestNotReadyBeforeTheClientThatWorks(t *testing.T) {
	for _, in := range intakes {
		t.Run(in.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var r *readiness
				cluster := w.cluster()
				r = watched(in.part, &cluster)
				p := w.start("a", func(ctx context.Context, _ ClusterConfig) error { return in.run(ctx, cluster) })
				w.eventually("readiness", r.ready)
				p.stop()
				if !r.begun || r.at[in.part] == nil {
					t.Errorf("Begun told %v with parts %v: want %s named, and not ready", r.begun, r.at, in.part)
				}
				if len(r.early) > 0 {
					t.Errorf("ready before %s was, at the reports of %v", in.part, r.early)
				}
			})
		})
	}
}

type sink struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestAbsentTopicsAreSaidOnceAndWaitedFor(t *testing.T) {
	for _, in := range intakes {
		t.Run(in.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				cl, err := NewClient(w.cluster(), "test", "admin")
				if err != nil {
					t.Fatal(err)
				}
				defer cl.Close()
				adm, name := kadm.NewClient(cl), testNamespace+in.topic
				if _, err := adm.DeleteTopic(w.t.Context(), name); err != nil {
					t.Fatal(err)
				}
				var log sink
				cluster := w.cluster()
				cluster.Log = slog.New(slog.NewTextHandler(&log, nil))
				r := watched(in.part, &cluster)
				p := w.start("a", func(ctx context.Context, _ ClusterConfig) error { return in.run(ctx, cluster) })
				time.Sleep(5 * time.Minute)
				if r.ready() {
					t.Error("ready without its topic")
				}
				logged := 0
				for line := range strings.Lines(log.String()) {
					if strings.Contains(line, "WARN") && strings.Contains(line, "sluice apply") && strings.Contains(line, name) {
						logged++
					}
				}
				if logged != 1 {
					t.Errorf("logged %d times that %s is absent, want once:\n%s", logged, name, &log)
				}
				if _, err := adm.CreateTopic(w.t.Context(), w.top.Topics[in.topic].Partitions, 1, nil, name); err != nil {
					t.Fatal(err)
				}
				w.eventually("readiness once the topic exists", r.ready)
				p.stop()
			})
		})
	}
}

// A stage that was started with another topology than its cluster's works, and says so.
func TestAnotherTopologyThanTheClustersIsSaid(t *testing.T) {
	inWorld(t, func(w *world) {
		board := status.NewBoard(nil)
		p := w.start("a", func(ctx context.Context, c ClusterConfig) error {
			c.Status = board
			c.Topology.Topics = maps.Clone(c.Topology.Topics)
			for _, name := range []string{"trajectories", "scored", "reward-scorer-changelog"} {
				tp := c.Topology.Topics[name]
				tp.Partitions *= 2
				c.Topology.Topics[name] = tp
			}
			return RunKeyed(ctx, KeyedConfig{Cluster: c, Stage: "reward-scorer"}, func(p int32) Machine { return &counter{partition: p} })
		})
		w.eventually("readiness", p.isReady)
		text := board.Status().String()
		for _, want := range []string{"t.scored", "t.trajectories", "t.reward-scorer-changelog"} {
			if !strings.Contains(text, want) {
				t.Errorf("status is %s, want it to name %s", text, want)
			}
		}
		if strings.Contains(text, "dead-letters") {
			t.Errorf("status is %s, want only the topics that differ", text)
		}
	})
}
