package depth

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// span is the offsets [from, to) of a partition.
type span struct{ from, to int64 }

// count reads the spans of one topic as a read_committed consumer and counts the
// records that it is given: no markers, nothing aborted. oldest is the earliest of their
// times. Of a span with more offsets than the limit only the first record is looked at.
func (m *Meter) count(ctx context.Context, topic string, spans map[int32]span) (n int64, oldest time.Time, err error) {
	if len(spans) == 0 {
		return 0, oldest, nil
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
		return 0, oldest, err
	}
	defer cl.Close()
	left := map[int32]bool{}
	for p := range spans {
		left[p] = true
	}
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return n, oldest, fmt.Errorf("%d partitions not read to their end: %w", len(left), err)
		}
		if err := fetches.Err0(); err != nil {
			return n, oldest, err
		}
		for _, e := range fetches.Errors() {
			return n, oldest, fmt.Errorf("partition %d: %w", e.Partition, e.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			s := spans[r.Partition]
			many := s.to-s.from > m.cfg.CountLimit
			if !left[r.Partition] {
				return
			}
			if r.Offset < s.to && !r.Attrs.IsControl() {
				if oldest.IsZero() || r.Timestamp.Before(oldest) {
					oldest = r.Timestamp
				}
				if !many {
					n++
				} else {
					delete(left, r.Partition)
				}
			}
			if r.Offset >= s.to-1 {
				delete(left, r.Partition)
			}
		})
	}
	return n, oldest, nil
}
