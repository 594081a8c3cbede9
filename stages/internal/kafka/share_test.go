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

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// executor runs h in a share group as the code-executor does.
func (w *world) executor(instance string, slots int, h HandlerFunc, more ...func(*ShareConfig)) *process {
	return w.start(instance, func(ctx context.Context, c ClusterConfig) error {
		cfg := ShareConfig{Cluster: c, Stage: "code-executor", Slots: slots}
		for _, f := range more {
			f(&cfg)
		}
		return RunShare(ctx, cfg, func(int) Handler { return h })
	})
}

func taking(d time.Duration) HandlerFunc {
	return func(ctx context.Context, m Message) ([]Output, error) {
		select {
		case <-time.After(d):
			return result(m), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// each wants every one of n calls to have exactly one result.
func (w *world) each(n int) {
	w.t.Helper()
	got := w.results()
	for i := range n {
		if id := call(i).GetCallId(); got[id] != 1 {
			w.t.Errorf("%s has %d results, want 1", id, got[id])
		}
	}
	if len(got) > n {
		w.t.Errorf("results of %d calls, want %d", len(got), n)
	}
}

func TestShareFirstMemberFindsWhatIsThereAlready(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(50)...)
		p := w.executor("a", 4, taking(time.Second))
		w.eventually("all results", func() bool { return len(w.results()) == 50 })
		if !p.isReady() {
			t.Errorf("works but is not ready: %v", p.ready)
		}
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		w.each(50)
		if ls := w.letters(); len(ls) != 0 {
			t.Errorf("%d dead letters", len(ls))
		}
	})
}

// A call that outlives its lock many times over holds nobody up and is not delivered
// again.
func TestShareSlowRecordAmongFastOnes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(50)...)
		var slow atomic.Int32
		start := time.Now()
		w.executor("a", 5, func(ctx context.Context, m Message) ([]Output, error) {
			if m.Body.(*sluicev1.CodeCall).GetCallId() == call(7).GetCallId() {
				slow.Add(1)
				return taking(200*time.Second)(ctx, m)
			}
			return taking(2*time.Second)(ctx, m)
		})
		w.eventually("the fast ones", func() bool { return len(w.results()) == 49 })
		if took := time.Since(start); took > 60*time.Second {
			t.Errorf("49 calls of 2 s in 4 free slots took %v: they waited for the slow one", took)
		}
		w.eventually("the slow one", func() bool { return len(w.results()) == 50 })
		w.each(50)
		if n := slow.Load(); n != 1 {
			t.Errorf("the slow call was delivered %d times", n)
		}
	})
}

func TestShareRestartInMidWork(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(40)...)
		first := w.executor("a", 4, taking(5*time.Second), func(c *ShareConfig) { c.Drain = time.Nanosecond })
		w.eventually("some results", func() bool { return len(w.results()) >= 8 })
		time.Sleep(2 * time.Second)
		first.kill()
		w.executor("b", 4, taking(5*time.Second))
		w.eventually("all results", func() bool { return len(w.results()) == 40 })
		if ls := w.letters(); len(ls) != 0 {
			t.Errorf("%d dead letters after one crash, first: %v", len(ls), ls[0].GetError())
		}
	})
}

// Three processes have died of it: the fourth gives it up before any work.
func TestShareFourthAttempt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(1)...)
		var taken atomic.Int32
		deadly := func(ctx context.Context, m Message) ([]Output, error) {
			if n := taken.Add(1); m.Attempt != n {
				t.Errorf("attempt %d is called %d", n, m.Attempt)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for i := range 3 {
			p := w.executor(fmt.Sprint(i), 1, deadly, func(c *ShareConfig) { c.Drain = time.Nanosecond })
			w.eventually("the call to be taken", func() bool { return int(taken.Load()) == i+1 })
			p.kill()
		}
		w.executor("last", 1, deadly)
		w.eventually("a dead letter", func() bool { return len(w.letters()) > 0 })
		l := w.letters()[0]
		if l.GetErrorType() != "too_many_attempts" || !strings.Contains(l.GetError(), "began 3 times") || l.GetSourceTopic() != "code-calls" {
			t.Errorf("dead letter: %s of %s: %s", l.GetErrorType(), l.GetSourceTopic(), l.GetError())
		}
		for _, h := range l.GetHeaders() {
			if h.GetKey() == headerBegun {
				t.Error("the letter holds the count of attempts: sent again, its record would be given up at once")
			}
		}
		if n := taken.Load(); n != 3 {
			t.Errorf("the handler saw the call %d times, want 3", n)
		}
		w.givenUp("too_many_attempts")
	})
}

// givenUp wants one trajectory, that of call 0, ended as infra_error.
func (w *world) givenUp(why string) {
	w.t.Helper()
	ts := w.trajectories()
	if len(ts) != 1 {
		w.t.Fatalf("%d trajectories, want 1", len(ts))
	}
	got, want := ts[0], call(0).GetTrajectory()
	if got.GetEndReason() != sluicev1.EndReason_END_REASON_INFRA_ERROR || got.GetEndedBy() == "" || !strings.Contains(got.GetEndDetail(), why) {
		w.t.Errorf("ended as %v by %q: %s", got.GetEndReason(), got.GetEndedBy(), got.GetEndDetail())
	}
	if got.GetCopy() != want.GetCopy() || got.GetSampleIndex() != want.GetSampleIndex() || got.GetPrompt().GetGroup().GetStep() != want.GetPrompt().GetGroup().GetStep() {
		w.t.Errorf("it is not the trajectory of the call: %v", got)
	}
}

func TestShareRecordsThatCannotBeHandled(t *testing.T) {
	for _, c := range []struct {
		name, errorType string
		poison          bool
		handle          HandlerFunc
	}{
		{name: "undecodable", errorType: "undecodable", poison: true},
		{name: "rejected", errorType: "refused", handle: func(context.Context, Message) ([]Output, error) {
			return nil, Reject(errors.New("no such tool"), "refused")
		}},
		{name: "output too large", errorType: "too_large", handle: func(_ context.Context, m Message) ([]Output, error) {
			out := result(m)
			out[0].Body.(*sluicev1.CodeResult).GetExecution().Stdout = strings.Repeat("x", 9<<20)
			return out, nil
		}},
		{name: "output invalid", errorType: "invalid", handle: func(_ context.Context, m Message) ([]Output, error) {
			out := result(m)
			out[0].Body.(*sluicev1.CodeResult).CallId = ""
			return out, nil
		}},
		{name: "panic", errorType: "panic", handle: func(_ context.Context, m Message) ([]Output, error) {
			return nil, []error(nil)[len(m.Key)]
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				if c.poison {
					w.putRaw(poison(t, "code-calls", call(0)))
				} else {
					w.put(calls(1)...)
				}
				var times atomic.Int32
				p := w.executor("a", 2, func(ctx context.Context, m Message) ([]Output, error) {
					if m.Body.(*sluicev1.CodeCall).GetCallId() == call(0).GetCallId() && c.handle != nil {
						times.Add(1)
						return c.handle(ctx, m)
					}
					return result(m), nil
				})
				w.eventually("a dead letter", func() bool { return len(w.letters()) == 1 })
				l := w.letters()[0]
				if l.GetErrorType() != c.errorType || l.GetStage() != "code-executor" || l.GetOrigin().GetQuestionId() != "q0" {
					t.Errorf("dead letter of type %q by %s, origin %v: %s", l.GetErrorType(), l.GetStage(), l.GetOrigin(), l.GetError())
				}
				if len(l.GetValue()) == 0 || len(l.GetHeaders()) != 3 {
					t.Errorf("the record is not in its letter: %d bytes, %d headers", len(l.GetValue()), len(l.GetHeaders()))
				}
				if c.errorType == "too_large" && (!strings.Contains(l.GetError(), "943") || !strings.Contains(l.GetError(), "8388608")) {
					t.Errorf("the error names neither size nor limit: %s", l.GetError())
				}
				w.givenUp(c.errorType)
				// Others go on.
				w.put(Output{Topic: "code-calls", Body: call(1)})
				w.eventually("another call", func() bool { return w.results()[call(1).GetCallId()] == 1 })
				time.Sleep(2 * time.Minute)
				if n := len(w.letters()); n != 1 || times.Load() > 1 {
					t.Errorf("%d dead letters after %d attempts: it loops", n, times.Load())
				}
				if err := p.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Trouble with infrastructure is waited out while the record is held: no delivery is
// spent on it.
func TestShareFailureOfInfrastructureIsRetriedInPlace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(3)...)
		var tries atomic.Int32
		w.executor("a", 1, func(_ context.Context, m Message) ([]Output, error) {
			if m.Attempt != 1 {
				t.Errorf("attempt %d", m.Attempt)
			}
			if tries.Add(1) < 12 {
				return nil, errors.New("sandboxd is away")
			}
			return result(m), nil
		})
		w.eventually("all results", func() bool { return len(w.results()) == 3 })
		w.each(3)
	})
}

func TestShareStopLetsWorkInFlightFinish(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(20)...)
		var begun atomic.Int32
		p := w.executor("a", 4, func(ctx context.Context, m Message) ([]Output, error) {
			begun.Add(1)
			return taking(10*time.Second)(ctx, m)
		})
		w.eventually("four in flight", func() bool { return begun.Load() == 4 })
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if n := len(w.results()); n != 4 || begun.Load() != 4 {
			t.Errorf("%d begun, %d finished, want 4 and 4", begun.Load(), n)
		}
		w.executor("b", 4, taking(time.Second))
		w.eventually("the rest", func() bool { return len(w.results()) == 20 })
		w.each(20)
	})
}

func TestShareBrokerAwayForAMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(40)...)
		p := w.executor("a", 4, taking(3*time.Second))
		w.eventually("some results", func() bool { return len(w.results()) >= 8 })
		w.broker.Close()
		time.Sleep(time.Minute)
		if p.isReady() {
			t.Error("ready though the broker has been away for a minute")
		}
		w.startBroker()
		w.eventually("all results", func() bool { return len(w.results()) == 40 })
		w.eventually("readiness", p.isReady)
		if ls := w.letters(); len(ls) != 0 {
			t.Errorf("%d dead letters: %s", len(ls), ls[0].GetError())
		}
	})
}

func TestShareBrokerAbsentAtStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(4)...)
		w.broker.Close()
		p := w.executor("a", 2, taking(time.Second))
		time.Sleep(time.Minute)
		if p.isReady() {
			t.Error("ready though there is no broker")
		}
		w.startBroker()
		w.eventually("all results", func() bool { return len(w.results()) == 4 })
		w.each(4)
	})
}

// placeFunc is a place that is never lost.
type placeFunc func()

func (placeFunc) Lost() <-chan struct{} { return nil }
func (f placeFunc) Release()            { f() }

// A slot asks for a record only once it has what the record will need.
func TestShareReservesBeforePolling(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(12)...)
		var mu sync.Mutex
		free, least, held := 2, 2, 0
		w.executor("a", 6, func(ctx context.Context, m Message) ([]Output, error) {
			mu.Lock()
			held++
			if held > 2 {
				t.Errorf("%d records are worked on with 2 sandboxes", held)
			}
			mu.Unlock()
			out, err := taking(time.Second)(ctx, m)
			mu.Lock()
			held--
			mu.Unlock()
			return out, err
		}, func(c *ShareConfig) {
			c.Reserve = func(ctx context.Context, _ int) (Place, error) {
				for {
					mu.Lock()
					if free > 0 {
						free--
						least = min(least, free)
						mu.Unlock()
						return placeFunc(func() { mu.Lock(); free++; mu.Unlock() }), nil
					}
					mu.Unlock()
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(100 * time.Millisecond):
					}
				}
			}
		})
		w.eventually("all results", func() bool { return len(w.results()) == 12 })
		w.each(12)
		if least != 0 {
			t.Error("the reservations were never all taken: the test proves nothing")
		}
	})
}

func TestShareGroupsMissing(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.executor("a", 1, taking(0))
		if err := p.wait(); !errors.Is(err, ErrUnsupported) {
			t.Errorf("got %v, want ErrUnsupported", err)
		}
	}, kfake.MaxVersions(kversion.V3_9_0()))
}

func TestShareMisconfigured(t *testing.T) {
	inWorld(t, func(w *world) {
		err := RunShare(w.t.Context(), ShareConfig{Cluster: w.cluster(), Stage: "nobody"}, nil)
		if !errors.Is(err, ErrConfig) {
			t.Errorf("unknown stage: %v, want ErrConfig", err)
		}
		w.put(calls(1)...)
		p := w.executor("a", 1, func(context.Context, Message) ([]Output, error) {
			return []Output{{Topic: "nowhere", Body: call(0)}}, nil
		})
		if err := p.wait(); !errors.Is(err, ErrConfig) {
			t.Errorf("output to a topic that is not in the topology: %v, want ErrConfig", err)
		}
	})
}
