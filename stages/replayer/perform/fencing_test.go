package perform

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
	"github.com/sluice-rl/sluice/stages/replayer/replay/replaytest"
)

// virtualReplay replays the broker's topics into topics over a process's own network.
func virtualReplay(t testing.TB, w *kafkatest.World, cluster kafka.ClusterConfig, id, state string) (Config, func()) {
	t.Helper()
	cfg, done := kafkaConfig(t, w, id, state)
	cfg.Source = inRows{cfg.Source, 6}
	sink, err := NewTopicSink(cluster, id)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Sink.(*TopicSink).Close()
	cfg.Sink = sink
	return cfg, func() { done(); sink.Close() }
}

// calmly replays undisturbed.
func calmly(t testing.TB, w *kafkatest.World) map[string][]archive.Record {
	t.Helper()
	record(w, replaytest.Record(replaytest.Shape{Seed: 8, Steps: 3, Groups: 4, Size: 8}))
	makeTopics(t, w, "calm")
	cfg, done := virtualReplay(t, w, w.Cluster(), "calm", t.TempDir())
	defer done()
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	return topicBytes(t, w, "calm")
}

// Processes are killed at any moment, within transactions too, and their checkpoints are
// as old as they are; what comes out is what an undisturbed replay writes.
func TestKilledAtAnyMoment(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	all := 0
	for seed := range uint64(20) {
		kafkatest.Run(t, func(w *kafkatest.World) {
			calm := calmly(w.T, w)
			rng := rand.New(rand.NewPCG(seed, 1))
			makeTopics(w.T, w, "killed")
			state, deaths := w.T.TempDir(), 0
			for {
				env := w.Env("reward-scorer")
				line := w.Mortal(env, rng.Uint64())
				cfg, done := virtualReplay(w.T, w, env.Kafka, "killed", state)
				cfg.Every = time.Duration(rng.IntN(60)) * time.Millisecond
				ctx, cancel := context.WithCancel(w.T.Context())
				life := time.Duration(1+rng.IntN(40*(deaths+1))) * time.Millisecond
				kill := time.AfterFunc(life, func() { line.Cut(); cancel() })
				_, err := Run(ctx, cfg)
				kill.Stop()
				killed := ctx.Err() != nil
				line.Cut()
				cancel()
				done()
				if err == nil {
					break
				}
				if deaths++; !killed {
					w.T.Fatalf("seed %d: %v", seed, err)
				}
			}
			all += deaths
			if diff := cmp.Diff(calm, topicBytes(w.T, w, "killed"), bytesAtOnce); diff != "" {
				w.T.Errorf("seed %d, after %d deaths:\n%s", seed, deaths, diff)
			}
		})
	}
	if all < 40 {
		t.Errorf("%d deaths: too few to mean anything", all)
	}
}

// lateNetwork keeps from some moment on what a process writes, and lets it arrive when
// the process is long gone.
type lateNetwork struct {
	dialer func(ctx context.Context, network, host string) (net.Conn, error)

	mu   sync.Mutex
	held bool
	kept []func()
	// bytes counts what is kept.
	bytes int
}

func (l *lateNetwork) dial(ctx context.Context, network, host string) (net.Conn, error) {
	c, err := l.dialer(ctx, network, host)
	return &lateConn{c, l}, err
}

type lateConn struct {
	net.Conn
	line *lateNetwork
}

func (c *lateConn) Write(b []byte) (int, error) {
	// No write within the lock: it may have to wait, which stops the clock of a bubble.
	c.line.mu.Lock()
	defer c.line.mu.Unlock()
	if !c.line.held {
		c.line.mu.Unlock()
		defer c.line.mu.Lock()
		return c.Conn.Write(b)
	}
	b = append([]byte(nil), b...)
	c.line.kept = append(c.line.kept, func() { c.Conn.Write(b) })
	c.line.bytes += len(b)
	return len(b), nil
}

// Close leaves the connection open for what is kept.
func (c *lateConn) Close() error { return nil }

func (l *lateNetwork) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
}

func (l *lateNetwork) arrive() {
	l.mu.Lock()
	kept := l.kept
	l.mu.Unlock()
	for _, send := range kept {
		send()
	}
}

// What a killed process had on its way arrives while the next one is at work: it is
// fenced off.
func TestWhatWasOnItsWayIsFencedOff(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	for _, when := range []int{3, 6, 10} {
		kafkatest.Run(t, func(w *kafkatest.World) {
			calm := calmly(w.T, w)
			makeTopics(w.T, w, "late")
			state, cluster := w.T.TempDir(), w.Cluster()
			late := &lateNetwork{dialer: cluster.Dialer}
			cluster.Dialer = late.dial
			cfg, done := virtualReplay(w.T, w, cluster, "late", state)
			cfg.Every = time.Hour
			commits := 0
			ctx, cancel := context.WithCancel(w.T.Context())
			cfg.at = func(point string) error {
				if point == "committed" {
					if commits++; commits == when {
						time.Sleep(time.Second) // what was written arrives
						late.hold()
					} else if commits == when+2 {
						time.Sleep(time.Second) // what is written is on its way
						cancel()
						return errDead
					}
				}
				return nil
			}
			// What it ends with is errDead, or what the end of ctx made of another part of it.
			_, err := Run(ctx, cfg)
			done()
			if err == nil || commits != when+2 {
				w.T.Fatalf("it died at commit %d, of %v; want %d", commits, err, when+2)
			}
			if late.bytes < 2000 {
				w.T.Errorf("%d bytes were on their way: too few to mean anything", late.bytes)
			}

			cfg, done = virtualReplay(w.T, w, w.Cluster(), "late", state)
			defer done()
			commits = 0
			cfg.at = func(point string) error {
				if point == "committed" {
					if commits++; commits == when+1 {
						late.arrive()
						time.Sleep(time.Second)
					}
				}
				return nil
			}
			if _, err := Run(w.T.Context(), cfg); err != nil {
				w.T.Fatal(err)
			}
			if diff := cmp.Diff(calm, topicBytes(w.T, w, "late"), bytesAtOnce); diff != "" {
				w.T.Errorf("held at commit %d:\n%s", when, diff)
			}
		})
	}
}

// Who takes a replay over ends the one that is at work: there are never two.
func TestTwoAtOnce(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	kafkatest.Run(t, func(w *kafkatest.World) {
		calm := calmly(w.T, w)
		makeTopics(w.T, w, "two")
		state := w.T.TempDir()
		cfg, done := virtualReplay(w.T, w, w.Cluster(), "two", state)
		defer done()
		commits := 0
		cfg.at = func(point string) error {
			if point == "committed" {
				if commits++; commits == 3 {
					// As if the folder were on another machine, where no lock is seen.
					elsewhere := w.T.TempDir()
					copyState(w.T, state, elsewhere)
					other, done := virtualReplay(w.T, w, w.Cluster(), "two", elsewhere)
					defer done()
					if _, err := Run(w.T.Context(), other); err != nil {
						w.T.Errorf("who took over: %v", err)
					}
				}
			}
			return nil
		}
		if _, err := Run(w.T.Context(), cfg); !errors.Is(err, ErrBusy) {
			w.T.Errorf("who was there before: %v, want ErrBusy", err)
		}
		if diff := cmp.Diff(calm, topicBytes(w.T, w, "two"), bytesAtOnce); diff != "" {
			w.T.Error(diff)
		}
	})
}
