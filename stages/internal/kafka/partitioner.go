package kafka

import (
	"context"
	"math/rand/v2"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// partitioner places records by key as Kafka's own does (murmur2), but those marked
// for spreading one after the other over all partitions, and entries of a changelog
// where their machine is.
type partitioner struct{ keyed kgo.Partitioner }

func newPartitioner() partitioner { return partitioner{kgo.StickyKeyPartitioner(nil)} }

type (
	spreadKey struct{}
	fixedKey  struct{}
)

// toPartition sends a record to a partition whatever its key.
func toPartition(r *kgo.Record, number int32) {
	r.Context = context.WithValue(context.Background(), fixedKey{}, number)
}

func fixed(r *kgo.Record) (int32, bool) {
	if r.Context == nil {
		return 0, false
	}
	n, ok := r.Context.Value(fixedKey{}).(int32)
	return n, ok
}

// spread marks a record for spreading.
func spread(r *kgo.Record) {
	r.Context = context.WithValue(context.Background(), spreadKey{}, true)
}

func isSpread(r *kgo.Record) bool {
	return r.Context != nil && r.Context.Value(spreadKey{}) != nil
}

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	t := &topicPartitioner{keyed: p.keyed.ForTopic(topic)}
	t.next.Store(rand.Uint64N(1 << 32)) // many writers must not start together
	return t
}

type topicPartitioner struct {
	keyed kgo.TopicPartitioner
	next  atomic.Uint64
}

func (t *topicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	_, ok := fixed(r)
	return ok || !isSpread(r) && t.keyed.RequiresConsistency(r)
}

func (t *topicPartitioner) Partition(r *kgo.Record, n int) int {
	if n, ok := fixed(r); ok {
		return int(n) // out of range fails the record, as it should
	}
	if isSpread(r) {
		return int(t.next.Add(1) % uint64(n))
	}
	return t.keyed.Partition(r, n)
}
