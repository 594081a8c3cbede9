package kafka

import (
	"context"
	"sync"
)

// follower keeps what a keyed stage's broadcast topics hold, the latest per key, in
// order, so that every machine can be told all of it.
type follower struct {
	mu       sync.Mutex
	items    []followed
	last     int
	caughtUp chan struct{}
	// wake is called, once, when there is something new.
	wake func()
}

// followed is a message and its number; numbers count from 1 and rise.
type followed struct {
	number int
	msg    Message
}

func newFollower() *follower { return &follower{caughtUp: make(chan struct{})} }

// follow reads the topics until ctx ends.
func (n *follower) follow(ctx context.Context, c ClusterConfig, topics []string) {
	var wait backoff
	for ctx.Err() == nil {
		var once sync.Once
		err := RunBroadcast(ctx, c, topics, func() {
			once.Do(func() {
				select {
				case <-n.caughtUp:
				default:
					close(n.caughtUp)
				}
			})
		}, func(m Message) error { n.add(m); return nil })
		if err != nil {
			c.log().Warn("broadcast ended: starting it over", "error", err)
		}
		wait.wait(ctx, nil)
	}
}

func (n *follower) awaitCaughtUp(ctx context.Context) bool {
	select {
	case <-n.caughtUp:
		return true
	case <-ctx.Done():
		return false
	}
}

func (n *follower) add(m Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, old := range n.items {
		if old.msg.Topic == m.Topic && old.msg.Key == m.Key {
			n.items = append(n.items[:i:i], n.items[i+1:]...)
			break
		}
	}
	n.last++
	n.items = append(n.items, followed{n.last, m})
	if n.wake != nil {
		n.wake()
		n.wake = nil
	}
}

// after returns what came after a number, and the number to ask with next.
func (n *follower) after(number int) ([]Message, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ms []Message
	for _, it := range n.items {
		if it.number > number {
			ms = append(ms, it.msg)
		}
	}
	return ms, n.last
}

// whenAfter calls f once there is something after a number, at once if there is. It
// takes the place of an earlier call.
func (n *follower) whenAfter(number int, f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wake = f; n.last > number {
		n.wake = nil
		f()
	}
}
