package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/integration/apachekafka"
)

// seen counts how often work on each call was begun.
type seen struct {
	mu   sync.Mutex
	n    map[string]int32
	late int
}

// begin counts, and says whether the runner has counted alike.
func (s *seen) begin(m Message) (agrees bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == nil {
		s.n = map[string]int32{}
	}
	id := m.Key + "/" + callID(m)
	s.n[id]++
	if m.Attempt > 1 {
		s.late++
	}
	return m.Attempt == s.n[id]
}

// A process with many idle slots dies in the midst of its work, twice. Each death costs
// the calls that it held one attempt, whatever the brokers count, and the third process
// finishes them all. With several partitions every slot asks at once, so that the idle
// ones burn deliveries.
func TestShareOneDeathCostsOneAttempt(t *testing.T) {
	for _, partitions := range []int32{1, 3} {
		t.Run(fmt.Sprint(partitions, " partitions"), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.partitions("code-calls", partitions)
				w.twoDeaths(20 * time.Second)
			})
		})
	}
}

// The same on the broker that production uses.
func TestShareOneDeathCostsOneAttemptOnApacheKafka(t *testing.T) {
	for _, partitions := range []int32{1, 3} {
		t.Run(fmt.Sprint(partitions, " partitions"), func(t *testing.T) {
			w := newRealWorld(t, apachekafka.Start(t).Address)
			w.partitions("code-calls", partitions)
			w.twoDeaths(6 * time.Second)
		})
	}
}

// twoDeaths lets two processes die, each after its idle slots have had time to find their
// group.
func (w *world) twoDeaths(settling time.Duration) {
	var s seen
	work := func(d time.Duration) HandlerFunc {
		return func(ctx context.Context, m Message) ([]Output, error) {
			if !s.begin(m) {
				w.t.Errorf("%s is at attempt %d by the runner's count, and not by the handler's", callID(m), m.Attempt)
			}
			return taking(d)(ctx, m)
		}
	}
	for _, o := range calls(2) {
		o.RoundRobin = true
		w.put(o)
	}
	for i := range 2 {
		p := w.executor(fmt.Sprint(i), 6, work(time.Hour), func(c *ShareConfig) { c.Drain, c.Lock = time.Nanosecond, 15*time.Second })
		w.eventually("both calls to be begun", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.n) == 2 && s.late == 2*i
		})
		time.Sleep(settling)
		p.kill()
	}
	last := w.executor("last", 6, work(time.Second), func(c *ShareConfig) { c.Lock = 15 * time.Second })
	w.eventually("both results", func() bool { return len(w.results()) == 2 })
	w.each(2)
	if n := len(w.letters()); n != 0 {
		w.t.Errorf("%d dead letters after two deaths, want none", n)
	}
	if err := last.stop(); err != nil {
		w.t.Errorf("stop: %v", err)
	}
}

func TestShareARecordThatIsGivenBackIsTakenByAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(3)...)
		var tries atomic.Int32
		w.executor("cannot", 2, func(_ context.Context, m Message) ([]Output, error) {
			tries.Add(1)
			return nil, Requeue(errors.New("no place for it here"), 0)
		}, func(c *ShareConfig) {
			// It asks for ten records and then no more.
			c.Reserve = func(ctx context.Context, _ int) (Place, error) {
				if tries.Load() < 10 {
					return noPlace{}, nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		w.eventually("ten tries", func() bool { return tries.Load() >= 10 })
		w.executor("can", 2, func(_ context.Context, m Message) ([]Output, error) {
			if m.Attempt != 1 {
				t.Errorf("attempt %d at what was never begun", m.Attempt)
			}
			return result(m), nil
		})
		w.eventually("all results", func() bool { return len(w.results()) == 3 })
		w.each(3)
	})
}

func TestShareWhatWasBegunTooOftenIsGivenUp(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(1)...)
		var s seen
		w.executor("a", 2, func(_ context.Context, m Message) ([]Output, error) {
			if !s.begin(m) {
				t.Errorf("attempt %d", m.Attempt)
			}
			return nil, Requeue(errors.New("connection cut"), 1)
		})
		w.eventually("a dead letter", func() bool { return len(w.letters()) > 0 })
		l := w.letters()[0]
		if l.GetErrorType() != "too_many_attempts" || !strings.Contains(l.GetError(), "began 3 times") || !strings.Contains(l.GetError(), "connection cut") {
			t.Errorf("dead letter %s: %s", l.GetErrorType(), l.GetError())
		}
		w.givenUp("too_many_attempts")
	})
}

// losable is a place that can be taken away.
type losable struct{ lost chan struct{} }

func (l losable) Lost() <-chan struct{} { return l.lost }
func (losable) Release()                {}

// Places are lost all the time while calls come: no call is lost to a poll that was cut
// short, nor delivered twice, nor counted as begun.
func TestShareLostPlacesCostNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		var n atomic.Int32
		w.executor("a", 3, func(ctx context.Context, m Message) ([]Output, error) {
			if m.Attempt != 1 {
				t.Errorf("%s at attempt %d", callID(m), m.Attempt)
			}
			return taking(50*time.Millisecond)(ctx, m)
		}, func(c *ShareConfig) {
			c.Reserve = func(ctx context.Context, _ int) (Place, error) {
				select {
				case <-time.After(time.Duration(n.Add(1)%7) * 300 * time.Millisecond):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				l := losable{make(chan struct{})}
				time.AfterFunc(time.Duration(n.Load()%5)*100*time.Millisecond, func() { close(l.lost) })
				return l, nil
			}
		})
		for i := range 100 {
			w.put(Output{Topic: "code-calls", Body: call(i)})
			time.Sleep(333 * time.Millisecond)
		}
		w.eventually("all results", func() bool { return len(w.results()) == 100 })
		w.each(100)
	})
}

// Told to stop, a process gives back what comes late, and it costs no attempt.
func TestShareStopsCostNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 40 {
			p := w.executor(fmt.Sprint(i), 2, taking(10*time.Millisecond))
			time.Sleep(12*time.Second + time.Duration(i)*13*time.Millisecond)
			go w.put(Output{Topic: "code-calls", Body: call(i)})
			time.Sleep(time.Duration(i) * time.Millisecond / 4)
			if err := p.stop(); err != nil {
				t.Error(err)
			}
		}
		w.executor("last", 2, func(_ context.Context, m Message) ([]Output, error) {
			if m.Attempt != 1 {
				t.Errorf("%s at attempt %d", callID(m), m.Attempt)
			}
			return result(m), nil
		})
		w.eventually("all results", func() bool { return len(w.results()) == 40 })
		w.each(40)
	})
}

func TestARecordWrittenAnewIsItselfAgain(t *testing.T) {
	r := &kgo.Record{Topic: "t", Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "other", Value: []byte("x")}}}
	for _, begun := range []int32{2, 3, 0} {
		r = anew(r, begun)
		if n, vanished := begunBefore(r); n != begun || vanished {
			t.Errorf("written with %d attempts, read %d (holder vanished: %v)", begun, n, vanished)
		}
		if string(r.Key) != "k" || string(r.Value) != "v" || r.Headers[0].Key != "other" || len(r.Headers) > 2 {
			t.Errorf("it has become %+v", r)
		}
	}
	for _, bad := range []string{"", "x", "-1", "99999999999999"} {
		r.Headers = []kgo.RecordHeader{{Key: headerBegun, Value: []byte(bad)}}
		if n, _ := begunBefore(r); n != 0 {
			t.Errorf("count %q is read as %d, want 0", bad, n)
		}
	}
}
