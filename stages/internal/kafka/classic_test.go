package kafka

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// sampler runs h in a consumer group as the sampler does.
func (w *world) sampler(instance string, concurrency int, h HandlerFunc, more ...func(*ClassicConfig)) *process {
	return w.start(instance, func(ctx context.Context, c ClusterConfig) error {
		cfg := ClassicConfig{Cluster: c, Stage: "sampler", Concurrency: concurrency, Priority: []string{"code-results"}}
		for _, f := range more {
			f(&cfg)
		}
		return RunClassic(ctx, cfg, h)
	})
}

// ended is what the tests' sampler makes of a prompt: its first trajectory.
func ended(m Message) []Output {
	p := m.Body.(*sluicev1.Prompt)
	return []Output{{Topic: "trajectories", Body: &sluicev1.Trajectory{
		Prompt: p, Copy: uint64(p.GetGroup().GetSlot()) + 1, EndReason: sluicev1.EndReason_END_REASON_ANSWER,
	}}}
}

func prompts(n int) []Output {
	out := make([]Output, n)
	for i := range out {
		out[i] = Output{Topic: "prompts", Body: prompt(1, uint32(i))}
	}
	return out
}

func sampling(d time.Duration) HandlerFunc {
	return func(ctx context.Context, m Message) ([]Output, error) {
		select {
		case <-time.After(d):
			return ended(m), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// slots counts the trajectories of each slot.
func (w *world) slots() map[uint32]int {
	counts := map[uint32]int{}
	for _, t := range w.trajectories() {
		counts[t.GetPrompt().GetGroup().GetSlot()]++
	}
	return counts
}

// once wants one trajectory of each of n slots.
func (w *world) once(n int) {
	w.t.Helper()
	got := w.slots()
	for i := range n {
		if got[uint32(i)] != 1 {
			w.t.Errorf("slot %d has %d trajectories, want 1", i, got[uint32(i)])
		}
	}
}

// lag is what a group has left to do, in records.
func (w *world) lag(group string, topics ...string) (lag int64) {
	w.t.Helper()
	c := w.cluster()
	c.Log = nil
	cl, err := NewClient(c, "test", "lag")
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	offsets, err := kadm.NewClient(cl).FetchOffsets(w.t.Context(), testNamespace+group)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := c.logBounds(w.t.Context(), cl, topics...)
	if err != nil {
		w.t.Fatal(err)
	}
	for topic, ps := range all {
		for p, b := range ps {
			o, _ := offsets.Lookup(testNamespace+topic, p)
			lag += b.end - max(o.At, 0)
		}
	}
	return lag
}

func TestClassicWorksInsideAPartitionAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		// One question, so one partition.
		for i := range 30 {
			p := prompt(1, uint32(i))
			p.Problem.QuestionId = "q"
			w.put(Output{Topic: "prompts", Body: p})
		}
		start := time.Now()
		p := w.sampler("a", 32, sampling(10*time.Second))
		w.eventually("all trajectories", func() bool { return len(w.slots()) == 30 })
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("30 records of 10 s took %v with 32 at once", took)
		}
		if !p.isReady() {
			t.Errorf("works but is not ready: %v", p.ready)
		}
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		w.once(30)
		if n := w.lag("sampler", "prompts"); n != 0 {
			t.Errorf("%d records are not committed after a clean stop", n)
		}
	})
}

// Finished records behind an unfinished one are not committed.
func TestClassicCommitsUpToTheOldestUnfinished(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 10 {
			p := prompt(1, uint32(i))
			p.Problem.QuestionId = "q"
			w.put(Output{Topic: "prompts", Body: p})
		}
		first := w.sampler("a", 10, func(ctx context.Context, m Message) ([]Output, error) {
			if m.Body.(*sluicev1.Prompt).GetGroup().GetSlot() == 4 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return ended(m), nil
		}, func(c *ClassicConfig) { c.Drain = time.Nanosecond })
		w.eventually("nine trajectories", func() bool { return len(w.slots()) == 9 })
		w.eventually("a commit", func() bool { return w.lag("sampler", "prompts") == 6 })
		first.kill()
		w.sampler("b", 10, sampling(time.Second))
		w.eventually("the tenth", func() bool { return len(w.slots()) == 10 })
		got := w.slots()
		for i := range uint32(4) {
			if got[i] != 1 {
				t.Errorf("slot %d was done %d times though it had been committed", i, got[i])
			}
		}
	})
}

// Trajectories under way come before new ones.
func TestClassicServesByPriority(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(prompts(40)...)
		var mu sync.Mutex
		var order []string
		w.sampler("a", 2, func(ctx context.Context, m Message) ([]Output, error) {
			mu.Lock()
			order = append(order, m.Topic)
			n := len(order)
			mu.Unlock()
			if n == 2 {
				for i := range 10 {
					w.put(Output{Topic: "code-results", Body: result(Message{Body: call(i)})[0].Body})
				}
			}
			time.Sleep(5 * time.Second)
			return nil, nil
		})
		w.eventually("everything", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == 50 })
		last := 0
		for i, topic := range order {
			if topic == "code-results" {
				last = i
			}
		}
		// The two under way at first, and two that may have been taken up before the
		// results were polled.
		if last > 14 {
			t.Errorf("the last of 10 results was taken up %d. of 50: %v", last+1, order)
		}
	})
}

// Far more than the ranks and one fetch hold, each record soon done: no fetch that
// was held back may have to wait for one that long-polls.
func TestClassicDoesNotStallOnFullLanes(t *testing.T) {
	inWorld(t, func(w *world) {
		const n = 800
		results := make([]Output, n)
		for i := range results {
			r := result(Message{Body: call(i)})[0].Body.(*sluicev1.CodeResult)
			r.Execution.Stdout = strings.Repeat("x", 60_000)
			results[i] = Output{Topic: "code-results", Body: r}
		}
		w.put(results...)
		var done atomic.Int64
		var last atomic.Pointer[time.Time]
		start := time.Now()
		w.sampler("a", 16, func(context.Context, Message) ([]Output, error) {
			time.Sleep(time.Millisecond)
			now := time.Now()
			last.Store(&now)
			done.Add(1)
			return nil, nil
		})
		w.eventually("everything", func() bool { return done.Load() == n })
		if took := last.Load().Sub(start); took > time.Second {
			t.Errorf("%d records of 1 ms, 16 at once, took %s, joining the group included", n, took)
		}
	})
}

func TestClassicRebalanceHandsOverWithoutRepeating(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(prompts(300)...)
		first := w.sampler("a", 8, sampling(5*time.Second))
		w.eventually("some", func() bool { return len(w.slots()) > 16 })
		second := w.sampler("b", 8, sampling(5*time.Second))
		w.eventually("half", func() bool { return len(w.slots()) > 150 })
		if err := first.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		w.eventually("all", func() bool { return len(w.slots()) == 300 })
		if err := second.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		w.once(300)
	})
}

func TestClassicRevokeEndsWorkAtItsDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(prompts(64)...)
		var begun, cancelled atomic.Int32
		hang := func(ctx context.Context, m Message) ([]Output, error) {
			begun.Add(1)
			<-ctx.Done()
			cancelled.Add(1)
			return nil, ctx.Err()
		}
		w.sampler("a", 64, hang)
		w.eventually("all in flight", func() bool { return begun.Load() == 64 })
		w.sampler("b", 64, sampling(time.Second))
		w.eventually("the other's share", func() bool { return len(w.slots()) > 0 })
		time.Sleep(time.Minute)
		if n := int(cancelled.Load()); n != len(w.slots()) {
			t.Errorf("%d were cancelled, the other did %d", n, len(w.slots()))
		}
	})
}

func TestClassicBrokerAwayForAMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(prompts(60)...)
		p := w.sampler("a", 4, sampling(3*time.Second))
		w.eventually("some", func() bool { return len(w.slots()) >= 8 })
		w.broker.Close()
		time.Sleep(time.Minute)
		if p.isReady() {
			t.Error("ready though the broker has been away for a minute")
		}
		w.startBroker()
		w.eventually("all", func() bool { return len(w.slots()) == 60 })
		w.eventually("readiness", p.isReady)
		if n := len(w.letters()); n != 0 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// A prompt stands for a whole group: all of its members end.
func TestClassicPoisonedPromptEndsItsGroup(t *testing.T) {
	inWorld(t, func(w *world) {
		w.putRaw(poison(t, "prompts", prompt(3, 5)))
		w.put(prompts(1)...)
		w.sampler("a", 4, sampling(time.Second))
		w.eventually("both", func() bool { return len(w.letters()) == 1 && len(w.trajectories()) == 9 })
		members := map[uint32]bool{}
		for _, tr := range w.trajectories() {
			if tr.GetPrompt().GetGroup().GetStep() == 3 {
				members[tr.GetSampleIndex()] = true
				if tr.GetEndReason() != sluicev1.EndReason_END_REASON_INFRA_ERROR {
					t.Errorf("member %d ended as %v", tr.GetSampleIndex(), tr.GetEndReason())
				}
			}
		}
		if len(members) != 8 {
			t.Errorf("%d members ended, want 8", len(members))
		}
	})
}

// What a record without our headers stood for cannot be known; it is kept and does
// not hold up the others.
func TestClassicForeignRecord(t *testing.T) {
	inWorld(t, func(w *world) {
		foreign := []byte(`{"json": "\u0000"}`)
		w.putRaw(&kgo.Record{Topic: "prompts", Value: foreign})
		w.put(prompts(3)...)
		w.sampler("a", 4, sampling(time.Second))
		w.eventually("the others", func() bool { return len(w.slots()) == 3 && len(w.letters()) == 1 })
		if l := w.letters()[0]; l.GetErrorType() != "undecodable" || !bytes.Equal(l.GetValue(), foreign) || l.GetOrigin() != nil {
			t.Errorf("dead letter: %v", l)
		}
	})
}

func TestClassicInfrastructureErrorsHoldTheRecord(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(prompts(10)...)
		back := time.Now().Add(time.Minute)
		w.sampler("a", 4, func(_ context.Context, m Message) ([]Output, error) {
			if time.Now().Before(back) {
				return nil, errors.New("inference server is away")
			}
			return ended(m), nil
		})
		w.eventually("all", func() bool { return len(w.slots()) == 10 })
		w.once(10)
	})
}

func TestClassicMisconfigured(t *testing.T) {
	inWorld(t, func(w *world) {
		err := RunClassic(w.t.Context(), ClassicConfig{Cluster: w.cluster(), Stage: "sampler", Priority: []string{"scored"}}, nil)
		if !errors.Is(err, ErrConfig) {
			t.Errorf("priority for a topic it does not read: %v, want ErrConfig", err)
		}
		w.put(prompts(1)...)
		p := w.sampler("a", 1, func(context.Context, Message) ([]Output, error) {
			return []Output{{Topic: "nowhere", Body: prompt(1, 0)}}, nil
		})
		if err := p.wait(); !errors.Is(err, ErrConfig) {
			t.Errorf("output to a topic that is not in the topology: %v, want ErrConfig", err)
		}
	})
}

// The offset to commit is always that after the longest run of finished records.
func TestTrackerAgainstTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var offsets []int64
		at := rapid.Int64Range(0, 100).Draw(t, "first offset")
		for range rapid.IntRange(1, 30).Draw(t, "records") {
			offsets = append(offsets, at)
			at += rapid.Int64Range(1, 4).Draw(t, "gap") // control records leave gaps
		}
		order := rapid.Permutation(offsets).Draw(t, "order of finishing")
		var tr tracker
		marks := map[int64]*tracked{}
		for _, o := range offsets {
			marks[o] = tr.add(&kgo.Record{Offset: o})
		}
		done := map[int64]bool{}
		committed := int64(-1)
		for _, o := range order {
			done[o] = true
			commit, ok := tr.finish(marks[o])
			if ok {
				committed = commit.Offset
			}
			want := int64(-1)
			for _, o := range offsets {
				if !done[o] {
					break
				}
				want = o + 1
			}
			if committed != want {
				t.Fatalf("after finishing %d the commit is %d, want %d", o, committed, want)
			}
		}
	})
}

func TestLanesServeEarlierLanesFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 3
		l := newPriorityQueue[int](n)
		var naive [n][]int
		for i := range rapid.IntRange(1, 60).Draw(t, "operations") {
			if rank := rapid.IntRange(-1, n-1).Draw(t, "rank, or -1 to pop"); rank >= 0 {
				l.push(rank, i)
				naive[rank] = append(naive[rank], i)
				continue
			}
			got, _, ok := l.pop()
			first := slices.IndexFunc(naive[:], func(q []int) bool { return len(q) > 0 })
			if ok != (first >= 0) {
				t.Fatalf("pop: %t, want %t", ok, first >= 0)
			}
			if ok {
				if got != naive[first][0] {
					t.Fatalf("pop gave %d, want %d of rank %d", got, naive[first][0], first)
				}
				naive[first] = naive[first][1:]
			}
		}
	})
}
