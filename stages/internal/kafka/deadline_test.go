package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// alarm is a machine that keeps records in memory only, with a deadline.
type alarm struct {
	log      *alarmLog
	from     int64
	have     bool
	members  []int64
	deadline time.Time
	ticks    int
}

// alarmLog is what the alarms of a test report.
type alarmLog struct {
	mu sync.Mutex
	// replayed and broadcasts are per life of a machine.
	replayed   [][]int64
	broadcasts [][]uint32
	fired      []time.Time
	started    []int
}

func (a *alarm) Restore(key string, value []byte) error {
	n, err := strconv.ParseInt(string(value), 10, 64)
	a.from, a.have = n, true
	return err
}

func (a *alarm) Refetch() map[string]int64 {
	if !a.have {
		return nil
	}
	return map[string]int64{"grouped": a.from}
}

func (a *alarm) Replay(m Message) error { a.members = append(a.members, m.Offset); return nil }

func (a *alarm) Step(m Message, now time.Time) (e Effects, err error) {
	a.members = append(a.members, m.Offset)
	if !a.have {
		a.from, a.have = m.Offset, true
		e.State = []StateChange{{Key: "from", Value: []byte(fmt.Sprint(a.from))}}
	}
	if a.ticks > 0 && a.deadline.IsZero() {
		a.deadline = now.Add(time.Minute)
	}
	return e, nil
}

func (a *alarm) Tick(now time.Time) (Effects, error) {
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	a.ticks++
	switch {
	case a.ticks == 1:
		a.log.started = append(a.log.started, len(a.members))
		a.log.replayed = append(a.log.replayed, slices.Clone(a.members))
		if len(a.members) > 0 {
			a.deadline = now.Add(time.Minute)
		}
	case !a.deadline.IsZero() && !now.Before(a.deadline):
		a.deadline = time.Time{}
		a.log.fired = append(a.log.fired, now)
		return Effects{Outputs: []Output{{Topic: "ppo-batches", Body: &sluicev1.StepBatch{
			RunId: "run", Step: uint64(len(a.members)), ClipLow: 0.8, ClipHigh: 1.28,
			TokenReduction: sluicev1.TokenReduction_TOKEN_REDUCTION_SUM,
		}}}}, nil
	}
	return Effects{}, nil
}

func (a *alarm) Deadline() (time.Time, bool) { return a.deadline, !a.deadline.IsZero() }

func (a *alarm) Broadcast(m Message, _ time.Time) (Effects, error) {
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	a.log.broadcasts = append(a.log.broadcasts, []uint32{m.Body.(*sluicev1.PolicyUpdate).GetPolicyVersion()})
	return Effects{}, nil
}

func (w *world) batcher(instance string, log *alarmLog) *process {
	return w.start(instance, func(ctx context.Context, c ClusterConfig) error {
		return RunKeyed(ctx, KeyedConfig{Cluster: c, Stage: "ppo-batcher"}, func(int32) Machine { return &alarm{log: log} })
	})
}

func member(n int) Output {
	return Output{Topic: "grouped", Body: &sluicev1.GroupMember{Scored: scored(trajectory(n), 0, n, "counter")}}
}

func update(version uint32) Output {
	return Output{Topic: "policy-updates", Body: &sluicev1.PolicyUpdate{RunId: "run", Step: uint64(version), PolicyVersion: version}}
}

// A deadline runs in the time in which somebody works: it starts anew after a
// restart, once the machine has caught up.
func TestKeyedDeadlineRestartsAfterARestart(t *testing.T) {
	inWorld(t, func(w *world) {
		log := &alarmLog{}
		first := w.batcher("a", log)
		time.Sleep(10 * time.Second)
		w.put(member(0))
		time.Sleep(50 * time.Second)
		first.kill()
		time.Sleep(5 * time.Minute) // nobody works
		w.put(member(1))
		began := time.Now()
		w.batcher("b", log)
		w.eventually("the alarm", func() bool { return len(w.read("ppo-batches")) == 1 })
		log.mu.Lock()
		defer log.mu.Unlock()
		if len(log.fired) != 1 || log.fired[0].Before(began.Add(time.Minute)) {
			t.Errorf("fired at %v, want once, a minute after %v", log.fired, began)
		}
		if got := w.read("ppo-batches")[0].(*sluicev1.StepBatch).GetStep(); got != 2 {
			t.Errorf("it knew %d members, want 2: one replayed, one new", got)
		}
	})
}

// The first tick comes when all that waited in the inputs has been handled.
func TestKeyedFirstTickComesAfterCatchingUp(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 30 {
			w.put(member(i))
		}
		log := &alarmLog{}
		w.start("a", func(ctx context.Context, c ClusterConfig) error {
			return RunKeyed(ctx, KeyedConfig{Cluster: c, Stage: "ppo-batcher", BatchRecords: 4}, func(int32) Machine { return &alarm{log: log} })
		})
		w.eventually("first ticks", func() bool { log.mu.Lock(); defer log.mu.Unlock(); return len(log.started) == 4 })
		if got := slices.Max(log.started); got != 30 {
			t.Errorf("first tick after %d of 30 records", got)
		}
	})
}

// Records that were committed but live in memory alone are read again, and only
// those.
func TestKeyedReplaysWhatTheMachineWants(t *testing.T) {
	inWorld(t, func(w *world) {
		log := &alarmLog{}
		first := w.batcher("a", log)
		for i := range 10 {
			w.put(member(i))
			time.Sleep(time.Second)
		}
		first.stop()
		second := &alarmLog{}
		w.batcher("b", second)
		w.eventually("first ticks", func() bool { second.mu.Lock(); defer second.mu.Unlock(); return len(second.replayed) == 4 })
		var got []int64
		for _, r := range second.replayed {
			got = append(got, r...)
		}
		if len(got) != 10 {
			t.Errorf("replayed %d records, want 10: %v", len(got), got)
		}
	})
}

func TestKeyedBroadcast(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(update(1))
		log := &alarmLog{}
		first := w.batcher("a", log)
		count := func(v uint32) int {
			log.mu.Lock()
			defer log.mu.Unlock()
			n := 0
			for _, x := range log.broadcasts {
				if x[0] == v {
					n++
				}
			}
			return n
		}
		w.eventually("what was logged before", func() bool { return count(1) == 4 })
		start := time.Now()
		w.put(update(2))
		w.eventually("what is logged now", func() bool { return count(2) == 4 })
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("broadcasts took %v to reach idle machines", took)
		}
		first.stop()
		w.batcher("b", log)
		w.eventually("the latest, again", func() bool { return count(2) == 8 })
	})
}

// What a read-committed reader sees of the changelog is the state at the offsets.
func TestKeyedChangelogIsWhereItsMachineIs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(trajectories(0, 100)...)
		p := w.scorer("a", nil)
		w.eventually("all scored", func() bool { return w.countScored() == 100 })
		p.stop()
		seen := map[int32]int{}
		var mu sync.Mutex
		w.scorer("b", func(c *counter, m Message, _ time.Time) error {
			mu.Lock()
			defer mu.Unlock()
			if _, ok := seen[m.Partition]; !ok {
				seen[m.Partition] = c.n
			}
			return nil
		})
		w.put(trajectories(100, 200)...)
		w.eventually("the rest", func() bool { return w.countScored() == 200 })
		sum := 0
		for n := range maps.Values(seen) {
			sum += n
		}
		if sum == 0 || sum > 100 {
			t.Errorf("restored numbers add up to %d: %v", sum, seen)
		}
		w.scoredOnce(200)
	})
}
