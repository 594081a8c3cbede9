package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/status"
	"github.com/sluice-rl/sluice/topology"
)

func TestBroadcastReadsAllAndFollows(t *testing.T) {
	inWorld(t, func(w *world) {
		for v := range uint32(5) {
			w.put(update(v + 1))
		}
		w.putRaw(poison(t, "policy-updates", update(9).Body))
		var mu sync.Mutex
		var got []uint32
		caughtUp := -1
		p := w.start("a", func(ctx context.Context, c ClusterConfig) error {
			return RunBroadcast(ctx, c, []string{"policy-updates"}, func() {
				mu.Lock()
				defer mu.Unlock()
				if caughtUp >= 0 {
					t.Error("caught up twice")
				}
				caughtUp = len(got)
			}, func(m Message) error {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, m.Body.(*sluicev1.PolicyUpdate).GetPolicyVersion())
				return nil
			})
		})
		w.eventually("catching up", func() bool { mu.Lock(); defer mu.Unlock(); return caughtUp >= 0 })
		w.put(update(6))
		w.eventually("the sixth", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == 6 })
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if diff := cmp.Diff([]uint32{1, 2, 3, 4, 5, 6}, got); diff != "" {
			t.Error(diff)
		}
		if caughtUp != 5 {
			t.Errorf("caught up after %d, want 5: what cannot be decoded does not count", caughtUp)
		}
	})
}

// A trainer in another language writes the message and its key, no headers. What it
// writes and nobody can read is a dead letter, and stands in the status until it answers
// again.
func TestABroadcastRecordOfAnotherWriter(t *testing.T) {
	inWorld(t, func(w *world) {
		board := status.NewBoard(nil)
		var versions atomic.Uint32
		p := w.start("a", func(ctx context.Context, c ClusterConfig) error {
			c.Status = board
			letters, err := NewProducer(ctx, c, "prompt-feeder")
			if err != nil {
				return err
			}
			defer letters.Close()
			return RunBroadcast(ctx, c, []string{"policy-updates"}, nil, func(m Message) error {
				versions.Store(m.Body.(*sluicev1.PolicyUpdate).GetPolicyVersion())
				return nil
			}, letters)
		})
		notes := func() string {
			var s []string
			for _, n := range board.Status().GetNotes() {
				if !n.GetNotReady() {
					s = append(s, n.GetText())
				}
			}
			return strings.Join(s, "; ")
		}
		record := func(m *sluicev1.PolicyUpdate) *kgo.Record {
			value, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			return &kgo.Record{Topic: "policy-updates", Key: []byte(m.GetRunId()), Value: value}
		}
		w.putRaw(record(&sluicev1.PolicyUpdate{RunId: "run", PolicyVersion: 2})) // of no step
		w.eventually("its dead letter", func() bool { return len(w.letters()) == 1 })
		if l := w.letters()[0]; l.GetStage() != "prompt-feeder" || l.GetSourceTopic() != "policy-updates" || l.GetErrorType() != "invalid" || !strings.Contains(l.GetError(), "step is 0") {
			t.Errorf("dead letter %v", l)
		}
		if got := notes(); !strings.Contains(got, "policy-updates/0@0 cannot be read") || !strings.Contains(got, "step is 0") {
			t.Errorf("status says %q", got)
		}
		w.putRaw(record(&sluicev1.PolicyUpdate{RunId: "other", Step: 1, PolicyVersion: 7}))
		w.eventually("another run's answer", func() bool { return versions.Load() == 7 })
		if notes() == "" {
			t.Error("another run's answer took the note away")
		}
		w.putRaw(record(&sluicev1.PolicyUpdate{RunId: "run", Step: 1, PolicyVersion: 3}))
		w.eventually("the answer", func() bool { return versions.Load() == 3 })
		if got := notes(); got != "" {
			t.Errorf("status still says %q", got)
		}
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
}

func TestBroadcastOfNothingCatchesUp(t *testing.T) {
	inWorld(t, func(w *world) {
		caught := make(chan struct{})
		w.start("a", func(ctx context.Context, c ClusterConfig) error {
			return RunBroadcast(ctx, c, []string{"policy-updates"}, func() { close(caught) }, func(Message) error { return nil })
		})
		select {
		case <-caught:
		case <-time.After(time.Minute):
			t.Error("never caught up with an empty topic")
		}
	})
}

func TestBroadcastEndsWithItsReader(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(update(1))
		enough := errors.New("enough")
		p := w.start("a", func(ctx context.Context, c ClusterConfig) error {
			return RunBroadcast(ctx, c, []string{"policy-updates"}, nil, func(Message) error { return enough })
		})
		if err := p.wait(); !errors.Is(err, enough) {
			t.Errorf("got %v, want the reader's error", err)
		}
	})
}

func TestBroadcastBrokerAwayForAMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(update(1))
		var mu sync.Mutex
		n := 0
		p := w.start("a", func(ctx context.Context, c ClusterConfig) error {
			return RunBroadcast(ctx, c, []string{"policy-updates"}, nil, func(Message) error { mu.Lock(); n++; mu.Unlock(); return nil })
		})
		w.eventually("the first", func() bool { mu.Lock(); defer mu.Unlock(); return n == 1 })
		w.restartBroker(time.Minute)
		w.put(update(2))
		w.eventually("the second", func() bool { mu.Lock(); defer mu.Unlock(); return n == 2 })
		w.eventually("readiness", p.isReady)
	})
}

func TestProducer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.broker.Close()
		ready := make(chan struct{}, 100)
		c := w.cluster()
		c.Ready = func(_ string, err error) {
			if err == nil {
				ready <- struct{}{}
			}
		}
		p, err := NewProducer(w.t.Context(), c, "prompt-feeder")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		if err := p.Produce(ctx, prompts(1)...); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without brokers: %v, want the context's end", err)
		}
		w.startBroker()
		select {
		case <-ready:
		case <-time.After(time.Minute):
			t.Error("not ready though the brokers came")
		}
		if err := p.Produce(w.t.Context(), prompts(20)...); err != nil {
			t.Errorf("with brokers: %v", err)
		}
		large := prompt(1, 50)
		large.Problem.Question = strings.Repeat("x", 9<<20)
		if err := p.Produce(w.t.Context(), Output{Topic: "prompts", Body: prompt(1, 51)}, Output{Topic: "prompts", Body: large}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("too large: %v, want ErrTooLarge", err)
		}
		if err := p.Produce(w.t.Context(), Output{Topic: "prompts", Body: &sluicev1.Prompt{}}); !errors.Is(err, codec.ErrInvalid) {
			t.Errorf("invalid: %v, want codec.ErrInvalid", err)
		}
		p.Close()
		p.Close()
		slots := map[uint32]bool{}
		for _, m := range w.read("prompts") {
			slots[m.(*sluicev1.Prompt).GetGroup().GetSlot()] = true
		}
		if len(slots) != 20 || slots[51] {
			t.Errorf("%d prompts are there, want 20 and nothing of the refused call", len(slots))
		}
	})
}

// A record at the limit passes the brokers; a byte more is refused here, with both
// numbers.
func TestSizeLimitIsTheBrokers(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster()
		fits := func(n int) *sluicev1.Prompt {
			p := prompt(1, 1)
			p.Problem.Question = strings.Repeat("x", n)
			return p
		}
		lo, hi := 1, 9<<20
		for lo+1 < hi {
			mid := (lo + hi) / 2
			if _, err := c.encode(Output{Topic: "prompts", Body: fits(mid)}); err == nil {
				lo = mid
			} else {
				hi = mid
			}
		}
		w.put(Output{Topic: "prompts", Body: fits(lo)})
		_, err := c.encode(Output{Topic: "prompts", Body: fits(lo + 1)})
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "8388609") || !strings.Contains(err.Error(), "8388608") {
			t.Errorf("got %v, want ErrTooLarge that names bytes and limit", err)
		}
	})
}

// Keys lie where Kafka's own partitioner puts them, so that other writers agree.
func TestPartitioner(t *testing.T) {
	tp := newPartitioner().ForTopic("t")
	theirs := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	for i := range 100 {
		r := &kgo.Record{Key: []byte(fmt.Sprint("question", i))}
		if got, want := tp.Partition(r, 8), theirs.Partition(r, 8); got != want {
			t.Errorf("key %s: partition %d, want %d", r.Key, got, want)
		}
		if !tp.RequiresConsistency(r) {
			t.Error("a key may move to another partition")
		}
	}
	counts := map[int]int{}
	for range 80 {
		r := &kgo.Record{Key: []byte("same")}
		spread(r)
		counts[tp.Partition(r, 8)]++
	}
	for p := range 8 {
		if counts[p] != 10 {
			t.Errorf("spreading put %d of 80 into partition %d, want 10", counts[p], p)
		}
	}
	r := &kgo.Record{Key: []byte("same")}
	toPartition(r, 5)
	if got := tp.Partition(r, 8); got != 5 || !tp.RequiresConsistency(r) {
		t.Errorf("an entry of partition 5 went to %d", got)
	}
}

func TestReadinessIsToldOncePerChange(t *testing.T) {
	var told []string
	st := newState("kafka x", func(_ string, err error) { told = append(told, fmt.Sprint(err)) }, ClusterConfig{}.log())
	w := &watch{state: st}
	connect := func(node int32, err error) {
		w.OnBrokerConnect(kgo.BrokerMetadata{NodeID: node}, 0, nil, err)
	}
	refused := errors.New("refused")
	connect(-1, refused)
	connect(-1, refused)
	connect(-1, nil)
	connect(1, nil)
	connect(2, refused) // one of two is there
	connect(1, refused) // none is; that the seed answered once does not count
	connect(2, nil)
	st.setWork(errors.New("joining"))
	st.setWork(nil)
	st.retire()
	connect(1, refused)
	want := []string{"brokers: not connected yet", "brokers: refused", "<nil>", "brokers: refused", "<nil>", "joining", "<nil>", "stopped"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

func TestTwoClientsOfOneRoleShareAProcess(t *testing.T) {
	top, err := topology.Default()
	if err != nil {
		t.Fatal(err)
	}
	c := ClusterConfig{Brokers: []string{"127.0.0.1:1"}, Topology: top, Metrics: prometheus.NewRegistry(),
		Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") }}
	for range 2 {
		cl, err := NewClient(c, "sampler", "ranges")
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
	}
	newMetrics(c.Metrics, "sampler").records.WithLabelValues("prompts", outcomeDone).Inc()
	newMetrics(c.Metrics, "sampler").records.WithLabelValues("prompts", outcomeDone).Inc()
	fs, err := c.Metrics.(prometheus.Gatherer).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		if f.GetName() == "sluice_records_total" && f.GetMetric()[0].GetCounter().GetValue() != 2 {
			t.Errorf("two users of one metric counted %v, want 2", f.GetMetric()[0].GetCounter().GetValue())
		}
	}
}

func TestRejectKeepsTheCause(t *testing.T) {
	cause := errors.New("cause")
	err := fmt.Errorf("outer: %w", Reject(cause, "refused"))
	if !errors.Is(err, cause) || errorTypeOf(err) != "refused" || !final(err) {
		t.Errorf("%v: type %q, final %t", err, errorTypeOf(err), final(err))
	}
	if Reject(nil, "refused") != nil {
		t.Error("rejecting nothing is an error")
	}
	if final(cause) {
		t.Error("any error is final")
	}
}
