// Package topic reads recorded records from Kafka for an archive or a replay.
//
// It reads one topic, as a read_committed consumer without a group, partition by
// partition and by offset, between bounds that are fixed at first: the same bounds give
// the same records in the same order, however often it is begun again.
package topic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/codec"
)

// ErrGone: the topic no longer holds all that the bounds name.
var ErrGone = errors.New("records are gone from the topic")

// Bounds are the offsets [From, To) of each partition that holds anything.
type Bounds map[int32]archive.Span

// Records bounds the count of records from above: markers of transactions have offsets
// too.
func (b Bounds) Records() int64 {
	var n int64
	for _, s := range b {
		n += s.To - s.From
	}
	return n
}

// Position is the last record that was read.
type Position struct {
	Partition int32 `json:"partition"`
	Offset    int64 `json:"offset"`
}

// Options are what a client needs to read with this package.
func Options() []kgo.Opt {
	return []kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// Markers count in offsets: without them the end may never be seen.
		kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{}),
		kgo.FetchMaxPartitionBytes(16 << 20),
		// Records that are deleted while this reads are an error, not passed over.
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	}
}

// Range looks up the bounds of what is there now and is meant by the selection's times
// and offsets. name has the namespace.
func Range(ctx context.Context, cl *kgo.Client, name string, s archive.Selection) (Bounds, error) {
	admin := kadm.NewClient(cl)
	starts, err := admin.ListStartOffsets(ctx, name)
	if err == nil && !s.Since.IsZero() {
		starts, err = admin.ListOffsetsAfterMilli(ctx, s.Since.UnixMilli(), name)
	}
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", name, err)
	}
	ends, err := admin.ListCommittedOffsets(ctx, name)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", name, err)
	}
	b := Bounds{}
	ends.Each(func(end kadm.ListedOffset) {
		start, ok := starts.Lookup(name, end.Partition)
		span := archive.Span{From: start.Offset, To: end.Offset}
		if s.Offsets != nil {
			meant, named := s.Offsets[end.Partition]
			ok = ok && named
			span.From, span.To = max(span.From, meant.From), min(span.To, meant.To)
		}
		if ok && span.From < span.To {
			b[end.Partition] = span
		}
	})
	return b, nil
}

// Read calls f with each record within the bounds behind the position; a nil position
// is the start. namespace is taken off the topic's name.
func Read(ctx context.Context, cl *kgo.Client, namespace, topic string, b Bounds, behind *Position, f func(archive.Record) error) error {
	name := namespace + topic
	for _, partition := range slices.Sorted(maps.Keys(b)) {
		span := b[partition]
		if behind != nil {
			if partition < behind.Partition {
				continue
			}
			if partition == behind.Partition {
				span.From = max(span.From, behind.Offset+1)
			}
		}
		if span.From >= span.To {
			continue
		}
		if err := readPartition(ctx, cl, name, topic, partition, span, f); err != nil {
			return fmt.Errorf("read %s/%d: %w", name, partition, err)
		}
	}
	return nil
}

func readPartition(ctx context.Context, cl *kgo.Client, name, topic string, partition int32, span archive.Span, f func(archive.Record) error) error {
	if err := there(ctx, cl, name, partition, span); err != nil {
		return err
	}
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{name: {partition: kgo.NewOffset().At(span.From)}})
	defer cl.RemoveConsumePartitions(map[string][]int32{name: {partition}})
	for {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, e := range fetches.Errors() {
			// Those that may go away by themselves are retried within.
			return e.Err
		}
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			if r.Partition != partition || r.Offset < span.From {
				continue
			}
			if r.Offset < span.To && !r.Attrs.IsControl() {
				if err := f(recordOf(r, topic)); err != nil {
					return err
				}
			}
			if r.Offset >= span.To-1 {
				return nil
			}
		}
	}
}

// there refuses a span whose start has been deleted since it was looked up: a client
// would go on behind the gap, or wait for ever.
func there(ctx context.Context, cl *kgo.Client, name string, partition int32, span archive.Span) error {
	starts, err := kadm.NewClient(cl).ListStartOffsets(ctx, name)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return err
	}
	if start, _ := starts.Lookup(name, partition); start.Offset > span.From {
		return fmt.Errorf("%w: it starts at offset %d, %d was wanted: they were deleted while or since this began", ErrGone, start.Offset, span.From)
	}
	return nil
}

func recordOf(r *kgo.Record, topic string) archive.Record {
	out := archive.Record{
		Topic: topic, Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp.UTC().Truncate(time.Millisecond),
		Record: codec.Record{Key: r.Key, Value: r.Value, Headers: make([]codec.Header, len(r.Headers))},
	}
	for i, h := range r.Headers {
		out.Headers[i] = codec.Header{Key: h.Key, Value: h.Value}
	}
	return out
}
