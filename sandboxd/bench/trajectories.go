package main

import (
	"strconv"
	"sync"
)

// callsOfTrajectory is how many calls each trajectory makes, one after another.
const callsOfTrajectory = 4

// trajectories gives calls to trajectories: to one that is between two of its calls,
// else to a new one.
type trajectories struct {
	mu   sync.Mutex
	last int
	idle []trajectory
}

type trajectory struct {
	name  string
	calls int
}

func newTrajectories() *trajectories { return &trajectories{} }

// next returns a call's trajectory; done says that the call is over.
func (t *trajectories) next() (name string, done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var now trajectory
	if len(t.idle) > 0 {
		now, t.idle = t.idle[0], t.idle[1:]
	} else {
		t.last++
		now.name = strconv.Itoa(t.last)
	}
	return now.name, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if now.calls++; now.calls < callsOfTrajectory {
			t.idle = append(t.idle, now)
		}
	}
}
