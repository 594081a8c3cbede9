package topic_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/archive/topic"
)

// filled is a client of a broker whose topic "n.t" has three partitions with five
// records each.
func filled(t *testing.T) *kgo.Client {
	t.Helper()
	b, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "n.t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cl, err := kgo.NewClient(append(topic.Options(), kgo.SeedBrokers(b.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	for i := range 5 {
		for p := range int32(3) {
			if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "n.t", Partition: p, Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cl
}

func read(t *testing.T, cl *kgo.Client, b topic.Bounds, behind *topic.Position) (out string, err error) {
	t.Helper()
	err = topic.Read(t.Context(), cl, "n.", "t", b, behind, func(r archive.Record) error {
		if r.Topic != "t" {
			t.Errorf("topic %q, want it without its namespace", r.Topic)
		}
		out += fmt.Sprintf("%d@%d ", r.Partition, r.Offset)
		return nil
	})
	return out, err
}

// The order is that of partitions and offsets; a position is gone on from; what came
// after the bounds were looked up is not read.
func TestReadIsInOrderAndGoesOn(t *testing.T) {
	cl := filled(t)
	b, err := topic.Range(t.Context(), cl, "n.t", archive.Selection{Offsets: map[int32]archive.Span{0: {From: 3, To: 99}, 2: {From: 0, To: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := b.Records(); n != 5 {
		t.Errorf("%d records within the bounds, want 5", n)
	}
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "n.t", Value: []byte("late")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for want, behind := range map[string]*topic.Position{
		"0@3 0@4 2@0 2@1 2@2 ": nil,
		"0@4 2@0 2@1 2@2 ":     {Partition: 0, Offset: 3},
		"2@0 2@1 2@2 ":         {Partition: 0, Offset: 4},
		"2@2 ":                 {Partition: 2, Offset: 1},
		"":                     {Partition: 2, Offset: 2},
	} {
		if got, err := read(t, cl, b, behind); err != nil || got != want {
			t.Errorf("behind %v: %q, %v; want %q", behind, got, err, want)
		}
	}
}

// Records that retention took meanwhile are missed, not passed over.
func TestRecordsThatAreGone(t *testing.T) {
	cl := filled(t)
	b, err := topic.Range(t.Context(), cl, "n.t", archive.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	var to kadm.Offsets
	to.AddOffset("n.t", 1, 2, -1)
	if _, err := kadm.NewClient(cl).DeleteRecords(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, cl, b, nil); !errors.Is(err, topic.ErrGone) || got != "0@0 0@1 0@2 0@3 0@4 " {
		t.Errorf("%q, %v; want partition 0, then ErrGone", got, err)
	}
	if _, err := topic.Range(t.Context(), cl, "n.absent", archive.Selection{}); err == nil {
		t.Error("a topic that is not there has bounds")
	}
}
