package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/embedded/broker"
	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/sluice/depth"
	"github.com/sluice-rl/sluice/topology/sluice/supervise"
	"github.com/sluice-rl/sluice/topology/sluice/up"
)

// sluice runs the command and returns its exit status and what it said.
func sluice(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = process.Run(Program(), process.System{
		Args: args, Environ: os.LookupEnv, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &err,
	})
	return status, out.String(), err.String()
}

func startBroker(t *testing.T) string {
	t.Helper()
	b, err := broker.Start(broker.Config{DataDir: t.TempDir(), MaxMessageBytes: 8 << 20}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b.Address()
}

func TestApplyStatusAndDeadLettersOnABroker(t *testing.T) {
	address := startBroker(t)
	at := []string{"--brokers", address, "--namespace", "t."}
	with := func(args ...string) []string { return append(args, at...) }

	if status, _, stderr := sluice(with("status")...); status != process.ExitFailed || !strings.Contains(stderr, "sluice apply") {
		t.Errorf("status before apply: %d, %q; want %d and a hint at `sluice apply`", status, stderr, process.ExitFailed)
	}
	status, stdout, stderr := sluice(with("apply", "--dry-run")...)
	if status != process.ExitOK || !strings.Contains(stdout, "create topic t.prompts (8 partitions") || !strings.Contains(stdout, "nothing was changed") {
		t.Errorf("apply --dry-run: %d\n%s%s", status, stdout, stderr)
	}
	if status, _, stderr := sluice(with("apply")...); status != process.ExitOK {
		t.Errorf("apply: %d, %s", status, stderr)
	}
	if status, stdout, _ := sluice(with("apply")...); status != process.ExitOK || !strings.Contains(stdout, "agrees with the topology") {
		t.Errorf("apply twice: %d, %q", status, stdout)
	}
	if status, stdout, _ := sluice(with("apply", "--json")...); status != process.ExitOK || strings.TrimSpace(stdout) != "[]" {
		t.Errorf("apply --json: %d, %q; want an empty list", status, stdout)
	}

	letter(t, address, "t.dead-letters")
	status, stdout, stderr = sluice(with("status", "--interval", "100ms")...)
	if status != process.ExitOK || !strings.Contains(stdout, "metrics-writer") || !strings.Contains(stdout, "code-calls") {
		t.Errorf("status: %d\n%s%s", status, stdout, stderr)
	}
	_, stdout, _ = sluice(with("status", "--json", "--interval", "100ms")...)
	var s depth.Snapshot
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatalf("status --json: %v in %q", err, stdout)
	}
	for _, w := range s.Work {
		want := int64(0)
		if w.Topic == "dead-letters" {
			want = 1
		}
		if w.Depth != want || w.Rate == nil {
			t.Errorf("%s before %s: depth %d, rate %v; want %d and a rate", w.Topic, w.Stage, w.Depth, w.Rate, want)
		}
	}

	_, stdout, _ = sluice(with("dead-letters", "list")...)
	if !strings.Contains(stdout, "0/0") || !strings.Contains(stdout, `\x1b[2J`) || strings.Contains(stdout, "\x1b") {
		t.Errorf("dead-letters list:\n%q\nwant the letter, its text escaped", stdout)
	}
	if _, stdout, _ = sluice(with("dead-letters", "list", "--stage", "grouper")...); !strings.Contains(stdout, "no dead letters") {
		t.Errorf("dead-letters of another stage:\n%s", stdout)
	}
	if status, stdout, _ = sluice(with("dead-letters", "show", "0/0")...); status != process.ExitOK || !strings.Contains(stdout, "undecodable") {
		t.Errorf("dead-letters show: %d\n%s", status, stdout)
	}
	if _, stdout, _ = sluice(with("dead-letters", "show", "0/0", "--json")...); !json.Valid([]byte(stdout)) {
		t.Errorf("dead-letters show --json: %q", stdout)
	}
	if status, _, stderr = sluice(with("dead-letters", "show", "0/9")...); status != process.ExitFailed || !strings.Contains(stderr, `"0/9"`) {
		t.Errorf("a letter that is not there: %d, %q", status, stderr)
	}
}

func letter(t *testing.T, address, topic string) {
	t.Helper()
	rec, err := codec.Encode(&sluicev1.DeadLetter{Stage: "sampler", SourceTopic: "t.prompts", ErrorType: "undecodable", Error: "\x1b[2J"})
	if err != nil {
		t.Fatal(err)
	}
	r := &kgo.Record{Topic: topic, Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func TestWrongUse(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("topics: ["), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"begin"}, `unknown command "begin"`},
		{[]string{"apply", "--now"}, "sluice apply --help"},
		{[]string{"apply", "everything"}, `argument "everything"`},
		{[]string{"apply", "--topology", bad}, bad},
		{[]string{"status", "--interval", "1ms"}, "--interval is 1ms"},
		{[]string{"dead-letters", "show"}, "want ID"},
		{[]string{"up", "--steps", "0"}, "--steps is 0"},
		{[]string{"up", "--dir", t.TempDir(), "--problems", "/no/such/file"}, "--problems"},
	} {
		if status, _, stderr := sluice(c.args...); status != process.ExitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("sluice %s: status %d, said %q; want %d and %q", strings.Join(c.args, " "), status, stderr, process.ExitUsage, c.says)
		}
	}
}

func TestAnAbsentBrokerIsSaidNotWaitedForForever(t *testing.T) {
	for _, command := range []string{"apply", "status"} {
		status, _, stderr := sluice(command, "--brokers", "127.0.0.1:1", "--timeout", "300ms")
		if status != process.ExitFailed || !strings.Contains(stderr, "127.0.0.1:1") {
			t.Errorf("%s: status %d, said %q; want %d and the address", command, status, stderr, process.ExitFailed)
		}
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	for _, command := range []string{"", "up", "apply", "status", "dead-letters", "dead-letters list"} {
		status, stdout, _ := sluice(append(strings.Fields(command), "--help")...)
		if status != process.ExitOK || !strings.Contains(stdout, "Usage:") {
			t.Errorf("sluice %s --help: status %d, %q", command, status, stdout)
		}
	}
}

func TestTheEnvironmentNamesTheCluster(t *testing.T) {
	t.Setenv("SLUICE_BROKERS", "127.0.0.1:1")
	if _, _, stderr := sluice("status", "--timeout", "300ms"); !strings.Contains(stderr, "127.0.0.1:1") {
		t.Errorf("said %q, want the brokers of SLUICE_BROKERS", stderr)
	}
	if _, _, stderr := sluice("status", "--timeout", "300ms", "--brokers", "127.0.0.1:2"); !strings.Contains(stderr, "127.0.0.1:2") {
		t.Errorf("said %q, want the flag to win", stderr)
	}
}

func TestStatusOfAnError(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"wrong use":                           {fmt.Errorf("%w: --steps", process.ErrUsage), process.ExitUsage},
		"options of up that cannot work":      {fmt.Errorf("%w: --steps", up.ErrUsage), process.ExitUsage},
		"a directory that is not a run's":     {fmt.Errorf("%w: --dir", up.ErrUnusable), process.ExitUnusable},
		"a process that cannot be kept alive": {fmt.Errorf("%w: sandboxd", supervise.ErrChild), process.ExitUnusable},
		"anything else":                       {errors.New("connection refused"), process.ExitFailed},
	} {
		if got := process.ExitCode(c.err, Program().Exits...); got != c.want {
			t.Errorf("%s: status %d, want %d", name, got, c.want)
		}
	}
}

func TestLettersGoBack(t *testing.T) {
	address := startBroker(t)
	with := func(args ...string) []string {
		return append(args, "--brokers", address, "--namespace", "t.", "--timeout", "20s")
	}
	if status, _, stderr := sluice(append([]string{"apply"}, with()...)...); status != process.ExitOK {
		t.Fatal(stderr)
	}
	put(t, address, "t.dead-letters", &sluicev1.DeadLetter{
		Stage: "sampler", SourceTopic: "prompts", ErrorType: "newer_schema", Key: []byte("q"), Value: []byte("later"),
		Origin: &sluicev1.Origin{Group: &sluicev1.GroupPlace{RunId: "run", Step: 1}},
	})
	if status, _, stderr := sluice(with("dead-letters", "requeue")...); status != process.ExitUsage || !strings.Contains(stderr, "which letters") {
		t.Errorf("requeue of nothing in particular: %d, %q", status, stderr)
	}
	if status, _, stderr := sluice(with("dead-letters", "requeue", "--id", "0/9")...); status != process.ExitFailed || !strings.Contains(stderr, "0/9") {
		t.Errorf("requeue of a letter that is not there: %d, %q", status, stderr)
	}
	if status, stdout, stderr := sluice(with("dead-letters", "requeue", "--class", "newer_schema", "--run", "run")...); status != process.ExitOK || !strings.Contains(stdout, "0/0 back to prompts") || !strings.Contains(stdout, "1 records went back") {
		t.Errorf("requeue: %d, %q, %q", status, stdout, stderr)
	}
	if r := read1(t, address, "t.prompts"); string(r.Value) != "later" || string(r.Key) != "q" {
		t.Errorf("prompts has %q under %q, want what was in the letter", r.Value, r.Key)
	}
}

// Until ppo-batcher counts it as closed a step is waited for; with --force what nobody
// knows is closed in grouped.
func TestAStepIsClosedByHand(t *testing.T) {
	address := startBroker(t)
	with := func(args ...string) []string {
		return append(append([]string{"close"}, args...), "--brokers", address, "--namespace", "t.", "--timeout", "4s")
	}
	if status, _, stderr := sluice("apply", "--brokers", address, "--namespace", "t."); status != process.ExitOK {
		t.Fatal(stderr)
	}
	for _, c := range []struct{ args, says string }{
		{"--step run/7", "--why"}, {"--why x", "--group"}, {"--why x --step run/7 --group run/7/1", "--group"}, {"--why x --step 7", "names no group"},
	} {
		if status, _, stderr := sluice(with(strings.Fields(c.args)...)...); status != process.ExitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("close %s: %d, %q; want a usage error that says %s", c.args, status, stderr, c.says)
		}
	}
	if status, _, stderr := sluice(with("--step", "run/7", "--why", "x")...); status != process.ExitFailed || !strings.Contains(stderr, "ppo-batcher has said nothing") {
		t.Errorf("without a batcher: %d, %q", status, stderr)
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	t.Cleanup(func() { close(stop); <-done })
	// A batcher that waits for slots 1 and 2 until it reads a closing of each.
	go func() {
		defer close(done)
		for open := []uint32{1, 2}; ; time.Sleep(200 * time.Millisecond) {
			select {
			case <-stop:
				return
			default:
			}
			if n := len(closings(t, address)); n > 0 {
				open = open[min(n, len(open)):]
			}
			s := &sluicev1.StageStatus{Stage: "ppo-batcher", Instance: "a", IntervalMs: 10_000}
			if len(open) > 0 {
				s.Steps = []*sluicev1.StepProgress{{RunId: "run", Step: 7, Groups: 3, GroupsClosed: 3 - uint32(len(open)), OpenSlots: open}}
			}
			put(t, address, "t.stage-status", s)
		}
	}()
	if status, _, stderr := sluice(with("--step", "run/7", "--why", "prompts expired")...); status != process.ExitFailed || !strings.Contains(stderr, "slots [1 2]") {
		t.Errorf("groups that nobody knows: %d, %q; want their slots", status, stderr)
	}
	if status, stdout, stderr := sluice(with("--step", "run/7", "--why", "prompts expired", "--force")...); status != process.ExitOK || !strings.Contains(stdout, "slot 2 is closed as dropped") {
		t.Errorf("with --force: %d, %q, %q", status, stdout, stderr)
	}
	for i, g := range closings(t, address) {
		if g.GetGroup().GetSlot() != uint32(i+1) || g.GetGroupsInStep() != 3 || g.GetReason() != "operator" || g.GetDetail() != "prompts expired" {
			t.Errorf("closing %v, want slot %d of 3 closed by the operator", g, i+1)
		}
	}
}

func put(t *testing.T, address, topic string, m proto.Message) {
	rec, err := codec.Encode(m)
	if err != nil {
		t.Error(err)
		return
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Error(err)
		return
	}
	defer cl.Close()
	r := &kgo.Record{Topic: topic, Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	if err := cl.ProduceSync(context.Background(), r).FirstErr(); err != nil {
		t.Error(err)
	}
}

// read1 is the first record of a topic.
func read1(t *testing.T, address, topic string) *kgo.Record {
	t.Helper()
	rs := records(t, address, topic, 20*time.Second, 1)
	if len(rs) == 0 {
		t.Fatalf("%s is empty", topic)
	}
	return rs[0]
}

// records reads a topic from its start until there are n, for at most as long as given.
func records(t *testing.T, address, topic string, wait time.Duration, n int) (rs []*kgo.Record) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Error(err)
		return nil
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	for len(rs) < n && ctx.Err() == nil {
		rs = append(rs, cl.PollFetches(ctx).Records()...)
	}
	return rs
}

func closings(t *testing.T, address string) (all []*sluicev1.GroupClosed) {
	for _, r := range records(t, address, "t.grouped", 500*time.Millisecond, 2) {
		rec := codec.Record{Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			rec.Headers = append(rec.Headers, codec.Header{Key: h.Key, Value: h.Value})
		}
		m, err := codec.Decode(rec)
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, m.(*sluicev1.GroupClosed))
	}
	return all
}
