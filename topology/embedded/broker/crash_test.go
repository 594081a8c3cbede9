package broker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// crashing is a broker that can be killed and comes back at the same address.
type crashing struct {
	t       *testing.T
	ctx     context.Context
	dir     string
	address string
	kill    func()
}

func newCrashing(t *testing.T) *crashing {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := &crashing{t: t, ctx: ctx, dir: filepath.Join(t.TempDir(), "data")}
	c.start("0")
	return c
}

func (c *crashing) start(port string) {
	c.t.Helper()
	cmd, address := startProcess(c.t, c.dir, "--port", port)
	c.address, c.kill = address, func() { cmd.Process.Kill(); cmd.Wait() }
}

// crash kills the broker and starts it again.
func (c *crashing) crash() {
	c.t.Helper()
	c.kill()
	c.start(c.address[strings.LastIndexByte(c.address, ':')+1:])
}

func (c *crashing) client(opts ...kgo.Opt) *kgo.Client { return client(c.t, c.address, opts...) }

func (c *crashing) topic(name string, partitions int32) {
	c.t.Helper()
	if _, err := kadm.NewClient(c.client()).CreateTopic(c.ctx, partitions, 1, nil, name); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crashing) produce(cl *kgo.Client, topic string, values ...string) {
	c.t.Helper()
	for _, v := range values {
		if err := cl.ProduceSync(c.ctx, &kgo.Record{Topic: topic, Value: []byte(v)}).FirstErr(); err != nil {
			c.t.Fatalf("produce %s: %v", v, err)
		}
	}
}

// committed reads what a reader of committed records sees in partition 0, from the
// start.
func (c *crashing) committed(topic string) []string {
	c.t.Helper()
	cl := c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	ends, err := kadm.NewClient(cl).ListEndOffsets(c.ctx, topic)
	if err != nil {
		c.t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	var got []string
	for at := int64(0); at < end.Offset; {
		fetches := cl.PollFetches(c.ctx)
		if err := fetches.Err0(); err != nil {
			c.t.Fatalf("read %s up to %d, at %d: %v", topic, end.Offset, at, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			if !r.Attrs.IsControl() {
				got = append(got, string(r.Value))
			}
		})
	}
	return got
}

// begun opens a transaction after one that was committed, as a stage in mid-run has it.
func (c *crashing) begun(topic, id string) *kgo.Client {
	c.t.Helper()
	cl := c.client(kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := cl.BeginTransaction(); err != nil {
		c.t.Fatal(err)
	}
	c.produce(cl, topic, id+" first")
	if err := cl.EndTransaction(c.ctx, kgo.TryCommit); err != nil {
		c.t.Fatal(err)
	}
	if err := cl.BeginTransaction(); err != nil {
		c.t.Fatal(err)
	}
	c.produce(cl, topic, id+" lost")
	return cl
}

// TestATransactionOpenAtACrashIsNotCommitted: the producer must learn that its records
// are gone, or it goes on behind them.
func TestATransactionOpenAtACrashIsNotCommitted(t *testing.T) {
	c := newCrashing(t)
	c.topic("outputs", 1)
	cl := c.begun("outputs", "grouper")
	c.crash()

	err := cl.EndTransaction(c.ctx, kgo.TryCommit)
	if !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) {
		t.Errorf("committing the transaction of before the crash: %v, want that the producer is fenced", err)
	}
	if diff := cmp.Diff([]string{"grouper first"}, c.committed("outputs")); diff != "" {
		t.Errorf("committed (-want +got):\n%s", diff)
	}
}

// TestWhatIsCommittedAfterACrashIsRead: a reader from the start passes over the
// aborted records and no others, also after a second crash.
func TestWhatIsCommittedAfterACrashIsRead(t *testing.T) {
	c := newCrashing(t)
	c.topic("outputs", 1)
	c.begun("outputs", "grouper").Close()
	c.crash()
	want := []string{"grouper first"}
	for i := range 3 {
		cl := c.client(kgo.TransactionalID("grouper"))
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		v := "again " + strconv.Itoa(i)
		c.produce(cl, "outputs", v)
		if err := cl.EndTransaction(c.ctx, kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		cl.Close()
		want = append(want, v)
		if diff := cmp.Diff(want, c.committed("outputs")); diff != "" {
			t.Errorf("committed (-want +got):\n%s", diff)
		}
		c.crash()
		if diff := cmp.Diff(want, c.committed("outputs")); diff != "" {
			t.Errorf("committed, after another crash (-want +got):\n%s", diff)
		}
	}
}

// TestOffsetsOfATransactionOpenAtACrash: they are not committed either.
func TestOffsetsOfATransactionOpenAtACrash(t *testing.T) {
	c := newCrashing(t)
	c.topic("inputs", 1)
	c.topic("outputs", 1)
	c.produce(c.client(), "inputs", "a", "b", "c")
	opts := []kgo.Opt{
		kgo.ConsumerGroup("groupers"), kgo.ConsumeTopics("inputs"), kgo.TransactionalID("grouper"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	}
	s, err := kgo.NewGroupTransactSession(append(opts, kgo.SeedBrokers(c.address))...)
	if err != nil {
		t.Fatal(err)
	}
	take := func(s *kgo.GroupTransactSession) (got []string) {
		t.Helper()
		for len(got) < 3 {
			fetches := s.PollFetches(c.ctx)
			if err := fetches.Err0(); err != nil {
				t.Fatalf("after %v: %v", got, err)
			}
			fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
		}
		return got
	}
	take(s)
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	c.produce(s.Client(), "outputs", "abc")
	c.crash()
	if committed, err := s.End(c.ctx, kgo.TryCommit); committed && err == nil {
		t.Error("the transaction open at the crash is reported as committed")
	}
	s.Close()

	s, err = kgo.NewGroupTransactSession(append(opts, kgo.SeedBrokers(c.address))...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if diff := cmp.Diff([]string{"a", "b", "c"}, take(s)); diff != "" {
		t.Errorf("taken again after the crash (-want +got):\n%s", diff)
	}
}

// TestAShareGroupGoesOnAfterACrash: what was not acknowledged is delivered, what was
// acknowledged a while ago is not.
func TestAShareGroupGoesOnAfterACrash(t *testing.T) {
	c := newCrashing(t)
	c.topic("code-calls", 1)
	setEarliest(t, c, "executors")
	var values []string
	for i := range 10 {
		values = append(values, strconv.Itoa(i))
	}
	c.produce(c.client(), "code-calls", values...)
	opts := []kgo.Opt{kgo.ShareGroup("executors"), kgo.ConsumeTopics("code-calls"), kgo.ShareMaxRecords(1), kgo.ShareMaxRecordsStrict()}
	take := func(cl *kgo.Client, n int) (got []string) {
		t.Helper()
		for len(got) < n {
			fetches := cl.PollFetches(c.ctx)
			if err := fetches.Err0(); err != nil {
				t.Fatalf("after %v: %v", got, err)
			}
			fetches.EachRecord(func(r *kgo.Record) {
				r.Ack(kgo.AckAccept)
				got = append(got, string(r.Value))
			})
		}
		return got
	}
	first := c.client(opts...)
	take(first, 4)
	// A poll sends the acknowledgement of the record before it: 0 to 2 are done with
	// when their start offset is kept.
	waitFor(t, c.ctx, func() bool {
		groups, err := readShareGroups(c.dir)
		return err == nil && groups["executors"].Starts["code-calls"][0] == 3
	})
	c.crash()
	if diff := cmp.Diff(values[3:], take(c.client(opts...), 7)); diff != "" {
		t.Errorf("delivered after the crash (-want +got):\n%s", diff)
	}
	settings, err := listGroupSettings(c.ctx, c.client())
	if err != nil || settings["executors"]["share.auto.offset.reset"] != "earliest" {
		t.Errorf("settings after the crash: %v, %v; want share.auto.offset.reset=earliest", settings, err)
	}
}

func setEarliest(t *testing.T, c *crashing, group string) {
	t.Helper()
	value := "earliest"
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "share.auto.offset.reset", &value
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	resource.Configs = append(resource.Configs, config)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, resource)
	resp, err := req.RequestWith(c.ctx, c.client())
	if err == nil {
		err = kerr.ErrorForCode(resp.Resources[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, ctx context.Context, what func() bool) {
	t.Helper()
	for !what() {
		select {
		case <-ctx.Done():
			t.Fatal("waited in vain")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestACleanStopIsNoCrash(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cfg := Config{DataDir: dir, MaxMessageBytes: 1 << 20}
	for i := range 2 {
		if crash, err := crashed(dir); crash || err != nil {
			t.Fatalf("before start %d: crashed is %v, %v; want false", i, crash, err)
		}
		b, err := Start(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if crash, err := crashed(dir); !crash || err != nil {
			t.Errorf("while it serves: crashed is %v, %v; want true for the next start", crash, err)
		}
		b.Close()
	}
}

func TestDamagedShareGroupsAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, shareGroupsName)
	if err := os.WriteFile(path, []byte(`{"executors":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readShareGroups(dir); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want an error that names %s", err, path)
	}
}

func TestShareGroupsAreReadAsWritten(t *testing.T) {
	dir := t.TempDir()
	want := shareGroups{
		"executors": {
			Settings: map[string]string{"share.auto.offset.reset": "earliest"},
			Starts:   map[string]map[int32]int64{"code-calls": {0: 17, 1: 0}},
		},
		"new": {},
	}
	for _, sync := range []bool{false, true} {
		if err := want.write(dir, sync); err != nil {
			t.Fatal(err)
		}
		got, err := readShareGroups(dir)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}
