package deadletters_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/embedded/broker"
	"github.com/sluice-rl/sluice/topology/sluice/deadletters"
)

func TestLettersAreReadAndTheirTextIsHarmless(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := broker.Start(broker.Config{DataDir: t.TempDir(), MaxMessageBytes: 8 << 20}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Address()), kgo.TransactionalID("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 1, 1, nil, "dead-letters"); err != nil {
		t.Fatal(err)
	}
	read := func() (all []deadletters.Letter) {
		t.Helper()
		err := deadletters.Read(ctx, []kgo.Opt{kgo.SeedBrokers(b.Address())}, "dead-letters", func(l deadletters.Letter) error {
			all = append(all, l)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := read(); len(got) != 0 {
		t.Fatalf("an empty topic gave %d letters", len(got))
	}

	hostile := "\x1b]0;owned\a\u202e"
	rec, err := codec.Encode(&sluicev1.DeadLetter{
		Stage: "sampler", SourceTopic: "prompts", SourceOffset: 7, ErrorType: "undecodable", Error: "bad " + hostile,
		Key: []byte(hostile), Value: []byte(hostile),
		Headers: []*sluicev1.RecordHeader{{Key: "h", Value: []byte(hostile)}},
		Origin: &sluicev1.Origin{
			Group: &sluicev1.GroupPlace{RunId: "run", Step: 2, Slot: 1}, SampleIndex: proto.Uint32(3),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	// Written in a transaction, so that a marker is the last thing in the log.
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	r := &kgo.Record{Topic: "dead-letters", Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	if err := cl.ProduceSync(ctx, r, &kgo.Record{Topic: "dead-letters", Value: []byte("not one of ours")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatal(err)
	}

	got := read()
	if len(got) != 2 || got[0].ID() != "0/0" || got[1].Broken == nil {
		t.Fatalf("got %+v, want a letter and an unreadable one", got)
	}
	var shown strings.Builder
	got[0].Show(&shown)
	got[1].Show(&shown)
	if s := shown.String(); strings.ContainsAny(s, "\x1b\a\u202e") || !strings.Contains(s, `\x1b]0;owned`) {
		t.Errorf("hostile text was printed:\n%q", s)
	}
	if !strings.Contains(shown.String(), "run.0/2/1/3") {
		t.Errorf("its place is not shown:\n%s", shown.String())
	}
	for _, l := range got {
		b, err := l.JSON()
		if err != nil || !json.Valid(b) {
			t.Errorf("JSON of %s: %s, %v", l.ID(), b, err)
		}
	}
}
