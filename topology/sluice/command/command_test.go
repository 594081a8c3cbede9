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
