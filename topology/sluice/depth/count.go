package depth

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// span is the offsets [from, to) of a partition.
type span struct{ from, to int64 }

// count reads the spans of one topic as a read_committed consumer and counts the
// records that it is given: no markers, nothing aborted.
func (m *Meter) count(ctx context.Context, topic string, spans map[int32]span) (int64, error) {
	if len(spans) == 0 {
		return 0, nil
	}
	at := map[int32]kgo.Offset{}
	for p, s := range spans {
		at[p] = kgo.NewOffset().At(s.from)
	}
	cl, err := kgo.NewClient(append(slices.Clip(m.cfg.Connect),
		kgo.ClientID("sluice-status-count"),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: at}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// Markers are asked for so that the position passes them; they are not
		// counted.
		kgo.KeepControlRecords(),
	)...)
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	left := map[int32]bool{}
	for p := range spans {
		left[p] = true
	}
	var n int64
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return n, fmt.Errorf("%d partitions not read to their end: %w", len(left), err)
		}
		if err := fetches.Err0(); err != nil {
			return n, err
		}
		for _, e := range fetches.Errors() {
			return n, fmt.Errorf("partition %d: %w", e.Partition, e.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end := spans[r.Partition].to
			if r.Offset < end && !r.Attrs.IsControl() {
				n++
			}
			if r.Offset >= end-1 {
				delete(left, r.Partition)
			}
		})
	}
	return n, nil
}
