package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
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

func (cfg *KeyedConfig) defaults() {
	if cfg.TransactionTimeout == 0 {
		cfg.TransactionTimeout = 30 * time.Second
	}
	if cfg.BatchRecords == 0 {
		cfg.BatchRecords = 500
	}
	if cfg.Cluster.Instance == "" {
		cfg.Cluster.Instance = RandomInstance()
	}
}

// RunKeyed works until ctx ends (nil), or until another process fences this one
// (ErrFenced). newMachine makes an empty machine for a partition number.
func RunKeyed(ctx context.Context, cfg KeyedConfig, newMachine func(partition int32) Machine) error {
	cfg.defaults()
	stage, err := cfg.Cluster.stage(cfg.Stage)
	if err != nil {
		return err
	}
	changelog := cfg.Cluster.Topology.Changelog(cfg.Stage)
	if changelog == "" {
		return fmt.Errorf("%w: stage %s has no changelog in the topology", ErrConfig, cfg.Stage)
	}
	cfg.Cluster.Begin("topics", "keyed")
	if there, err := cfg.Cluster.AwaitTopics(ctx, cfg.Stage, stage); !there {
		return err
	}
	cfg.Cluster.evictPredecessors(ctx, cfg.Stage, stage.Group)
	k := &keyed{
		cfg: cfg, stage: stage, changelog: changelog, newMachine: newMachine,
		deadLetterWriter: deadLetterWriter{cluster: cfg.Cluster, stage: cfg.Stage, log: cfg.Cluster.log(), metrics: newMetrics(cfg.Cluster.Metrics, cfg.Stage)},
		failures:         map[place]*failure{},
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if k.transactions, err = k.newTransactions(); err != nil {
		return err
	}
	defer k.transactions.cl.Close()
	var watching sync.WaitGroup
	watching.Go(func() { k.transactions.watch(ctx) })
	defer watching.Wait()
	defer cancel()
	if len(stage.Broadcast) > 0 {
		k.follower = newFollower()
		done := make(chan struct{})
		go func() { defer close(done); k.follower.follow(ctx, cfg.Cluster, stage.Broadcast) }()
		defer func() { cancel(); <-done }()
		if !k.follower.awaitCaughtUp(ctx) {
			return nil
		}
	}
	// A session ends with its client: of some errors a transactional client does
	// not recover.
	var wait backoff
	for {
		err := k.session(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrFenced), errors.Is(err, ErrConfig):
			return err
		case errors.Is(err, errOwnHangs):
			k.log.Info("starting over with a new client", "reason", err)
			continue
		}
		k.log.Warn("starting over with a new client", "error", err)
		if !wait.wait(ctx, nil) {
			return nil
		}
	}
}

// fenced says whether an error of a transaction means that somebody else took our
// transactional id. The same answer comes when the brokers gave up on a transaction
// that took too long; then a new client goes on.
func fenced(err error, took, timeout time.Duration) bool {
	return took < timeout && (errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch))
}
