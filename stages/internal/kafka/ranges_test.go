package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// store is a sink that remembers ranges by name, as a table with insert tokens does: a
// range it has is not stored again, and one cut otherwise under a known name would
// lose rows.
type store struct {
	mu     sync.Mutex
	ranges map[string]Range
	writes int
	away   bool
	t      testing.TB
}

func (s *store) Write(_ context.Context, r Range) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errors.New("the store is away")
	}
	s.writes++
	name := r.TopicID + r.String()
	if before, ok := s.ranges[name]; ok {
		if len(before.Messages) != len(r.Messages) {
			s.t.Errorf("%s was formed again with %d messages, had %d", r, len(r.Messages), len(before.Messages))
		}
		return nil
	}
	s.ranges[name] = r
	return nil
}

func (s *store) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// offsets are those of the topic's stored messages, by partition, with repetitions.
func (s *store) offsets(topic string) map[int32][]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[int32][]int64{}
	for _, r := range s.ranges {
		for _, m := range r.Messages {
			if m.Topic == topic {
				all[m.Partition] = append(all[m.Partition], m.Offset)
			}
		}
	}
	for _, o := range all {
		slices.Sort(o)
	}
	return all
}

func (s *store) count(topic string) (n int) {
	for _, o := range s.offsets(topic) {
		n += len(o)
	}
	return n
}

func report(n int) Output {
	return Output{Topic: "trainer-reports", Body: &sluicev1.TrainerReport{RunId: "run", Step: uint64(n + 1)}}
}

func batch(n int) Output {
	return Output{Topic: "ppo-batches", Body: &sluicev1.StepBatch{RunId: fmt.Sprintf("run%d", n%7), Step: uint64(n + 1), ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: 1}}
}

func some(n int, f func(int) Output) (out []Output) {
	for i := range n {
		out = append(out, f(i))
	}
	return out
}

func ranged(s *store, change func(*RangesConfig)) func(context.Context, ClusterConfig) error {
	return func(ctx context.Context, c ClusterConfig) error {
		cfg := RangesConfig{Cluster: c, Stage: "metrics-writer", MaxRecords: 10}
		if change != nil {
			change(&cfg)
		}
		return RunRanges(ctx, cfg, s)
	}
}

func newStore(t testing.TB) *store { return &store{t: t, ranges: map[string]Range{}} }

func checkExact(t *testing.T, w *world, s *store, topic string) {
	t.Helper()
	w.eventually("everything of "+topic+" is stored", func() bool { return s.count(topic) >= len(w.read(topic)) })
	time.Sleep(10 * time.Second)
	for p, offsets := range s.offsets(topic) {
		want := slices.Compact(slices.Clone(offsets))
		if diff := cmp.Diff(want, offsets); diff != "" {
			t.Errorf("%s/%d: stored twice: %s", topic, p, diff)
		}
	}
	if got, want := s.count(topic), len(w.read(topic)); got != want {
		t.Errorf("%s: %d stored, %d written", topic, got, want)
	}
}

func TestRangesAreStoredOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		s := newStore(t)
		w.start("a", ranged(s, nil))
		w.put(some(57, report)...)
		w.put(some(80, batch)...)
		checkExact(t, w, s, "trainer-reports")
		checkExact(t, w, s, "ppo-batches")
		if s.writes != len(s.ranges) {
			t.Errorf("%d writes for %d ranges: nothing failed, so each should be written once", s.writes, len(s.ranges))
		}
	})
}

// At every step the process vanishes, comes back and must leave the store as if
// nothing had happened.
func TestAKillBetweenAnyTwoStepsDoublesAndLosesNothing(t *testing.T) {
	for _, step := range []RangeStep{RangeFormed, RangePending, RangeLetters, RangeWritten, RangeCommitted} {
		t.Run(string(step), func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := newStore(t)
				w.put(some(23, report)...)
				var a *process
				killed := make(chan struct{})
				var once sync.Once
				var mu sync.Mutex
				n := 0
				mu.Lock()
				a = w.start("a", ranged(s, func(c *RangesConfig) {
					c.At = func(at RangeStep, r Range) {
						mu.Lock()
						n++
						hit := at == step && r.From > 0
						mu.Unlock()
						if hit {
							once.Do(func() { a.kill(); close(killed) })
						}
					}
				}))
				mu.Unlock()
				<-killed
				// More comes while it is away: a range formed anew would take it in.
				w.put(some(40, report)...)
				w.start("b", ranged(s, nil))
				checkExact(t, w, s, "trainer-reports")
			})
		})
	}
}

func TestAPendingRangeIsFinishedByAnotherConfiguration(t *testing.T) {
	inWorld(t, func(w *world) {
		s := newStore(t)
		s.set(true)
		w.put(some(25, report)...)
		a := w.start("a", ranged(s, nil))
		w.eventually("a range waits for the store", func() bool { return a.isReady() })
		time.Sleep(20 * time.Second)
		a.kill()
		s.set(false)
		w.start("b", ranged(s, func(c *RangesConfig) { c.MaxRecords = 1000 }))
		checkExact(t, w, s, "trainer-reports")
		if _, ok := s.ranges[rangeNamed(s, "/0/0-10")]; !ok {
			t.Errorf("ranges %v: want the pending 0-10 first", slices.Sorted(maps.Keys(s.ranges)))
		}
	})
}

func rangeNamed(s *store, end string) string {
	for name := range s.ranges {
		if strings.HasSuffix(name, end) {
			return name
		}
	}
	return ""
}

func TestAnOutageOfTheStoreHoldsUpAndLosesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		s := newStore(t)
		w.start("a", ranged(s, nil))
		w.put(some(30, report)...)
		w.eventually("some are stored", func() bool { return s.count("trainer-reports") > 0 })
		s.set(true)
		// Far more than is kept in memory.
		w.put(some(300, report)...)
		time.Sleep(time.Minute)
		s.set(false)
		checkExact(t, w, s, "trainer-reports")
	})
}

func TestRangesSurviveARebalanceAndABrokerRestart(t *testing.T) {
	inWorld(t, func(w *world) {
		s := newStore(t)
		a := w.start("a", ranged(s, nil))
		w.put(some(200, batch)...)
		w.start("b", ranged(s, nil))
		time.Sleep(2 * time.Second)
		w.put(some(200, batch)...)
		w.restartBroker(20 * time.Second)
		w.put(some(100, batch)...)
		if err := a.stop(); err != nil {
			t.Errorf("stopped with %v", err)
		}
		w.put(some(50, batch)...)
		checkExact(t, w, s, "ppo-batches")
	})
}

func TestWhatDoesNotDecodeIsADeadLetterAndNoTrajectory(t *testing.T) {
	inWorld(t, func(w *world) {
		s := newStore(t)
		scored := &sluicev1.Scored{Trajectory: trajectory(0), UngradedReason: "test"}
		w.put(Output{Topic: "scored", Body: scored})
		w.putRaw(poison(t, "scored", scored))
		w.putRaw(&kgo.Record{Topic: "dead-letters", Value: []byte("\xff")})
		w.start("a", ranged(s, nil))
		w.eventually("the good one is stored", func() bool { return s.count("scored") == 1 })
		letters := func() (out []*sluicev1.DeadLetter) {
			all := w.cluster()
			all.Log = nil
			cl, err := NewClient(all, "test", "letters", kgo.ConsumeTopics(testNamespace+"dead-letters"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			for ctx.Err() == nil {
				cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
					if m, err := Decode(all, r); err == nil {
						out = append(out, m.Body.(*sluicev1.DeadLetter))
					}
				})
			}
			return out
		}
		w.eventually("both bad ones are dead letters", func() bool { return len(letters()) == 2 })
		w.eventually("and stored", func() bool { return s.count("dead-letters") == 2 })
		for _, l := range letters() {
			if l.GetStage() != "metrics-writer" || l.GetErrorType() != "undecodable" {
				t.Errorf("dead letter %v", l)
			}
		}
		if ts := w.trajectories(); len(ts) != 0 {
			t.Errorf("%d trajectories were ended: they are not this stage's", len(ts))
		}
	})
}

func TestPendingMetadata(t *testing.T) {
	r := pendingRange{from: 5, to: 17, records: 11}
	got, err := parsePending(5, r.metadata())
	if err != nil || *got != r {
		t.Errorf("round trip: %v, %v", got, err)
	}
	for metadata, ok := range map[string]bool{"": true, "sluice-range/2 to=9": false, "sluice-range/1 to=x": false, "sluice-range/1 to=5 records=1": false, "hello": true} {
		if _, err := parsePending(5, metadata); (err == nil) != ok {
			t.Errorf("%q: %v, want ok = %t", metadata, err, ok)
		}
	}
}
