package kafka

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// seeds is how many crash schedules a test plays.
var seeds = flag.Uint64("seeds", 10, "crash schedules to play per test")

// schedule plays a random sequence of events, drawn from seed, between which it lets
// time pass. Events are named so that a failing seed can be read.
func (w *world) schedule(seed uint64, events map[string]func(r *rand.Rand), names []string, n int) {
	r := rand.New(rand.NewPCG(seed, 0))
	for range n {
		name := names[r.IntN(len(names))]
		w.log.Info("event", "name", name)
		events[name](r)
		time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
	}
}

// Whatever is killed, cut off, restarted or answered with an error, and in whatever
// order: outputs, state and offsets stay together, and every record is taken once.
func TestKeyedExactlyOnceOverCrashSchedules(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(w *world) {
				fed := 0
				feed := func(r *rand.Rand) {
					n := 1 + r.IntN(40)
					w.put(trajectories(fed, fed+n)...)
					fed += n
				}
				// Half of the stages come back under their old instance.
				born := 0
				start := func(r *rand.Rand) {
					born++
					batch := 1 + r.IntN(20)
					w.scorer(fmt.Sprintf("i%d", born%(2+r.IntN(8))), nil, func(c *KeyedConfig) {
						c.BatchRecords = batch
						c.TransactionTimeout = 10 * time.Second
					})
				}
				pick := func(r *rand.Rand) *process { return w.procs[r.IntN(len(w.procs))] }
				start(rand.New(rand.NewPCG(seed, 1)))
				w.schedule(seed, map[string]func(*rand.Rand){
					"feed":  feed,
					"start": start,
					"kill":  func(r *rand.Rand) { pick(r).kill() },
					"stop":  func(r *rand.Rand) { pick(r).cancel() },
					"cut": func(r *rand.Rand) { // connections break, the process lives on
						p := pick(r)
						p.mu.Lock()
						conns := p.conns
						p.conns = nil
						p.mu.Unlock()
						for _, c := range conns {
							c.Close()
						}
					},
					"restart broker": func(r *rand.Rand) { w.restartBroker(time.Duration(r.IntN(20)) * time.Second) },
					"refuse": func(r *rand.Rand) {
						keys := []kmsg.Key{kmsg.EndTxn, kmsg.TxnOffsetCommit, kmsg.AddPartitionsToTxn, kmsg.Produce, kmsg.OffsetFetch}
						errs := []*kerr.Error{kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.NotLeaderForPartition, kerr.ConcurrentTransactions, kerr.UnknownServerError}
						w.broker.Fault(kfake.Fault{Keys: []kmsg.Key{keys[r.IntN(len(keys))]}, Err: errs[r.IntN(len(errs))], Count: 1 + r.IntN(3)})
					},
				}, []string{"feed", "feed", "feed", "start", "kill", "stop", "cut", "restart broker", "refuse"}, 25)
				feed(rand.New(rand.NewPCG(seed, 2)))
				w.scorer("last", nil)
				// The emulated broker never times out a member that died while it was
				// joining; the next to join drives it out.
				time.Sleep(time.Minute)
				w.scorer("very last", nil)
				w.eventually("all scored", func() bool { return w.countScored() >= fed })
				time.Sleep(time.Minute)
				if err := w.checkScored(fed); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				if n := len(w.letters()); n != 0 {
					t.Errorf("seed %d: %d dead letters", seed, n)
				}
			})
		})
	}
}

// Workers may repeat work and never lose it.
func TestWorkersLoseNothingOverCrashSchedules(t *testing.T) {
	for _, kind := range []string{"share", "classic"} {
		for seed := range (*seeds + 1) / 2 {
			t.Run(fmt.Sprintf("%s/%d", kind, seed), func(t *testing.T) {
				inWorld(t, func(w *world) {
					fed, born := 0, 0
					topic := map[string]string{"share": "code-calls", "classic": "prompts"}[kind]
					feed := func(r *rand.Rand) {
						for range 1 + r.IntN(20) {
							var o Output
							if kind == "share" {
								o = Output{Topic: topic, Body: call(fed), RoundRobin: true}
							} else {
								o = Output{Topic: topic, Body: prompt(1, uint32(fed))}
							}
							w.put(o)
							fed++
						}
					}
					start := func(r *rand.Rand) {
						born++
						took := time.Duration(r.IntN(3000)) * time.Millisecond
						if kind == "share" {
							// The limit of deliveries is another test's matter.
							w.executor(fmt.Sprint(born), 1+r.IntN(4), taking(took), func(c *ShareConfig) { c.MaxAttempts = 100; c.Lock = 10 * time.Second })
							return
						}
						w.sampler(fmt.Sprint(born), 1+r.IntN(8), sampling(took))
					}
					pick := func(r *rand.Rand) *process { return w.procs[r.IntN(len(w.procs))] }
					start(rand.New(rand.NewPCG(seed, 1)))
					w.schedule(seed, map[string]func(*rand.Rand){
						"feed": feed, "start": start,
						"kill":           func(r *rand.Rand) { pick(r).kill() },
						"stop":           func(r *rand.Rand) { pick(r).cancel() },
						"restart broker": func(r *rand.Rand) { w.restartBroker(time.Duration(r.IntN(20)) * time.Second) },
					}, []string{"feed", "feed", "start", "kill", "stop", "restart broker"}, 15)
					start(rand.New(rand.NewPCG(seed, 3)))
					time.Sleep(time.Minute)
					start(rand.New(rand.NewPCG(seed, 4))) // as above
					done := func() int {
						if kind == "share" {
							return len(w.results())
						}
						return len(w.slots())
					}
					w.eventually("all done", func() bool { return done() >= fed })
					if got := done(); got != fed {
						t.Errorf("seed %d: %d records done, %d fed", seed, got, fed)
					}
				})
			})
		}
	}
}

// A process that dies between having its outputs acknowledged and saying so repeats
// the work: the outputs bear the same identity.
func TestShareDuplicateDeliveryKeepsIdentity(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(calls(1)...)
		deaf := w.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ShareAcknowledge, kmsg.ShareFetch}, Observe: true, Count: -1})
		defer deaf.Remove()
		first := w.executor("a", 1, taking(time.Second))
		w.eventually("a result", func() bool { return w.results()[call(0).GetCallId()] == 1 })
		first.kill() // its acknowledgement waits for the next poll or the next second
		w.executor("b", 1, func(_ context.Context, m Message) ([]Output, error) { return result(m), nil })
		time.Sleep(2 * time.Minute)
		n := 0
		for _, m := range w.read("code-results") {
			r := m.(*sluicev1.CodeResult)
			if r.GetCallId() != call(0).GetCallId() || r.GetTrajectory().GetCopy() != call(0).GetTrajectory().GetCopy() {
				t.Errorf("a result of something else: %s", r.GetCallId())
			}
			n++
		}
		if n < 1 || n > 2 || len(w.letters()) != 0 {
			t.Errorf("%d results and %d dead letters of one call", n, len(w.letters()))
		}
	})
}
