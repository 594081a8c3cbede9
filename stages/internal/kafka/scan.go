package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/codec"
)

// Scan reads a topic once, without a group: from the first record written at or after
// since (zero: from the start) to where the topic ended when Scan began. It waits for
// absent brokers. Records that cannot be decoded are left out, as in RunBroadcast, but for
// those of a newer schema, which end it with codec.ErrNewerSchema.
func Scan(ctx context.Context, cluster ClusterConfig, stage, topic string, since time.Time, f func(Message) error) error {
	cl, _, err := cluster.dial(stage, "scan",
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// Markers count in offsets: without them the end may never be seen.
		kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{}),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	from, ends, err := scanRange(ctx, cluster, kadm.NewClient(cl), topic, since)
	if err != nil {
		return fmt.Errorf("scan %s: %w", topic, err)
	}
	if len(ends) == 0 {
		return nil
	}
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{cluster.name(topic): from})
	for len(ends) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		var ferr error
		fetches.EachRecord(func(r *kgo.Record) {
			if ferr == nil {
				ferr = scanned(cluster, r, ends, f)
			}
		})
		if ferr != nil {
			return ferr
		}
	}
	return nil
}

// scanned hands on a record that stood in the topic when the scan began, and takes a
// partition that has been read to its end out of ends.
func scanned(cluster ClusterConfig, r *kgo.Record, ends map[int32]int64, f func(Message) error) error {
	end, open := ends[r.Partition]
	if !open {
		return nil
	}
	if r.Offset >= end-1 {
		delete(ends, r.Partition)
	}
	if r.Offset >= end || r.Attrs.IsControl() {
		return nil
	}
	m, err := Decode(cluster, r)
	if errors.Is(err, codec.ErrNewerSchema) {
		// What cannot be read may be what is looked for.
		return fmt.Errorf("%s partition %d offset %d: %w", cluster.short(r.Topic), r.Partition, r.Offset, err)
	}
	if err != nil {
		return nil
	}
	return f(m)
}

// scanRange finds where each partition is to be read from and, for those with
// anything to read, the offset to stop before.
func scanRange(ctx context.Context, cluster ClusterConfig, adm *kadm.Client, topic string, since time.Time) (from map[int32]kgo.Offset, ends map[int32]int64, err error) {
	var wait backoff
	for logged := false; ; logged = true {
		from, ends, err = tryScanRange(ctx, adm, cluster.name(topic), since)
		if err == nil {
			return from, ends, nil
		}
		if !logged {
			cluster.log().Warn("cannot list offsets yet; trying again", "topic", topic, "error", err)
		}
		if !wait.wait(ctx, nil) {
			return nil, nil, ctx.Err()
		}
	}
}

func tryScanRange(ctx context.Context, adm *kadm.Client, name string, since time.Time) (map[int32]kgo.Offset, map[int32]int64, error) {
	starts, err := adm.ListStartOffsets(ctx, name)
	if since.After(time.UnixMilli(0)) {
		starts, err = adm.ListOffsetsAfterMilli(ctx, since.UnixMilli(), name)
	}
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, nil, err
	}
	stops, err := adm.ListCommittedOffsets(ctx, name)
	if err == nil {
		err = stops.Error()
	}
	if err != nil {
		return nil, nil, err
	}
	from, ends := map[int32]kgo.Offset{}, map[int32]int64{}
	stops.Each(func(stop kadm.ListedOffset) {
		start, ok := starts.Lookup(name, stop.Partition)
		if ok && start.Offset < stop.Offset {
			from[stop.Partition] = kgo.NewOffset().At(start.Offset)
			ends[stop.Partition] = stop.Offset
		}
	})
	return from, ends, nil
}
