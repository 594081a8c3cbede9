package runner

import (
	"context"
	"errors"
	"time"
)

// ShareConfig configures a worker stage that reads a share group.
type ShareConfig struct {
	Cluster ClusterConfig
	// Stage is its name in the topology, which says what it reads.
	Stage string
	// Slots is how many records are worked on at once. Each slot is a member of
	// the group with a client of its own. 0 means 1.
	Slots int
	// Reserve takes what a record will need (a sandbox) before the slot asks for
	// one; release gives it back. Nil: nothing is needed.
	Reserve func(ctx context.Context) (release func(), err error)
	// Lock is for how long the brokers hold a record for its slot between
	// renewals; the slot renews it every third of it. 0 means 30 s.
	Lock time.Duration
	// MaxDeliveries is how often a record may be delivered before it is given up
	// without work. 0 means 3.
	MaxDeliveries int32
	// Drain is how long work in flight may go on once the context ends. 0 means 35 s.
	Drain time.Duration
}

// RunShare works until ctx ends. newHandler is called once per slot.
func RunShare(ctx context.Context, cfg ShareConfig, newHandler func(slot int) Handler) error {
	return errors.New("under construction")
}
