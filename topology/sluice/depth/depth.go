package depth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology"
)

// Config of a measurement.
type Config struct {
	// Connect are the options of every client: brokers, and how they are spoken to.
	Connect   []kgo.Opt
	Namespace string
	Topology  topology.Topology
	// CountLimit is up to how many waiting offsets of a partition are counted
	// record by record. 0: 100.
	CountLimit int64
}

// Work is what waits before one stage in one topic.
type Work struct {
	Stage string `json:"stage"`
	// Topic is without the namespace.
	Topic string `json:"topic"`
	// Depth is the number of records not yet done.
	Depth int64 `json:"depth"`
	// UpperBound: markers of transactions may be among the Depth.
	UpperBound bool `json:"upper_bound,omitempty"`
	// Position is the sum of offsets done, over partitions; two of them give a rate.
	Position int64 `json:"-"`
	// Rate is records done per second between two measurements, markers of
	// transactions among them. Nil after only one measurement.
	Rate *float64 `json:"rate,omitempty"`
	// Oldest is when the record was written that has waited longest; zero where none
	// waits, and of share groups.
	Oldest time.Time `json:"oldest,omitzero"`
}

// Snapshot is one measurement.
type Snapshot struct {
	At   time.Time `json:"at"`
	Work []Work    `json:"work"`
	// Ends is the number of offsets ever given per topic, without the namespace.
	Ends map[string]int64 `json:"ends"`
}

// Meter measures again and again over one connection.
type Meter struct {
	cfg   Config
	cl    *kgo.Client
	admin *kadm.Client
}

// NewMeter connects lazily; an unreachable broker shows in Measure.
func NewMeter(cfg Config) (*Meter, error) {
	if cfg.CountLimit == 0 {
		cfg.CountLimit = 100
	}
	cl, err := kgo.NewClient(append(slices.Clip(cfg.Connect), kgo.ClientID("sluice-status"))...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return &Meter{cfg, cl, kadm.NewClient(cl)}, nil
}

// Close ends the connection.
func (m *Meter) Close() { m.cl.Close() }

// Measure measures every stage that reads with a group.
func (m *Meter) Measure(ctx context.Context) (Snapshot, error) {
	s := Snapshot{At: time.Now(), Ends: map[string]int64{}}
	var names []string
	for short := range m.cfg.Topology.Topics {
		names = append(names, m.full(short))
	}
	// Up to the last stable offset: what an open transaction wrote is nobody's
	// work yet.
	ends, err := m.admin.ListCommittedOffsets(ctx, names...)
	if err != nil {
		return s, fmt.Errorf("list end offsets: %w", err)
	}
	starts, err := m.admin.ListStartOffsets(ctx, names...)
	if err != nil {
		return s, fmt.Errorf("list start offsets: %w", err)
	}
	for short := range m.cfg.Topology.Topics {
		for _, o := range ends[m.full(short)] {
			if errors.Is(o.Err, kerr.UnknownTopicOrPartition) {
				return s, fmt.Errorf("topic %s does not exist: run `sluice apply` first: %w", m.full(short), o.Err)
			}
			if o.Err != nil {
				return s, fmt.Errorf("end offset of %s/%d: %w", o.Topic, o.Partition, o.Err)
			}
			s.Ends[short] += o.Offset
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(m.cfg.Topology.Stages)) {
		st := m.cfg.Topology.Stages[stage]
		if st.Group == "" && st.Intake == "" {
			continue
		}
		measured, err := m.stage(ctx, stage, st, starts, ends)
		if err != nil {
			return s, fmt.Errorf("depth before %s: %w", stage, err)
		}
		s.Work = append(s.Work, measured...)
	}
	return s, nil
}

func (m *Meter) full(short string) string { return topology.Name(m.cfg.Namespace, short) }

func (m *Meter) stage(ctx context.Context, name string, st topology.Stage, starts, ends kadm.ListedOffsets) ([]Work, error) {
	group := m.full(st.Group)
	if st.Intake == "share" {
		work, known, err := m.share(ctx, name, group, st, starts, ends)
		if err != nil || known {
			return work, err
		}
		// No share state: it may run with the classic intake.
	}
	committed, err := m.committed(ctx, group)
	if err != nil {
		return nil, err
	}
	var work []Work
	for _, topic := range st.Reads {
		w := Work{Stage: name, Topic: topic}
		spans := map[int32]span{}
		for p, end := range ends[m.full(topic)] {
			from, _ := starts.Lookup(m.full(topic), p)
			at := from.Offset
			if c, ok := committed.Lookup(m.full(topic), p); ok && c.At > at {
				at = c.At
			}
			w.Position += min(at, end.Offset)
			switch lag := end.Offset - at; {
			case lag <= 0:
			case lag > m.cfg.CountLimit:
				w.Depth, w.UpperBound = w.Depth+lag, true
				spans[p] = span{at, end.Offset}
			default:
				spans[p] = span{at, end.Offset}
			}
		}
		counted, oldest, err := m.count(ctx, m.full(topic), spans)
		if err != nil {
			return nil, fmt.Errorf("count records of %s: %w", m.full(topic), err)
		}
		w.Depth, w.Oldest = w.Depth+counted, oldest
		work = append(work, w)
	}
	return work, nil
}

// committed is the group's offsets; none for a group that never committed. A cluster
// that has just started is asked again until it has made the place that keeps them.
func (m *Meter) committed(ctx context.Context, group string) (kadm.OffsetResponses, error) {
	for {
		offsets, err := m.admin.FetchOffsets(ctx, group)
		switch {
		case err == nil, errors.Is(err, kerr.GroupIDNotFound):
			return offsets, nil
		case !errors.Is(err, kerr.CoordinatorNotAvailable) && !errors.Is(err, kerr.CoordinatorLoadInProgress):
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// share asks the broker; known is false if it knows no such share group.
func (m *Meter) share(ctx context.Context, name, group string, st topology.Stage, starts, ends kadm.ListedOffsets) (work []Work, known bool, err error) {
	all, err := m.admin.DescribeShareGroupOffsets(ctx, group)
	g, ok := all[group]
	if err != nil || !ok || g.Err != nil {
		return nil, false, ctx.Err() // no such group, or brokers without share groups
	}
	for _, topic := range st.Reads {
		w := Work{Stage: name, Topic: topic}
		for p, end := range ends[m.full(topic)] {
			o, ok := g.Offsets.Lookup(m.full(topic), p)
			if !ok || o.StartOffset < 0 {
				// Nobody has read the partition yet; it will be read from the start.
				from, _ := starts.Lookup(m.full(topic), p)
				w.Depth += end.Offset - from.Offset
				w.Position += from.Offset
				continue
			}
			known = true
			lag := o.Lag
			if lag < 0 {
				lag, w.UpperBound = end.Offset-o.StartOffset, true
			}
			w.Depth += lag
			w.Position += end.Offset - lag
		}
		work = append(work, w)
	}
	return work, known, nil
}

// Rates fills in the rates of a snapshot from an earlier one.
func (s *Snapshot) Rates(before Snapshot) {
	seconds := s.At.Sub(before.At).Seconds()
	if seconds <= 0 {
		return
	}
	for i, w := range s.Work {
		for _, b := range before.Work {
			if b.Stage == w.Stage && b.Topic == w.Topic {
				rate := float64(w.Position-b.Position) / seconds
				s.Work[i].Rate = &rate
			}
		}
	}
}

// Waiting is the number of records that wait anywhere; UpperBound counts too.
func (s Snapshot) Waiting(stages ...string) int64 {
	var n int64
	for _, w := range s.Work {
		if len(stages) == 0 || slices.Contains(stages, w.Stage) {
			n += w.Depth
		}
	}
	return n
}
