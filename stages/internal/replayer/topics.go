package replayer

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/stages/internal/runner"
	"github.com/sluice-rl/sluice/topology"
)

// TopicSink writes topics of the replay's own. Records are written in order and each
// partition is written by nobody else, so what a partition holds is always the beginning
// of what it is to hold, and its end says how much.
//
// Kafka dates the records when they are written: under the times of what was recorded,
// retention would remove them at once.
type TopicSink struct {
	client *kgo.Client
	prefix string
	limit  int

	partitioner kgo.Partitioner
	keyed       map[string]kgo.TopicPartitioner
	counts      map[string]map[int32]int64
	// skip is how many records a partition holds already behind the checkpoint.
	skip map[string]map[int32]int64

	wg sync.WaitGroup
	mu sync.Mutex
	// err is the first write that failed.
	err error
}

// NewTopicSink writes into the topics of the cluster's namespace for this replay, which
// must exist.
func NewTopicSink(cluster runner.ClusterConfig, id string) (*TopicSink, error) {
	cl, err := runner.NewClient(cluster, "replay", "replay-sink", kgo.RecordPartitioner(kgo.ManualPartitioner()),
		// Scoring must not run far ahead of the brokers.
		kgo.MaxBufferedBytes(64<<20))
	if err != nil {
		return nil, err
	}
	return &TopicSink{
		client: cl, prefix: topology.ReplayNamespace(cluster.Namespace, id), limit: int(cluster.Topology.MaxMessageBytes),
		partitioner: kgo.StickyKeyPartitioner(nil), keyed: map[string]kgo.TopicPartitioner{},
		counts: map[string]map[int32]int64{}, skip: map[string]map[int32]int64{},
	}, nil
}

// WantsJSON implements Sink.
func (s *TopicSink) WantsJSON() bool { return false }

// Resume implements Sink.
func (s *TopicSink) Resume(ctx context.Context, topics []string, m Mark) error {
	for _, topic := range topics {
		name := topology.Name(s.prefix, topic)
		ends, err := kadm.NewClient(s.client).ListEndOffsets(ctx, name)
		if err == nil {
			err = ends.Error()
		}
		if err != nil {
			return fmt.Errorf("topic %s: %w: `sluice replay` makes the topics, or `sluice apply --namespace %s`", name, err, s.prefix)
		}
		s.keyed[topic] = s.partitioner.ForTopic(name)
		s.counts[topic], s.skip[topic] = map[int32]int64{}, map[int32]int64{}
		for p, end := range ends[name] {
			have := m.Partitions[topic][p]
			switch {
			case m.zero() && end.Offset > 0:
				return fmt.Errorf("%w: %s holds records and there is no checkpoint of this replay here: go on where it was begun, or choose another --id", ErrOther, name)
			case end.Offset < have:
				return fmt.Errorf("%w: %s/%d ends at %d, the checkpoint says %d: its records are gone; choose another --id", ErrOther, name, p, end.Offset, have)
			}
			s.counts[topic][p], s.skip[topic][p] = have, end.Offset-have
		}
	}
	return nil
}

// Write implements Sink. It returns before the brokers have the records; Sync waits.
func (s *TopicSink) Write(ctx context.Context, items []Item) error {
	for _, it := range items {
		r := &kgo.Record{Topic: topology.Name(s.prefix, it.Topic), Key: it.Key, Value: it.Value}
		size := len(it.Key) + len(it.Value) + 512
		for _, h := range it.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
			size += len(h.Key) + len(h.Value) + 10
		}
		if size > s.limit {
			return fmt.Errorf("%w: a record of %s takes %d bytes, the limit is %d (max_message_bytes of the topology)", runner.ErrTooLarge, r.Topic, size, s.limit)
		}
		counts := s.counts[it.Topic]
		r.Partition = int32(s.keyed[it.Topic].Partition(r, len(counts)))
		counts[r.Partition]++
		if s.skip[it.Topic][r.Partition] > 0 {
			s.skip[it.Topic][r.Partition]--
			continue
		}
		s.wg.Add(1)
		s.client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			defer s.wg.Done()
			if err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.err == nil {
					s.err = err
				}
			}
		})
	}
	return s.failed()
}

func (s *TopicSink) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return fmt.Errorf("write %s: %w", strings.TrimSuffix(s.prefix, "."), s.err)
	}
	return nil
}

// Sync implements Sink.
func (s *TopicSink) Sync(context.Context) (Mark, error) {
	s.wg.Wait()
	m := Mark{Partitions: map[string]map[int32]int64{}}
	for topic, counts := range s.counts {
		m.Partitions[topic] = map[int32]int64{}
		for p, n := range counts {
			m.Partitions[topic][p] = n
		}
	}
	return m, s.failed()
}

// Finish implements Sink.
func (s *TopicSink) Finish(Summary) error {
	for topic, parts := range s.skip {
		for p, n := range parts {
			if n > 0 {
				return fmt.Errorf("%w: %s%s/%d holds %d records more than this replay writes", ErrOther, s.prefix, topic, p, n)
			}
		}
	}
	return nil
}

// Close ends the connections.
func (s *TopicSink) Close() { s.client.Close() }
