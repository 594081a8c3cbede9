// Package presence tells which processes of each stage are at work, and what they say of
// themselves.
//
// It reads the topic stage-status, without a group, so looking changes nothing. What a
// process says is text of unknown origin: what prints it escapes it.
package presence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// Process is one process of a stage, as it described itself last.
type Process struct {
	*sluicev1.StageStatus
	// Heard is when its record was written, by the clock that stamped it.
	Heard time.Time
}

// Forgotten is after what time a process that says nothing, and did not say that it ended,
// is no longer shown.
const Forgotten = time.Hour

// Silent says whether the process should have been heard of since.
func (p Process) Silent(now time.Time) bool {
	return now.Sub(p.Heard) > 3*time.Duration(p.GetIntervalMs())*time.Millisecond
}

// Live says whether the process is at work: not ended, and heard of lately.
func (p Process) Live(now time.Time) bool { return !p.GetStopped() && !p.Silent(now) }

// Name is stage and instance.
func (p Process) Name() string { return p.GetStage() + "/" + p.GetInstance() }

// Reader follows the topic from look to look.
type Reader struct {
	cl    *kgo.Client
	admin *kadm.Client
	topic string
	at    map[int32]int64
	known map[string]Process
}

// NewReader connects lazily; unreachable brokers show in Read.
func NewReader(connect []kgo.Opt, topic string) (*Reader, error) {
	cl, err := kgo.NewClient(append(slices.Clip(connect),
		kgo.ClientID("sluice-presence"), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
	)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return &Reader{cl: cl, admin: kadm.NewClient(cl), topic: topic, at: map[int32]int64{}, known: map[string]Process{}}, nil
}

// Close ends the connection.
func (r *Reader) Close() { r.cl.Close() }

// Read reads what has come since the last call and lists the processes that are not
// forgotten, by stage and instance.
func (r *Reader) Read(ctx context.Context, now time.Time) ([]Process, error) {
	left, err := r.unread(ctx)
	if err != nil {
		return nil, err
	}
	for len(left) > 0 {
		fetches := r.cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read %s: %w", r.topic, err)
		}
		for _, e := range fetches.Errors() {
			return nil, fmt.Errorf("read %s/%d: %w", e.Topic, e.Partition, e.Err)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			r.at[rec.Partition] = rec.Offset + 1
			if rec.Offset >= left[rec.Partition]-1 {
				delete(left, rec.Partition)
			}
			if !rec.Attrs.IsControl() {
				r.take(rec)
			}
		})
	}
	var list []Process
	for key, p := range r.known {
		if now.Sub(p.Heard) > Forgotten {
			delete(r.known, key)
			continue
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Process) int {
		return cmp.Or(cmp.Compare(a.GetStage(), b.GetStage()), cmp.Compare(a.GetInstance(), b.GetInstance()))
	})
	return list, nil
}

// take keeps what a process says; what cannot be read is of a newer version and left out.
func (r *Reader) take(rec *kgo.Record) {
	cr := codec.Record{Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		cr.Headers = append(cr.Headers, codec.Header{Key: h.Key, Value: h.Value})
	}
	m, err := codec.Decode(cr)
	if err != nil {
		return
	}
	if s, ok := m.(*sluicev1.StageStatus); ok {
		r.known[s.GetStage()+"/"+s.GetInstance()] = Process{s, rec.Timestamp}
	}
}

// unread gives the end offsets of the partitions that hold anything not read yet.
func (r *Reader) unread(ctx context.Context) (map[int32]int64, error) {
	starts, err := r.admin.ListStartOffsets(ctx, r.topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", r.topic, err)
	}
	ends, err := r.admin.ListCommittedOffsets(ctx, r.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", r.topic, err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		start, _ := starts.Lookup(r.topic, o.Partition)
		if o.Offset > max(start.Offset, r.at[o.Partition]) {
			left[o.Partition] = o.Offset
		}
	})
	return left, nil
}
