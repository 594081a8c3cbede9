package kafka

import (
	"context"
	"sync"
)

// ownership follows a group's callbacks. Every change of assignment has a number and
// a context that ends with it.
type ownership struct {
	mu      sync.Mutex
	now     assignment
	cancel  context.CancelFunc
	changed chan struct{}
}

// assignment is what a member owned for a while.
type assignment struct {
	// number is 0 before the first assignment and rises with every change.
	number     int
	ctx        context.Context
	partitions map[int32]bool
}

func newOwnership() *ownership {
	o := &ownership{changed: make(chan struct{})}
	o.now.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// assigned adds partition numbers: topics that are read together share them. It is
// called for every rebalance, also one that brings nothing.
func (o *ownership) assigned(m map[string][]int32) {
	o.change(func(ps map[int32]bool) {
		for _, numbers := range m {
			for _, n := range numbers {
				ps[n] = true
			}
		}
	})
}

// revoked takes partition numbers away.
func (o *ownership) revoked(m map[string][]int32) {
	o.change(func(ps map[int32]bool) {
		for _, numbers := range m {
			for _, n := range numbers {
				delete(ps, n)
			}
		}
	})
}

func (o *ownership) change(f func(map[int32]bool)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cancel()
	next := assignment{number: o.now.number + 1, partitions: map[int32]bool{}}
	for p := range o.now.partitions {
		next.partitions[p] = true
	}
	f(next.partitions)
	next.ctx, o.cancel = context.WithCancel(context.Background())
	o.now = next
	close(o.changed)
	o.changed = make(chan struct{})
}

// current is the assignment now; its partitions are not to be changed.
func (o *ownership) current() assignment {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

// wait returns at the first assignment, or when ctx ends.
func (o *ownership) wait(ctx context.Context) {
	o.mu.Lock()
	number, changed := o.now.number, o.changed
	o.mu.Unlock()
	if number > 0 {
		return
	}
	select {
	case <-changed:
	case <-ctx.Done():
	}
}
