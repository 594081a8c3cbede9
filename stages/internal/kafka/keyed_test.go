package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// counter is a machine whose outputs bear running numbers, 1, 2, 3 …, which are also
// its state. Whatever is lost, repeated or torn apart shows in the numbers: it has no
// other protection.
type counter struct {
	partition int32
	n         int
	step      func(c *counter, m Message, now time.Time) error
	restored  int
	// name of the score; "counter" unless set.
	name string
}

func (c *counter) Restore(key string, value []byte) (err error) {
	c.restored++
	c.n, err = strconv.Atoi(string(value))
	return err
}
func (c *counter) Refetch() map[string]int64       { return nil }
func (c *counter) Replay(Message) error            { return errors.New("asked for nothing") }
func (c *counter) Tick(time.Time) (Effects, error) { return Effects{}, nil }
func (c *counter) Deadline() (time.Time, bool)     { return time.Time{}, false }

func (c *counter) Step(m Message, now time.Time) (Effects, error) {
	if c.step != nil {
		if err := c.step(c, m, now); err != nil {
			return Effects{}, err
		}
	}
	t := m.Body.(*sluicev1.Trajectory)
	if m.Partition != c.partition {
		return Effects{}, fmt.Errorf("record of partition %d came to machine %d", m.Partition, c.partition)
	}
	c.n++
	return Effects{
		Outputs: []Output{{Topic: "scored", Body: scored(t, c.partition, c.n, cmp.Or(c.name, "counter"))}},
		State:   []StateChange{{Key: "n", Value: []byte(strconv.Itoa(c.n))}},
	}, nil
}

func scored(t *sluicev1.Trajectory, partition int32, n int, name string) *sluicev1.Scored {
	return &sluicev1.Scored{Trajectory: t, Graded: true, Reward: float64(n),
		Scores: []*sluicev1.Score{{Name: name, Version: fmt.Sprint(partition), Reward: float64(n)}}}
}

// scorer runs counters as the reward-scorer does.
func (w *world) scorer(instance string, step func(*counter, Message, time.Time) error, more ...func(*KeyedConfig)) *process {
	return w.start(instance, func(ctx context.Context, c ClusterConfig) error {
		cfg := KeyedConfig{Cluster: c, Stage: "reward-scorer", BatchRecords: 16}
		for _, f := range more {
			f(&cfg)
		}
		return RunKeyed(ctx, cfg, func(p int32) Machine { return &counter{partition: p, step: step} })
	})
}

func trajectories(from, to int) []Output {
	var out []Output
	for i := from; i < to; i++ {
		out = append(out, Output{Topic: "trajectories", Body: trajectory(i)})
	}
	return out
}

// scoredOnce wants each of n trajectories scored once and the numbers of every
// partition to run from 1 without gap or repetition.
func (w *world) scoredOnce(n int) {
	w.t.Helper()
	if err := w.checkScored(n); err != nil {
		w.t.Error(err)
	}
}

func (w *world) checkScored(n int) error {
	numbers := map[string][]int{}
	copies := map[uint64]int{}
	for _, m := range w.read("scored") {
		s := m.(*sluicev1.Scored)
		p := s.GetScores()[0].GetVersion()
		numbers[p] = append(numbers[p], int(s.GetReward()))
		copies[s.GetTrajectory().GetCopy()]++
	}
	var errs []error
	for p, ns := range numbers {
		for i, got := range ns {
			if got != i+1 {
				errs = append(errs, fmt.Errorf("partition %s: number %d stands in place %d of %v", p, got, i+1, ns))
				break
			}
		}
	}
	for i := range n {
		if c := copies[uint64(i+1)]; c != 1 {
			errs = append(errs, fmt.Errorf("trajectory %d was scored %d times", i, c))
		}
	}
	return errors.Join(errs...)
}

func (w *world) countScored() int { return len(w.read("scored")) }

func TestKeyedScoresEachOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(trajectories(0, 200)...)
		p := w.scorer("a", nil)
		w.eventually("all scored", func() bool { return w.countScored() == 200 })
		w.eventually("readiness", p.isReady)
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		w.scoredOnce(200)
	})
}

// A new owner knows what its predecessor knew before it does anything.
func TestKeyedRestoresBeforeWork(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(trajectories(0, 100)...)
		first := w.scorer("a", nil)
		w.eventually("half", func() bool { return w.countScored() == 100 })
		first.kill()
		known := map[string]bool{}
		for _, m := range w.read("scored") {
			known[m.(*sluicev1.Scored).GetScores()[0].GetVersion()] = true
		}
		w.put(trajectories(100, 200)...)
		var steps atomic.Int32
		w.scorer("b", func(c *counter, m Message, _ time.Time) error {
			if known[fmt.Sprint(m.Partition)] {
				steps.Add(1)
				if c.n == 0 || c.restored == 0 {
					t.Errorf("partition %d works without its state", m.Partition)
				}
			}
			return nil
		})
		w.eventually("the rest", func() bool { return w.countScored() == 200 })
		w.scoredOnce(200)
		if steps.Load() == 0 {
			t.Error("the second process did nothing: the test proves nothing")
		}
	})
}

func TestKeyedRebalance(t *testing.T) {
	inWorld(t, func(w *world) {
		w.scorer("a", nil)
		for i := range 20 {
			w.put(trajectories(i*20, i*20+20)...)
			switch i {
			case 5:
				w.scorer("b", nil)
			case 10:
				w.scorer("c", nil)
			case 15:
				if err := w.procs[0].stop(); err != nil {
					t.Errorf("stop: %v", err)
				}
			}
			time.Sleep(2 * time.Second)
		}
		w.eventually("all scored", func() bool { return w.countScored() == 400 })
		w.scoredOnce(400)
	})
}

// A machine that fails in the middle of a batch takes nothing of the batch with it
// and works on from what was committed.
func TestKeyedAbortInMidTransaction(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(trajectories(0, 100)...)
		var failed atomic.Int32
		w.scorer("a", func(_ *counter, m Message, _ time.Time) error {
			if m.Body.(*sluicev1.Trajectory).GetCopy() == 50 && failed.Add(1) <= 2 {
				return errors.New("a fault that passes")
			}
			return nil
		})
		w.eventually("all scored", func() bool { return w.countScored() == 100 })
		w.scoredOnce(100)
		if n := len(w.letters()); n != 0 || failed.Load() != 3 {
			t.Errorf("%d dead letters after %d attempts, want 0 after 3", n, failed.Load())
		}
	})
}

// An abort restores the machines that it touched and leaves the others as they are.
func TestKeyedAbortRestoresOnlyWhatItTouched(t *testing.T) {
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		made := map[int32]int{}
		failing := int32(-1)
		failed := 0
		w.start("a", func(ctx context.Context, c ClusterConfig) error {
			return RunKeyed(ctx, KeyedConfig{Cluster: c, Stage: "reward-scorer", BatchRecords: 16}, func(p int32) Machine {
				mu.Lock()
				defer mu.Unlock()
				made[p]++
				return &counter{partition: p, step: func(_ *counter, m Message, _ time.Time) error {
					mu.Lock()
					defer mu.Unlock()
					if m.Body.(*sluicev1.Trajectory).GetCopy() == 101 && failed < 2 {
						failing, failed = m.Partition, failed+1
						return errors.New("a fault that passes")
					}
					return nil
				}}
			})
		})
		w.put(trajectories(0, 100)...)
		w.eventually("some", func() bool { return w.countScored() == 100 })
		w.put(trajectories(100, 101)...)
		w.eventually("the one that fails", func() bool { return w.countScored() == 101 })
		w.put(trajectories(101, 200)...)
		w.eventually("the rest", func() bool { return w.countScored() == 200 })
		w.scoredOnce(200)
		mu.Lock()
		defer mu.Unlock()
		for p, n := range made {
			if want := map[bool]int{true: 3, false: 1}[p == failing]; n != want {
				t.Errorf("partition %d had %d machines, want %d (%d failed twice)", p, n, want, failing)
			}
		}
	})
}

func TestKeyedRecordsThatCannotBeHandled(t *testing.T) {
	large := strings.Repeat("x", 9<<20)
	for _, c := range []struct {
		name, errorType string
		poison          bool
		step            func(c *counter, m Message, _ time.Time) error
		steps           int32
		// ends: the trajectory is told to be given up.
		ends bool
	}{
		{name: "undecodable", errorType: "undecodable", poison: true, ends: true},
		{name: "rejected", errorType: "refused", steps: 1, ends: true, step: func(*counter, Message, time.Time) error {
			return Reject(errors.New("no reference"), "refused")
		}},
		{name: "fails for ever", errorType: "step_failed", steps: 3, ends: true, step: func(*counter, Message, time.Time) error {
			return errors.New("a fault that stays")
		}},
		{name: "panic", errorType: "panic", steps: 1, ends: true, step: func(c *counter, _ Message, _ time.Time) error {
			c.n += 100
			panic("out of range")
		}},
		{name: "output too large", errorType: "too_large", steps: 1, ends: true, step: func(c *counter, _ Message, _ time.Time) error {
			c.name = large
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put(trajectories(1, 50)...)
				if c.poison {
					w.putRaw(poison(t, "trajectories", trajectory(0)))
				} else {
					w.put(trajectories(0, 1)...)
				}
				w.put(trajectories(50, 60)...)
				var steps atomic.Int32
				p := w.scorer("a", func(cn *counter, m Message, now time.Time) error {
					tr := m.Body.(*sluicev1.Trajectory)
					if tr.GetCopy() != 1 || tr.GetEndReason() == sluicev1.EndReason_END_REASON_INFRA_ERROR || c.step == nil {
						return nil
					}
					steps.Add(1)
					return c.step(cn, m, now)
				})
				// 59 good ones and the given-up form of the bad one.
				w.eventually("all scored", func() bool { return w.countScored() == 60 })
				time.Sleep(time.Minute)
				if err := p.stop(); err != nil {
					t.Errorf("stop: %v", err)
				}
				w.scoredOnce(60)
				ls := w.letters()
				if len(ls) != 1 || ls[0].GetErrorType() != c.errorType || ls[0].GetSourceTopic() != "trajectories" {
					t.Errorf("dead letters: %v", ls)
				}
				if steps.Load() != c.steps {
					t.Errorf("it was taken %d times, want %d", steps.Load(), c.steps)
				}
			})
		})
	}
}

// Before a record of a newer schema a stage pauses: nothing is given up, and an upgraded
// one goes on.
func TestARecordOfANewerSchemaPausesTheStage(t *testing.T) {
	newer := func(w *world, topic string, m proto.Message) {
		rec, err := codec.Rebuild(m, codec.SchemaVersion+1)
		if err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: topic, Key: rec.Key, Value: rec.Value}
		for _, h := range rec.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		w.putRaw(r)
	}
	t.Run("keyed", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.put(trajectories(0, 10)...)
			p := w.scorer("a", nil)
			w.eventually("all scored", func() bool { return w.countScored() == 10 })
			newer(w, "trajectories", trajectory(99))
			w.eventually("not ready", func() bool { return !p.isReady() })
			time.Sleep(5 * time.Minute)
			if ls := w.letters(); len(ls) != 0 || p.isReady() {
				t.Errorf("dead letters %v, ready %t; want none, and not ready", ls, p.isReady())
			}
			if err := p.stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	})
	t.Run("classic", func(t *testing.T) {
		inWorld(t, func(w *world) {
			p := w.sampler("a", 4, sampling(time.Second))
			newer(w, "prompts", prompt(1, 99))
			w.put(prompts(3)...)
			time.Sleep(5 * time.Minute)
			if ls := w.letters(); len(ls) != 0 {
				t.Errorf("dead letters %v, want none", ls)
			}
			if lag := w.lag("sampler", "prompts"); lag == 0 {
				t.Error("the offset behind the record was committed")
			}
			if err := p.stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	})
}

// What was given up already and still cannot be handled is not given up for ever.
func TestKeyedDoesNotGiveUpTwice(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(trajectories(0, 1)...)
		w.scorer("a", func(*counter, Message, time.Time) error { return Reject(errors.New("never"), "refused") })
		w.eventually("two dead letters", func() bool { return len(w.letters()) == 2 })
		time.Sleep(time.Minute)
		if n, m := len(w.letters()), len(w.trajectories()); n != 2 || m != 2 {
			t.Errorf("%d dead letters and %d trajectories, want 2 and 2", n, m)
		}
	})
}

func TestKeyedBrokerAwayForAMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(trajectories(0, 50)...)
		p := w.scorer("a", nil)
		w.eventually("some", func() bool { return w.countScored() == 50 })
		w.broker.Close()
		time.Sleep(time.Minute)
		if p.isReady() {
			t.Error("ready though the broker has been away for a minute")
		}
		w.startBroker()
		w.put(trajectories(50, 100)...)
		w.eventually("the rest", func() bool { return w.countScored() == 100 })
		w.eventually("readiness", p.isReady)
		w.scoredOnce(100)
	})
}

// Two processes with one instance: the older one ends and says why.
func TestKeyedFenced(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(trajectories(0, 20)...)
		first := w.scorer("same", nil)
		w.eventually("some", func() bool { return w.countScored() == 20 })
		w.scorer("same", nil)
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			for i := 20; i < 200; i += 10 {
				w.put(trajectories(i, i+10)...)
				time.Sleep(time.Second)
			}
		}()
		if err := first.wait(); !errors.Is(err, ErrFenced) {
			t.Errorf("first process ended with %v, want ErrFenced", err)
		}
		<-stop
		w.eventually("all", func() bool { return w.countScored() == 200 })
		w.scoredOnce(200)
	})
}

func TestKeyedPrepare(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(trajectories(0, 40)...)
		var mu sync.Mutex
		prepared := map[uint64]bool{}
		calls := 0
		w.scorer("a", func(_ *counter, m Message, _ time.Time) error {
			mu.Lock()
			defer mu.Unlock()
			if !prepared[m.Body.(*sluicev1.Trajectory).GetCopy()] {
				t.Errorf("step before its record was prepared")
			}
			return nil
		}, func(c *KeyedConfig) {
			c.Prepare = func(_ context.Context, ms []Message) error {
				mu.Lock()
				defer mu.Unlock()
				if calls++; calls < 4 {
					return errors.New("verifier is away")
				}
				for _, m := range ms {
					prepared[m.Body.(*sluicev1.Trajectory).GetCopy()] = true
				}
				return nil
			}
		})
		w.eventually("all scored", func() bool { return w.countScored() == 40 })
		w.scoredOnce(40)
	})
}

func TestKeyedMisconfigured(t *testing.T) {
	inWorld(t, func(w *world) {
		err := RunKeyed(w.t.Context(), KeyedConfig{Cluster: w.cluster(), Stage: "sampler"}, nil)
		if !errors.Is(err, ErrConfig) {
			t.Errorf("a stage without changelog: %v, want ErrConfig", err)
		}
		err = RunKeyed(w.t.Context(), KeyedConfig{Cluster: ClusterConfig{}, Stage: "reward-scorer"}, nil)
		if !errors.Is(err, ErrConfig) {
			t.Errorf("no brokers: %v, want ErrConfig", err)
		}
	})
}
