package kafka

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// A partition that moves while its records are being polled is not worked on by the
// member that lost it: nobody dies, so each record is taken once.
func TestClassicPartitionsDoNotMoveBetweenPollAndTake(t *testing.T) {
	inWorld(t, func(w *world) {
		const n = 40
		w.put(prompts(n)...)
		var mu sync.Mutex
		taken := map[uint32]int{}
		take := func(ctx context.Context, m Message) ([]Output, error) {
			mu.Lock()
			taken[m.Body.(*sluicev1.Prompt).GetGroup().GetSlot()]++
			mu.Unlock()
			return sampling(time.Second)(ctx, m)
		}
		var once sync.Once
		polled := make(chan struct{})
		w.sampler("a", 64, take, func(c *ClassicConfig) {
			c.polled = func(records int) {
				if records > 0 {
					once.Do(func() { close(polled); time.Sleep(3 * time.Second) })
				}
			}
		})
		<-polled
		w.sampler("b", 4, take)
		w.eventually("all sampled", func() bool { return len(w.slots()) == n })
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for slot, times := range taken {
			if times != 1 {
				t.Errorf("the prompt of slot %d was taken %d times, want once", slot, times)
			}
		}
		w.once(n)
	})
}
