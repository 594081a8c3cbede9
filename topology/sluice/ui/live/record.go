package live

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// ErrGone occurs when a record is no longer in Kafka, or never was.
var ErrGone = errors.New("the record is not in Kafka")

// Trajectory is what Kafka holds of a trajectory, and whether its chain of digests holds.
type Trajectory struct {
	Topic     string    `json:"topic"` // with the namespace
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset,string"`
	Timestamp time.Time `json:"timestamp"`
	Bytes     int       `json:"bytes"`
	// Custody is "holds", "broken" or "none": no turns.
	Custody string `json:"custody"`
	// Detail says where it is broken.
	Detail string `json:"detail,omitempty"`
	Turns  []Turn `json:"turns"`

	// Place is whose record it is: run, incarnation, step, slot, sample index and copy.
	Place [6]string `json:"place"`
}

// Turn of a record.
type Turn struct {
	Digest   string `json:"digest"`
	Versions []Span `json:"versions"`
}

// Span of tokens that one policy version sampled.
type Span struct {
	Version uint32 `json:"version"`
	Count   uint32 `json:"count"`
}

// Trajectory reads one record of a scored topic and recomputes its chain of digests. The
// topic is as it stands in SQL: with the namespace.
func (w *Watch) Trajectory(ctx context.Context, topic string, partition int32, offset int64) (Trajectory, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := w.record(ctx, topic, partition, offset)
	if err != nil {
		return Trajectory{}, err
	}
	cr := codec.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		cr.Headers = append(cr.Headers, codec.Header{Key: h.Key, Value: h.Value})
	}
	m, err := codec.Decode(cr)
	if err != nil {
		return Trajectory{}, fmt.Errorf("%s/%d@%d: %w", topic, partition, offset, err)
	}
	s, ok := m.(*sluicev1.Scored)
	if !ok {
		return Trajectory{}, fmt.Errorf("%s/%d@%d holds a %T, no scored trajectory", topic, partition, offset, m)
	}
	t := s.GetTrajectory()
	g := t.GetPrompt().GetGroup()
	out := Trajectory{
		Topic: topic, Partition: partition, Offset: offset, Timestamp: r.Timestamp, Bytes: len(r.Key) + len(r.Value), Custody: "holds", Turns: []Turn{},
		Place: [6]string{g.GetRunId(), fmt.Sprint(g.GetIncarnation()), fmt.Sprint(g.GetStep()), fmt.Sprint(g.GetSlot()), fmt.Sprint(t.GetSampleIndex()), fmt.Sprint(t.GetCopy())},
	}
	if err := custody.Check(t); err != nil {
		out.Custody, out.Detail = "broken", err.Error()
	} else if len(t.GetTurns()) == 0 {
		out.Custody = "none"
	}
	for _, turn := range t.GetTurns() {
		digest := Turn{Digest: hex.EncodeToString(turn.GetDigest()), Versions: []Span{}}
		for _, v := range turn.GetVersions() {
			digest.Versions = append(digest.Versions, Span{v.GetVersion(), v.GetCount()})
		}
		out.Turns = append(out.Turns, digest)
	}
	return out, nil
}

// record fetches the record at an offset.
func (w *Watch) record(ctx context.Context, topic string, partition int32, offset int64) (*kgo.Record, error) {
	admin := kadm.NewClient(w.cl)
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", topic, err)
	}
	ends, err := admin.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", topic, err)
	}
	start, there := starts.Lookup(topic, partition)
	end, _ := ends.Lookup(topic, partition)
	if !there || start.Err != nil || offset < start.Offset || offset >= end.Offset {
		return nil, fmt.Errorf("%w: %s/%d@%d: the partition holds %d to %d", ErrGone, topic, partition, offset, start.Offset, end.Offset)
	}
	cl, err := kgo.NewClient(append(append([]kgo.Opt{}, w.cfg.Connect...),
		kgo.ClientID("sluice-ui-record"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxPartitionBytes(1<<20),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(offset)}}),
	)...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	fetches := cl.PollRecords(ctx, 1)
	if err := fetches.Err(); err != nil {
		return nil, fmt.Errorf("read %s/%d@%d: %w", topic, partition, offset, err)
	}
	for _, r := range fetches.Records() {
		if r.Offset == offset {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%w: %s/%d@%d", ErrGone, topic, partition, offset)
}
