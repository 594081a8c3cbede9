package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// span is a range of offsets of one partition, without its end.
type span struct{ from, to int64 }

// readSpans gives f every record of the spans of a topic, committed ones only, in
// order within a partition, and returns when all has been read. Control records
// occupy offsets and are asked for, or a span that ends in one would never end.
func (c ClusterConfig) readSpans(ctx context.Context, stage, role, topic string, spans map[int32]span, f func(*kgo.Record) error) error {
	from := map[int32]kgo.Offset{}
	for p, s := range spans {
		if s.from < s.to {
			from[p] = kgo.NewOffset().At(s.from)
		}
	}
	if len(from) == 0 {
		return nil
	}
	cl, st, err := c.dial(stage, role,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.name(topic): from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer st.forget()
	defer cl.Close()
	for len(from) > 0 {
		fetches, err := c.pollOrComplain(ctx, cl, st, topic)
		if err != nil {
			return err
		}
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			end := spans[r.Partition].to
			if r.Offset < end && !r.Attrs.IsControl() {
				if err := f(r); err != nil {
					return err
				}
			}
			if r.Offset+1 >= end {
				delete(from, r.Partition)
			}
		}
	}
	return nil
}

// pollPatience is how long a poll for records that are there may take before it is said
// that it waits.
const pollPatience = 5 * time.Second

// pollOrComplain polls until there are records, and says if that takes long: an open
// transaction holds readers up.
func (c ClusterConfig) pollOrComplain(ctx context.Context, cl *kgo.Client, st *state, topic string) (kgo.Fetches, error) {
	for since := time.Now(); ; {
		patience, cancel := context.WithTimeout(ctx, pollPatience)
		fetches := cl.PollFetches(patience)
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, e := range fetches.Errors() {
			if errors.Is(e.Err, context.DeadlineExceeded) {
				continue
			}
			return nil, fmt.Errorf("read %s partition %d: %w", e.Topic, e.Partition, e.Err)
		}
		if fetches.NumRecords() > 0 {
			st.setWork(nil)
			return fetches, nil
		}
		if time.Since(since) < 2*pollPatience {
			c.log().Warn("still waiting for records that are there: is a transaction open, or are the brokers away?", "topic", topic)
			st.setWork(fmt.Errorf("waits for records of %s that are there: a transaction may be open", topic))
		}
	}
}

// bounds are the ends of a partition's log.
type bounds struct {
	start int64
	// stable is the end of what is committed, end that of everything.
	stable, end int64
}

// logBounds asks for the bounds of all partitions of topics, by short name.
func (c ClusterConfig) logBounds(ctx context.Context, cl *kgo.Client, topics ...string) (map[string]map[int32]bounds, error) {
	adm := kadm.NewClient(cl)
	names := c.names(topics)
	start, err := adm.ListStartOffsets(ctx, names...)
	stable, err2 := adm.ListCommittedOffsets(ctx, names...)
	end, err3 := adm.ListEndOffsets(ctx, names...)
	if err := errors.Join(err, err2, err3, start.Error(), stable.Error(), end.Error()); err != nil {
		return nil, fmt.Errorf("list offsets: %w", err)
	}
	all := map[string]map[int32]bounds{}
	end.Each(func(o kadm.ListedOffset) {
		t := c.short(o.Topic)
		if all[t] == nil {
			all[t] = map[int32]bounds{}
		}
		b := bounds{end: o.Offset}
		if s, ok := start.Lookup(o.Topic, o.Partition); ok {
			b.start = s.Offset
		}
		if s, ok := stable.Lookup(o.Topic, o.Partition); ok {
			b.stable = s.Offset
		}
		all[t][o.Partition] = b
	})
	for _, t := range topics {
		if len(all[t]) == 0 {
			return nil, fmt.Errorf("topic %s does not exist: create it with `sluice apply`", c.name(t))
		}
	}
	return all, nil
}
