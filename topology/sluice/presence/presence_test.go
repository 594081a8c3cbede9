package presence

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// The latest record of each process counts; a silent one is named for an hour, one that
// ended is not live, and what cannot be read is left out.
func TestRead(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "n.stage-status"))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	now := time.Now()
	put := func(instance string, at time.Time, stopped bool) {
		t.Helper()
		rec, err := codec.Encode(&sluicev1.StageStatus{Stage: "sampler", Instance: instance, IntervalMs: 10_000, Stopped: stopped})
		if err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: "n.stage-status", Key: rec.Key, Value: rec.Value, Timestamp: at}
		for _, h := range rec.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	put("forgotten", now.Add(-2*Forgotten), false)
	put("silent", now.Add(-time.Minute), false)
	put("ended", now.Add(-time.Second), false)
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "n.stage-status", Value: []byte("?")}).FirstErr(); err != nil {
		t.Fatal(err)
	}

	r, err := NewReader([]kgo.Opt{kgo.SeedBrokers(broker.ListenAddrs()...)}, "n.stage-status")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	expect := func(want map[string]bool) {
		t.Helper()
		ps, err := r.Read(ctx, now)
		if err != nil {
			t.Fatal(err)
		}
		if len(ps) != len(want) {
			t.Errorf("%d processes, want %d: %v", len(ps), len(want), ps)
		}
		for _, p := range ps {
			if live, known := want[p.GetInstance()]; !known || live != p.Live(now) {
				t.Errorf("%s is live: %t, want %t (known %t)", p.Name(), p.Live(now), live, known)
			}
		}
	}
	expect(map[string]bool{"silent": false, "ended": true})
	put("ended", now, true)
	put("late", now, false)
	expect(map[string]bool{"silent": false, "ended": false, "late": true})
	expect(map[string]bool{"silent": false, "ended": false, "late": true})
}
