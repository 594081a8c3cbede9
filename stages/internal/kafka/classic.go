package kafka

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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
	// Drain is how long work in flight may go on once the context ends. 0 means 6 s: the
	// partitions take nothing new until then.
	Drain time.Duration
	// MaxAttempts is how often work on a record may begin, as far as Requeue tells,
	// before it is given up without more. 0: as often as it takes.
	MaxAttempts int32
	// CommitInterval is how often finished work is committed. 0 means 200 ms.
	CommitInterval time.Duration

	// polled is called between a poll and the taking of its records, if not nil: tests
	// wait there.
	polled func(records int)
}

func (cfg *ClassicConfig) defaults() {
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 64
	}
	if cfg.Drain == 0 {
		cfg.Drain = 6 * time.Second
	}
	if cfg.CommitInterval == 0 {
		cfg.CommitInterval = 200 * time.Millisecond
	}
	if cfg.polled == nil {
		cfg.polled = func(int) {}
	}
}

// byPriority orders topics as Priority says.
func (cfg *ClassicConfig) byPriority(reads []string) ([]string, error) {
	var order []string
	for _, t := range cfg.Priority {
		if !slices.Contains(reads, t) {
			return nil, fmt.Errorf("%w: priority names topic %q, which stage %s does not read", ErrConfig, t, cfg.Stage)
		}
		order = append(order, t)
	}
	for _, t := range reads {
		if !slices.Contains(order, t) {
			order = append(order, t)
		}
	}
	return order, nil
}

// RunClassic works until ctx ends, then lets work in flight finish and returns nil.
func RunClassic(ctx context.Context, cfg ClassicConfig, h Handler) error {
	cfg.defaults()
	stage, err := cfg.Cluster.stage(cfg.Stage)
	if err != nil {
		return err
	}
	order, err := cfg.byPriority(stage.Reads)
	if err != nil {
		return err
	}
	cfg.Cluster.Begin("topics", "classic")
	if there, err := cfg.Cluster.AwaitTopics(ctx, cfg.Stage, stage); !there {
		return err
	}
	cfg.Cluster.evictPredecessors(ctx, cfg.Stage, stage.Group)
	topics := cfg.Cluster.names(order)
	// Attempts stop with ctx; work in flight may go on for Drain more.
	in := newIntake(context.WithoutCancel(ctx), cfg, topics)
	cl, st, err := cfg.Cluster.dialWaiting(errJoining, cfg.Stage, "classic",
		kgo.ConsumerGroup(cfg.Cluster.name(stage.Group)),
		kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// A topic that was stopped and is resumed waits for the fetch under way.
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(cfg.CommitInterval),
		// A record polled for an assignment must not be taken for one of the next: it
		// would bring back a partition's tracker, whose marks could then pass records
		// that are not done.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { in.joined() }),
		kgo.OnPartitionsRevoked(func(_ context.Context, cl *kgo.Client, m map[string][]int32) { in.revoke(cl, m) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { in.lose(m) }),
	)
	if err != nil {
		return err
	}
	w := newWorker(cfg.Cluster, cfg.Stage, cl, ctx.Done())
	w.maxAttempts = cfg.MaxAttempts
	in.start(cl, w, h, st)
	in.poll(ctx)
	err = in.finish()
	// Leaving hands the partitions over; their offsets were committed just now.
	leave(cl, st, leavePatience)
	return err
}
