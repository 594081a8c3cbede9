package kafka

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	backoffMin = 250 * time.Millisecond
	backoffMax = 15 * time.Second
)

// backoff doubles from backoffMin to backoffMax; up to a quarter is taken off at
// random, so that many who failed together do not return together.
type backoff struct{ next time.Duration }

// wait sleeps, or returns false at once when ctx or stop ends. A nil stop never ends.
func (b *backoff) wait(ctx context.Context, stop <-chan struct{}) bool {
	b.next = min(max(b.next, backoffMin), backoffMax)
	t := time.NewTimer(b.next - time.Duration(rand.Int64N(int64(b.next/4))))
	defer t.Stop()
	b.next *= 2
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	}
}

func (b *backoff) reset() { b.next = 0 }
