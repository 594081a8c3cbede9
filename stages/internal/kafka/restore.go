package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// restoreMissing makes the machines of the assignment that are not there. The order
// matters: the committed offsets are asked for first, which waits until transactions
// of a predecessor have ended; so the changelog, read to its end after that, holds
// everything those offsets stand for.
func (s *session) restoreMissing(own assignment) error {
	var missing []int32
	for n := range own.partitions {
		if s.parts[n] == nil {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	start := time.Now()
	committed, err := s.committed(own.ctx)
	if err != nil {
		return err
	}
	all, err := s.cfg.Cluster.logBounds(own.ctx, s.gts.Client(), append([]string{s.changelog}, s.stage.Reads...)...)
	if err != nil {
		return err
	}
	fresh := map[int32]*partition{}
	for _, n := range missing {
		p := &partition{number: n, machine: s.newMachine(n), at: map[string]int64{}, end: map[string]int64{}}
		for _, t := range s.stage.Reads {
			b, ok := all[t][n]
			if !ok {
				return fmt.Errorf("%w: %s has no partition %d though another input has: see `sluice apply`", ErrConfig, t, n)
			}
			at, ok := committed[t][n]
			if !ok {
				at = b.start
			}
			p.at[t], p.end[t] = max(at, b.start), b.stable
		}
		fresh[n] = p
	}
	entries, err := s.restore(own.ctx, fresh, all[s.changelog])
	if err != nil {
		return err
	}
	if err := s.replay(own.ctx, fresh, all); err != nil {
		return err
	}
	maps.Copy(s.parts, fresh)
	s.metrics.restore.Observe(time.Since(start).Seconds())
	s.metrics.restored.Add(float64(entries))
	s.log.Info("state restored", "partitions", missing, "entries", entries, "seconds", time.Since(start).Seconds())
	return nil
}

// committed asks for the group's offsets, by short topic name. It waits for
// transactions that have begun to commit offsets.
func (s *session) committed(ctx context.Context) (map[string]map[int32]int64, error) {
	group := s.cfg.Cluster.name(s.stage.Group)
	resp, err := kadm.NewClient(s.gts.Client()).FetchOffsets(kadm.RequireStable(ctx), group)
	if err != nil {
		return nil, fmt.Errorf("fetch offsets of group %s: %w", group, err)
	}
	if err := resp.Error(); err != nil {
		return nil, fmt.Errorf("fetch offsets of group %s: %w", group, err)
	}
	all := map[string]map[int32]int64{}
	resp.Each(func(o kadm.OffsetResponse) {
		t := s.cfg.Cluster.short(o.Topic)
		if all[t] == nil {
			all[t] = map[int32]int64{}
		}
		if o.At >= 0 {
			all[t][o.Partition] = o.At
		}
	})
	return all, nil
}

// restore reads the changelog into the machines, up to its high watermark: also what
// hangs in an open transaction is waited for.
func (s *session) restore(ctx context.Context, fresh map[int32]*partition, all map[int32]bounds) (entries int, err error) {
	spans := map[int32]span{}
	for n := range fresh {
		spans[n] = span{all[n].start, all[n].end}
	}
	err = s.cfg.Cluster.readSpans(ctx, s.cfg.Stage, "restore", s.changelog, spans, func(r *kgo.Record) error {
		entries++
		_, err := guard(s.log, func() (struct{}, error) {
			return struct{}{}, fresh[r.Partition].machine.Restore(string(r.Key), r.Value)
		})
		if err != nil {
			return fmt.Errorf("changelog %s partition %d offset %d: %w", s.changelog, r.Partition, r.Offset, err)
		}
		return nil
	})
	return entries, err
}

// replay gives the machines the records that they want again.
func (s *session) replay(ctx context.Context, fresh map[int32]*partition, all map[string]map[int32]bounds) error {
	wanted := map[string]map[int32]span{}
	for n, p := range fresh {
		for topic, from := range p.machine.Refetch() {
			if !slices.Contains(s.stage.Reads, topic) {
				return fmt.Errorf("%w: the machine wants records of %s again, which stage %s does not read", ErrConfig, topic, s.cfg.Stage)
			}
			if wanted[topic] == nil {
				wanted[topic] = map[int32]span{}
			}
			wanted[topic][n] = span{max(from, all[topic][n].start), p.at[topic]}
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(wanted)) {
		err := s.cfg.Cluster.readSpans(ctx, s.cfg.Stage, "replay", topic, wanted[topic], func(r *kgo.Record) error {
			m, err := Decode(s.cfg.Cluster, r)
			if err != nil {
				return nil // it went to dead-letters the first time
			}
			_, err = guard(s.log, func() (struct{}, error) { return struct{}{}, fresh[r.Partition].machine.Replay(m) })
			if err != nil {
				return fmt.Errorf("replay %s partition %d offset %d: %w", topic, r.Partition, r.Offset, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
