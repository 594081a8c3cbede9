package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Range is a run of offsets of one partition, [From, To), with the messages in it. Once
// formed it stays: a crash, a rebalance or a failed write leads to the same range
// again, before anything after it.
type Range struct {
	// Topic is the name without the namespace; FullTopic has it.
	Topic, FullTopic string
	// TopicID is the topic's id in the cluster, in hex: a topic that was deleted and
	// made again has the same offsets and another id. It is zeros where the brokers
	// give none.
	TopicID   string
	Partition int32
	From, To  int64
	// Messages leaves out records that do not decode; they went to dead-letters.
	Messages []Message
}

// String names the range for logs and tokens.
func (r Range) String() string {
	return fmt.Sprintf("%s/%d/%d-%d", r.FullTopic, r.Partition, r.From, r.To)
}

// Sink stores ranges where a second Write of the same range changes nothing.
type Sink interface {
	// Write returns nil once all of r is stored. It is called again, with an equal
	// range, after an error and after a crash. It is called from several goroutines,
	// for different partitions.
	Write(ctx context.Context, r Range) error
}

// RangeStep is a point between two steps of handling a range, where a kill must do no
// harm.
type RangeStep string

// The steps, in order.
const (
	RangeFormed    RangeStep = "formed"    // nothing logged of it yet
	RangePending   RangeStep = "pending"   // committed as pending
	RangeLetters   RangeStep = "letters"   // dead letters of undecodable records written
	RangeWritten   RangeStep = "written"   // stored by the sink
	RangeCommitted RangeStep = "committed" // the offset after it is committed
)

// RangesConfig configures a stage that stores what it reads somewhere outside Kafka,
// exactly once.
type RangesConfig struct {
	Cluster ClusterConfig
	// Stage is its name in the topology, which says what it reads.
	Stage string
	// MaxRecords and MaxBytes bound a range; a single larger record is a range of its
	// own. 0 means 1000 records and 16 MiB.
	MaxRecords int
	MaxBytes   int
	// Interval is how long a range may wait for more records. 0 means 1 s.
	Interval time.Duration
	// At is called after each step, if not nil: tests kill there.
	At func(RangeStep, Range)
}

func (cfg *RangesConfig) defaults() {
	if cfg.MaxRecords == 0 {
		cfg.MaxRecords = 1000
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 16 << 20
	}
	if cfg.Interval == 0 {
		cfg.Interval = time.Second
	}
	if cfg.At == nil {
		cfg.At = func(RangeStep, Range) {}
	}
}

// RunRanges works until ctx ends, then lets ranges being written finish and returns
// nil. For each partition, in turn:
//
//  1. it forms a range and commits it as pending: its start as the offset, its end in
//     the offset's metadata;
//  2. it writes dead letters for records that do not decode, and gives the rest to the
//     sink, again and again until the sink has them;
//  3. it commits the range's end.
//
// Whoever is assigned the partition next finds either no pending range or exactly this
// one, and finishes it first. An outage of the sink holds up its own partitions and
// nothing upstream: they fill their buffers, then stop fetching.
func RunRanges(ctx context.Context, cfg RangesConfig, sink Sink) error {
	cfg.defaults()
	stage, err := cfg.Cluster.stage(cfg.Stage)
	if err != nil {
		return err
	}
	cfg.Cluster.Begin("topics", "ranges")
	if there, err := cfg.Cluster.AwaitTopics(ctx, cfg.Stage, stage); !there {
		return err
	}
	cfg.Cluster.evictPredecessors(ctx, cfg.Stage, stage.Group)
	rs := &ranges{cfg: cfg, sink: sink, group: cfg.Cluster.name(stage.Group), parts: map[topicPartition]*rangePart{}, started: make(chan struct{})}
	cl, st, err := cfg.Cluster.dialWaiting(errJoining, cfg.Stage, "ranges",
		kgo.ConsumerGroup(rs.group),
		// A partition that was stopped and is resumed waits for the fetch under way.
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.ConsumeTopics(cfg.Cluster.names(stage.Reads)...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.DisableAutoCommit(),
		// A record polled for an assignment must not be taken for one of the next.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { rs.assigned(m) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { rs.drop(m, revokeDeadline) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { rs.drop(m, 0) }),
	)
	if err != nil {
		return err
	}
	rs.cl, rs.state = cl, st
	// Writing goes on for a while after ctx has ended.
	rs.ctx = context.WithoutCancel(ctx)
	rs.worker = newWorker(cfg.Cluster, cfg.Stage, cl, nil)
	close(rs.started)
	rs.poll(ctx)
	rs.dropAll()
	leave(cl, st, leavePatience)
	return nil
}

// ranges holds the partitions that are assigned now.
type ranges struct {
	cfg    RangesConfig
	sink   Sink
	group  string
	cl     *kgo.Client
	state  *state
	worker *worker
	ctx    context.Context
	// started closes when the fields above are set; callbacks may come before.
	started chan struct{}

	mu    sync.Mutex
	parts map[topicPartition]*rangePart
}

func (rs *ranges) poll(ctx context.Context) {
	for ctx.Err() == nil {
		fetches := rs.cl.PollRecords(ctx, 10_000)
		if err := fetches.Err(); err != nil && ctx.Err() == nil {
			rs.worker.log.Warn("poll failed", "error", err)
			rs.cl.AllowRebalance()
			(&backoff{next: time.Second}).wait(ctx, nil)
			continue
		}
		fetches.EachPartition(func(f kgo.FetchTopicPartition) {
			if p := rs.part(topicPartition{f.Topic, f.Partition}); p != nil && len(f.Records) > 0 {
				p.add(f.Records)
			}
		})
		rs.cl.AllowRebalance()
	}
}

func (rs *ranges) part(tp topicPartition) *rangePart {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.parts[tp]
}

func (rs *ranges) assigned(m map[string][]int32) {
	<-rs.started
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for topic, numbers := range m {
		for _, n := range numbers {
			p := newRangePart(rs, topicPartition{topic, n})
			rs.parts[p.tp] = p
			go p.run()
		}
	}
	rs.state.setWork(nil)
}

// rangesDrain is how long the ranges being written may go on once the context ends.
const rangesDrain = 10 * time.Second

// drop ends the work on partitions and returns when it has ended. A range being written may
// go on for a while, where the partition is still ours to commit.
func (rs *ranges) drop(m map[string][]int32, patience time.Duration) {
	<-rs.started
	var gone []*rangePart
	rs.mu.Lock()
	for topic, numbers := range m {
		for _, n := range numbers {
			tp := topicPartition{topic, n}
			if p := rs.parts[tp]; p != nil {
				gone = append(gone, p)
				delete(rs.parts, tp)
			}
		}
	}
	rs.mu.Unlock()
	end(gone, patience)
}

func (rs *ranges) dropAll() {
	all := map[string][]int32{}
	rs.mu.Lock()
	for tp := range rs.parts {
		all[tp.topic] = append(all[tp.topic], tp.partition)
	}
	rs.mu.Unlock()
	rs.drop(all, rangesDrain)
}

func end(gone []*rangePart, patience time.Duration) {
	for _, p := range gone {
		close(p.stop)
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	for _, p := range gone {
		select {
		case <-p.done:
		case <-over.C:
			// What is cut off here is pending, and will be formed again.
			for _, q := range gone {
				q.cancel()
			}
			<-p.done
		}
	}
}
