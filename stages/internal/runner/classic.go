package runner

import (
	"context"
	"errors"
	"time"
)

// ClassicConfig configures a worker stage that reads a consumer group.
type ClassicConfig struct {
	Cluster ClusterConfig
	// Stage is its name in the topology, which says what it reads.
	Stage string
	// Concurrency is how many records are worked on at once. 0 means 64.
	Concurrency int
	// Priority names topics in the order in which they are served; topics that are
	// not named come last, in the topology's order.
	Priority []string
	// RevokeDeadline is how long work in flight may go on once its partition moves
	// to another member, or once the context ends. 0 means 30 s.
	RevokeDeadline time.Duration
	// CommitInterval is how often finished work is committed. 0 means 200 ms.
	CommitInterval time.Duration
}

// RunClassic works until ctx ends.
func RunClassic(ctx context.Context, cfg ClassicConfig, h Handler) error {
	return errors.New("under construction")
}
