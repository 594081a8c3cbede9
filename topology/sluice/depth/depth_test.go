package depth_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/apply"
	"github.com/sluice-rl/sluice/topology/embedded/broker"
	"github.com/sluice-rl/sluice/topology/sluice/depth"
)

const small = `
replication: 1
max_message_bytes: 8388608
topics:
  scored: {key: k, records: [Scored], reader: keyed, partitions: 1, retention: 1h}
  code-calls: {key: k, records: [CodeCall], reader: worker, partitions: 1, retention: 1h}
stages:
  grouper: {group: grouper, intake: keyed, reads: [scored], writes: []}
  code-executor: {group: code-executor, intake: share, reads: [code-calls], writes: []}
`

type bench struct {
	t       *testing.T
	ctx     context.Context
	address string
	meter   *depth.Meter
}

func newBench(t *testing.T) *bench {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	b, err := broker.Start(broker.Config{DataDir: t.TempDir(), MaxMessageBytes: 8 << 20}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	top, err := topology.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	x := &bench{t: t, ctx: ctx, address: b.Address()}
	if _, err := apply.Apply(ctx, x.client(), top, apply.Options{Namespace: "d."}); err != nil {
		t.Fatal(err)
	}
	x.meter, err = depth.NewMeter(depth.Config{Connect: []kgo.Opt{kgo.SeedBrokers(b.Address())}, Namespace: "d.", Topology: top, CountLimit: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.meter.Close)
	return x
}

func (x *bench) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(x.address)}, opts...)...)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(cl.Close)
	return cl
}

// transaction writes n records to scored and commits or aborts.
func (x *bench) transaction(cl *kgo.Client, n int, commit bool) {
	if err := cl.BeginTransaction(); err != nil {
		x.t.Fatal(err)
	}
	for i := range n {
		if err := cl.ProduceSync(x.ctx, &kgo.Record{Topic: "d.scored", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			x.t.Fatal(err)
		}
	}
	if err := cl.EndTransaction(x.ctx, kgo.TransactionEndTry(commit)); err != nil {
		x.t.Fatal(err)
	}
}

func (x *bench) want(stage string, want depth.Work) {
	x.t.Helper()
	s, err := x.meter.Measure(x.ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, w := range s.Work {
		if w.Stage == stage {
			if waits := w.Depth > 0; w.Stage == "grouper" && waits == w.Oldest.IsZero() {
				x.t.Errorf("%d wait, the oldest since %v", w.Depth, w.Oldest)
			}
			w.Position, w.Oldest = 0, time.Time{}
			if d := cmp.Diff(want, w); d != "" {
				x.t.Errorf("(-want +got)\n%s", d)
			}
		}
	}
}

// consume reads n records with the group and commits what it read.
func (x *bench) consume(n int) {
	cl := x.client(kgo.ConsumerGroup("d.grouper"), kgo.ConsumeTopics("d.scored"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.DisableAutoCommit())
	for got := 0; got < n; {
		records := cl.PollRecords(x.ctx, n-got).Records()
		if err := cl.CommitRecords(x.ctx, records...); err != nil {
			x.t.Fatal(err)
		}
		got += len(records)
	}
	cl.Close()
}

func TestMarkersAndAbortedRecordsAreNoWork(t *testing.T) {
	x := newBench(t)
	writer := x.client(kgo.TransactionalID("writer"))
	x.transaction(writer, 3, true)
	x.transaction(writer, 5, false)
	x.want("grouper", depth.Work{Stage: "grouper", Topic: "scored", Depth: 3})
	x.consume(2)
	x.want("grouper", depth.Work{Stage: "grouper", Topic: "scored", Depth: 1})
	x.consume(1)
	// The plain lag would now be 7: a marker, five aborted records and their marker.
	x.want("grouper", depth.Work{Stage: "grouper", Topic: "scored", Depth: 0})
}

func TestBeyondTheLimitTheDepthIsAnUpperBound(t *testing.T) {
	x := newBench(t)
	x.transaction(x.client(kgo.TransactionalID("writer")), 25, true)
	x.want("grouper", depth.Work{Stage: "grouper", Topic: "scored", Depth: 26, UpperBound: true})
}

func TestShareGroupsCountWhatIsNotDone(t *testing.T) {
	x := newBench(t)
	for range 4 {
		if err := x.client().ProduceSync(x.ctx, &kgo.Record{Topic: "d.code-calls"}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	x.want("code-executor", depth.Work{Stage: "code-executor", Topic: "code-calls", Depth: 4})
	cl := x.client(kgo.ShareGroup("d.code-executor"), kgo.ConsumeTopics("d.code-calls"), kgo.ShareMaxRecords(1), kgo.ShareMaxRecordsStrict())
	for range 3 {
		for _, r := range cl.PollFetches(x.ctx).Records() {
			r.Ack(kgo.AckAccept)
		}
	}
	if err := cl.FlushAcks(x.ctx); err != nil {
		t.Fatal(err)
	}
	x.want("code-executor", depth.Work{Stage: "code-executor", Topic: "code-calls", Depth: 1})
}

func TestRates(t *testing.T) {
	at := time.Unix(0, 0)
	before := depth.Snapshot{At: at, Work: []depth.Work{{Stage: "a", Topic: "t", Position: 10}}}
	after := depth.Snapshot{At: at.Add(2 * time.Second), Work: []depth.Work{{Stage: "a", Topic: "t", Position: 30}, {Stage: "b", Topic: "t"}}}
	after.Rates(before)
	if r := after.Work[0].Rate; r == nil || *r != 10 {
		t.Errorf("rate %v, want 10 per second", r)
	}
	if r := after.Work[1].Rate; r != nil {
		t.Errorf("rate %v of a stage measured once, want none", *r)
	}
}
