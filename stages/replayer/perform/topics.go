package perform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/archive/topic"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/topology"
)

// TopicSink writes topics of the replay's own: in transactions, each of which ends with a
// Sync, under a transactional id that is the replay's. The process that resumes the replay fences
// off by it a process that was killed: what that one had on its way is aborted and can
// no longer arrive. Then what each partition holds is counted. Since records are written
// in one order, and by nobody else, it is always the beginning of what the partition is
// to hold, however a transaction was torn; so the count says what is not to be written
// again.
//
// Kafka dates the records when they are written: under the times of what was recorded,
// retention would remove them at once.
type TopicSink struct {
	client  *kgo.Client
	cluster kafka.ClusterConfig
	prefix  string
	limit   int

	partitioner kgo.Partitioner
	keyed       map[string]kgo.TopicPartitioner
	counts      map[string]int
	// ends are behind the last record that was given to Write, by topic and partition.
	ends map[string]map[int32]int64
	// skip are the offsets of records that a partition holds already and that are still
	// to be given to Write: those behind the checkpoint.
	skip map[string]map[int32][]int64
	// open: a transaction was begun. written are the topics with records in it.
	open    bool
	written map[string]bool

	wg sync.WaitGroup
	// mu guards err, and ends, while there are writes under way.
	mu sync.Mutex
	// err is the first write that failed.
	err error
}

// transactionTimeout is how long the brokers keep an open transaction of a process that
// no longer says anything, unless the replay is resumed before. Readers of the replay's
// topics wait as long.
const transactionTimeout = 2 * time.Minute

// NewTopicSink writes into the topics of the cluster's namespace for this replay, which
// must exist.
func NewTopicSink(cluster kafka.ClusterConfig, id string) (*TopicSink, error) {
	prefix := topology.ReplayNamespace(cluster.Namespace, id)
	cl, err := kafka.NewClient(cluster, "replay", "replay-sink", kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionalID(prefix+"replay"), kgo.TransactionTimeout(transactionTimeout),
		// Scoring must not run far ahead of the brokers.
		kgo.MaxBufferedBytes(64<<20))
	if err != nil {
		return nil, err
	}
	return &TopicSink{
		client: cl, cluster: cluster, prefix: prefix, limit: int(cluster.Topology.MaxMessageBytes),
		partitioner: kgo.StickyKeyPartitioner(nil), keyed: map[string]kgo.TopicPartitioner{}, counts: map[string]int{},
		ends: map[string]map[int32]int64{}, skip: map[string]map[int32][]int64{},
	}, nil
}

// WantsJSON implements Sink.
func (s *TopicSink) WantsJSON() bool { return false }

// Resume implements Sink.
func (s *TopicSink) Resume(ctx context.Context, topics []string, m Mark) error {
	reader, err := kafka.NewClient(s.cluster, "replay", "replay-sink-reader", topic.Options()...)
	if err != nil {
		return err
	}
	defer reader.Close()
	if m.zero() {
		// A process that writes here must not be fenced off by mistake.
		if err := s.count(ctx, reader, topics, m); err != nil {
			return err
		}
	}
	if _, _, err := s.client.ProducerID(ctx); err != nil {
		return fmt.Errorf("transactions of replay %s: %w", s.prefix, err)
	}
	return s.count(ctx, reader, topics, m)
}

// count counts what the topics hold behind the mark.
func (s *TopicSink) count(ctx context.Context, reader *kgo.Client, topics []string, m Mark) error {
	for _, name := range topics {
		full := topology.Name(s.prefix, name)
		listed, err := s.committed(ctx, reader, full)
		if err != nil {
			return err
		}
		s.keyed[name], s.counts[name] = s.partitioner.ForTopic(full), len(listed)
		s.ends[name], s.skip[name] = map[int32]int64{}, map[int32][]int64{}
		if err := reaches(full, listed, m.Partitions[name]); err != nil {
			return err
		}
		behind := topic.Bounds{}
		for p, end := range listed {
			s.ends[name][p] = m.Partitions[name][p]
			behind[p] = archive.Span{From: s.ends[name][p], To: end}
		}
		err = topic.Read(ctx, reader, s.prefix, name, behind, nil, func(r archive.Record) error {
			if m.zero() {
				return fmt.Errorf("%w: %s holds records and there is no checkpoint of this replay here: go on where it was begun, or choose another --id", ErrOther, full)
			}
			s.skip[name][r.Partition] = append(s.skip[name][r.Partition], r.Offset)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// committed looks up where the partitions of a topic end.
func (s *TopicSink) committed(ctx context.Context, cl *kgo.Client, full string) (map[int32]int64, error) {
	listed, err := kadm.NewClient(cl).ListCommittedOffsets(ctx, full)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w: `sluice replay` makes the topics, or `sluice apply --namespace %s`", full, err, s.prefix)
	}
	ends := map[int32]int64{}
	for p, end := range listed[full] {
		ends[p] = end.Offset
	}
	return ends, nil
}

// reaches says whether partitions hold what a checkpoint says.
func reaches(full string, ends, said map[int32]int64) error {
	for p, want := range said {
		if ends[p] < want {
			return fmt.Errorf("%w: %s/%d ends at %d, the checkpoint says %d: its records are gone, or these are other brokers; choose another --id", ErrOther, full, p, ends[p], want)
		}
	}
	return nil
}

// Holds implements Sink.
func (s *TopicSink) Holds(ctx context.Context, topics []string, m Mark) error {
	for _, name := range topics {
		full := topology.Name(s.prefix, name)
		ends, err := s.committed(ctx, s.client, full)
		if err == nil {
			err = reaches(full, ends, m.Partitions[name])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Write implements Sink. It returns before the brokers have the records; Sync waits.
func (s *TopicSink) Write(ctx context.Context, items []Item) error {
	// A record that waits for room is written even if ctx ends.
	ctx, stop := lingering(ctx, lastSave)
	defer stop()
	for _, it := range items {
		r := &kgo.Record{Topic: topology.Name(s.prefix, it.Topic), Key: it.Key, Value: it.Value, Headers: make([]kgo.RecordHeader, len(it.Headers))}
		size := len(it.Key) + len(it.Value) + 512
		for i, h := range it.Headers {
			r.Headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
			size += len(h.Key) + len(h.Value) + 10
		}
		if size > s.limit {
			return fmt.Errorf("%w: a record of %s takes %d bytes, the limit is %d (max_message_bytes of the topology)", kafka.ErrTooLarge, r.Topic, size, s.limit)
		}
		r.Partition = int32(s.keyed[it.Topic].Partition(r, s.counts[it.Topic]))
		if have := s.skip[it.Topic][r.Partition]; len(have) > 0 {
			s.mu.Lock()
			s.ends[it.Topic][r.Partition] = have[0] + 1
			s.mu.Unlock()
			s.skip[it.Topic][r.Partition] = have[1:]
			continue
		}
		if !s.open {
			if err := s.client.BeginTransaction(); err != nil {
				return s.explain(err)
			}
			s.open, s.written = true, map[string]bool{}
		}
		s.written[r.Topic] = true
		s.wg.Add(1)
		s.client.Produce(ctx, r, func(r *kgo.Record, err error) {
			defer s.wg.Done()
			s.mu.Lock()
			defer s.mu.Unlock()
			if err == nil {
				s.ends[it.Topic][r.Partition] = r.Offset + 1
			} else if s.err == nil {
				s.err = err
			}
		})
	}
	return s.failed()
}

func (s *TopicSink) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.explain(s.err)
}

func (s *TopicSink) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.ProducerFenced), errors.Is(err, kerr.InvalidProducerEpoch):
		return fmt.Errorf("%w: it has taken over the topics %s*: %w", ErrBusy, s.prefix, err)
	}
	return fmt.Errorf("write %s*: %w", s.prefix, err)
}

// Sync implements Sink: it ends the transaction.
func (s *TopicSink) Sync(ctx context.Context) (Mark, error) {
	if s.open {
		if err := kafka.FlushTransaction(ctx, s.client, s.written); err != nil {
			return Mark{}, s.explain(err)
		}
		s.wg.Wait()
		if err := s.failed(); err != nil {
			return Mark{}, err
		}
		if err := s.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
			return Mark{}, s.explain(err)
		}
		s.open = false
	}
	m := Mark{Partitions: map[string]map[int32]int64{}}
	for name, ends := range s.ends {
		m.Partitions[name] = maps.Clone(ends)
	}
	return m, nil
}

// Finish implements Sink.
func (s *TopicSink) Finish(context.Context, Summary, func(done, total int64)) error {
	for name, parts := range s.skip {
		for p, left := range parts {
			if len(left) > 0 {
				return fmt.Errorf("%w: %s%s/%d holds %d records more than this replay writes", ErrOther, s.prefix, name, p, len(left))
			}
		}
	}
	return nil
}

// Clean implements Sink.
func (s *TopicSink) Clean() error { return nil }

// Close ends the connections. A transaction that is open is aborted by the process that resumes
// the replay, or by the brokers in a while.
func (s *TopicSink) Close() { s.client.Close() }
