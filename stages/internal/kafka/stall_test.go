package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// stallBound is for how long a record may wait before work on it begins for the first
// time, counted from the last change of the group's members, while there are free places.
const stallBound = 10 * time.Second

// begun remembers when work on each prompt began first.
type begun struct {
	mu   sync.Mutex
	when map[uint32]time.Time
}

func (b *begun) now(m Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	slot := m.Body.(*sluicev1.Prompt).GetGroup().GetSlot()
	if _, again := b.when[slot]; !again {
		b.when[slot] = time.Now()
	}
}

// TestScalingAndKillingStallsNobody lets prompts arrive while samplers come, are told to
// stop and are killed every few seconds, with turns in flight of which some take a minute.
// No process comes back under its instance: each killed one is missed by its session alone.
func TestScalingAndKillingStallsNobody(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := rand.New(rand.NewPCG(seed, 0))
				b := &begun{when: map[uint32]time.Time{}}
				handle := func(ctx context.Context, m Message) ([]Output, error) {
					b.now(m)
					d := time.Second
					if m.Body.(*sluicev1.Prompt).GetGroup().GetSlot()%10 == 0 {
						d = time.Minute
					}
					return sampling(d)(ctx, m)
				}
				var live []*process
				add := func() {
					live = append(live, w.sampler(fmt.Sprintf("s%d", len(w.procs)), 1000, handle))
				}
				add()
				add()
				w.eventually("ready", func() bool { return live[0].isReady() && live[1].isReady() })
				put := map[uint32]time.Time{}
				var events []time.Time
				producer, err := NewProducer(w.t.Context(), w.cluster(), "test")
				if err != nil {
					t.Fatal(err)
				}
				defer producer.Close()
				next := time.Now().Add(5 * time.Second)
				for slot := range uint32(1500) {
					put[slot] = time.Now()
					if err := producer.Produce(w.t.Context(), Output{Topic: "prompts", Body: prompt(1, slot)}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(200 * time.Millisecond)
					if time.Now().Before(next) {
						continue
					}
					events = append(events, time.Now())
					next = time.Now().Add(time.Duration(1+r.IntN(8)) * time.Second)
					switch n := r.IntN(3); {
					case n == 0 || len(live) < 2:
						add()
						t.Logf("%v: one more", time.Since(put[0]))
					case n == 1:
						i := r.IntN(len(live))
						live[i].cancel()
						live = append(live[:i], live[i+1:]...)
						t.Logf("%v: one less", time.Since(put[0]))
					default:
						i := r.IntN(len(live))
						live[i].kill()
						live = append(live[:i], live[i+1:]...)
						t.Logf("%v: killed", time.Since(put[0]))
					}
				}
				time.Sleep(2 * time.Minute)
				var longest time.Duration
				for slot, at := range put {
					began, ok := b.when[slot]
					if !ok {
						t.Errorf("prompt %d was never begun", slot)
					}
					// What happens while it waits may hold it up once more.
					for _, e := range events {
						if e.After(at) && e.Before(began) {
							at = e
						}
					}
					if wait := began.Sub(at); wait > stallBound {
						t.Logf("at %v a prompt waited %v", at.Sub(put[0]), wait)
					}
					longest = max(longest, began.Sub(at))
				}
				t.Logf("longest wait %v", longest)
				if longest > stallBound {
					t.Errorf("a prompt waited %v, want at most %v", longest, stallBound)
				}
			})
		})
	}
}

// TestKillingKeyedStagesStallsNobody is the same for a keyed stage, of which a killed
// process may leave a transaction open: its time-out comes on top.
func TestKillingKeyedStagesStallsNobody(t *testing.T) {
	inWorld(t, func(w *world) {
		const transactions = 5 * time.Second
		short := func(c *KeyedConfig) { c.TransactionTimeout = transactions }
		scorer := func() *process {
			p := w.scorer(fmt.Sprintf("k%d", len(w.procs)), nil, short)
			w.eventually("ready", p.isReady)
			return p
		}
		live := []*process{scorer(), scorer()}
		r := rand.New(rand.NewPCG(1, 0))
		for n := range 12 {
			if r.IntN(2) == 0 {
				live[0].kill()
			} else {
				live[0].cancel()
			}
			live = append(live[1:], scorer())
			began := time.Now()
			w.put(trajectories(n*16, n*16+16)...)
			w.eventually("scored", func() bool { return w.countScored() == (n+1)*16 })
			if took := time.Since(began); took > stallBound+transactions {
				t.Errorf("change %d held records up for %v, want at most %v", n, took, stallBound+transactions)
			}
		}
		w.scoredOnce(12 * 16)
	})
}
