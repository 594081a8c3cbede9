package runner

import (
	"context"
	"errors"
	"time"
)

// KeyedConfig configures a keyed stage.
type KeyedConfig struct {
	Cluster ClusterConfig
	// Stage is its name in the topology, which says what it reads and where its
	// changelog is.
	Stage string
	// TransactionTimeout is after what time the brokers abort a transaction whose
	// process is gone. 0 means 30 s.
	TransactionTimeout time.Duration
	// BatchRecords is how many records one transaction covers at most. 0 means 500.
	BatchRecords int
	// Prepare may do slow work on records before their transaction begins (score
	// them in parallel, ask a verifier). It keeps its results where Step finds them.
	// Its context ends when the partitions are taken away. An error is retried with
	// backoff. The same records may be prepared again.
	Prepare func(ctx context.Context, ms []Message) error
}

// RunKeyed works until ctx ends, or until another process fences this one
// (ErrFenced). newMachine makes an empty machine for a partition number.
func RunKeyed(ctx context.Context, cfg KeyedConfig, newMachine func(partition int32) Machine) error {
	return errors.New("under construction")
}
