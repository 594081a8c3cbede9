package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/archive/topic"
	"github.com/sluice-rl/sluice/topology/embedded/broker"
)

// world is a broker with a topic of two partitions, which holds records, an aborted
// transaction and markers.
func world(t *testing.T) *kgo.Client {
	t.Helper()
	b, err := broker.Start(broker.Config{DataDir: t.TempDir(), MaxMessageBytes: 8 << 20}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	writer, err := kgo.NewClient(kgo.SeedBrokers(b.Address()), kgo.TransactionalID("w"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	ctx := t.Context()
	for _, name := range []string{"n.scored", "n.grouped"} {
		if _, err := kadm.NewClient(writer).CreateTopic(ctx, 2, 1, nil, name); err != nil {
			t.Fatal(err)
		}
	}
	for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := writer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for p := range int32(2) {
			r := &kgo.Record{Topic: "n.scored", Partition: p, Value: fmt.Append(nil, i, "-", p), Timestamp: time.UnixMilli(int64(1000 * (i + 1)))}
			if err := writer.ProduceSync(ctx, r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := writer.EndTransaction(ctx, end); err != nil {
			t.Fatal(err)
		}
	}
	cl, err := kgo.NewClient(append(topic.Options(), kgo.SeedBrokers(b.Address()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func values(t *testing.T, dir string) (all []string) {
	t.Helper()
	a, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = a.Read("scored", func(r archive.Record) error {
		all = append(all, fmt.Sprintf("%d@%d %s", r.Partition, r.Offset, r.Value))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What was committed is there by partition and offset; what was aborted is not.
func TestExport(t *testing.T) {
	cl := world(t)
	for name, c := range map[string]struct {
		sel  archive.Selection
		want []string
	}{
		"everything":     {archive.Selection{}, []string{"0@0 0-0", "0@4 2-0", "1@0 0-1", "1@4 2-1"}},
		"since a time":   {archive.Selection{Since: time.UnixMilli(2500)}, []string{"0@4 2-0", "1@4 2-1"}},
		"before a time":  {archive.Selection{Before: time.UnixMilli(2500)}, []string{"0@0 0-0", "1@0 0-1"}},
		"offsets of one": {archive.Selection{Offsets: map[int32]archive.Span{1: {From: 1, To: 99}}}, []string{"1@4 2-1"}},
		"another run":    {archive.Selection{Runs: []string{"x"}}, nil},
	} {
		dir := filepath.Join(t.TempDir(), "a")
		all, err := Run(t.Context(), Config{
			Client: cl, Namespace: "n.", Topics: []string{"scored", "grouped"}, Select: c.sel, Dir: dir, Format: archive.Parquet, Progress: func(Progress) {},
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := values(t, dir); fmt.Sprint(got) != fmt.Sprint(c.want) || all[0].Written != int64(len(c.want)) || all[1].Written != 0 {
			t.Errorf("%s: %q and counts %+v, want %q", name, got, all, c.want)
		}
	}
}

func TestAFailedExportLeavesNothing(t *testing.T) {
	cl := world(t)
	parent := t.TempDir()
	cfg := Config{Client: cl, Namespace: "n.", Topics: []string{"scored", "absent"}, Dir: filepath.Join(parent, "a"), Format: archive.JSONL, Progress: func(Progress) {}}
	if _, err := Run(t.Context(), cfg); err == nil {
		t.Error("a topic that is not there was exported")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Topics, cfg.Progress = []string{"scored"}, func(Progress) {}
	cancel()
	if _, err := Run(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if entries, _ := os.ReadDir(parent); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}
