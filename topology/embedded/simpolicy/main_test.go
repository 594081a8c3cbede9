package simpolicy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/state"
	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/process/readyfile"
)

// try runs the program as a process would and returns its exit code.
func try(args []string, environ func(string) (string, bool), stdout, stderr io.Writer) int {
	return process.Run(Program(), process.System{Args: args, Environ: environ, Stdout: stdout, Stderr: stderr})
}

func env(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := pairs[name]
		return v, ok
	}
}

func TestFlagsAndEnvironment(t *testing.T) {
	var c config
	p := Program()
	p.Flags, p.Check = c.register, c.check
	p.Run = func(context.Context, *process.Life) error { return nil }
	code := process.Run(p, process.System{Args: []string{"--model", "from-flag"}, Stderr: io.Discard, Environ: env(map[string]string{
		"SLUICE_MODEL": "from-env", "SLUICE_SEED": "9", "SLUICE_BROKERS": "a:1,b:2", "SLUICE_RUN_ID": "r", "SLUICE_STATE_DIR": "d", "SLUICE_FREEZE": "true",
		"SLUICE_HTTP_ADDR": "127.0.0.1:0",
	})})
	if code != process.ExitOK || c.model != "from-flag" || c.seed != 9 || len(c.Brokers) != 2 || !c.freeze || c.maxModelLen != 32768 {
		t.Errorf("exit code %d, config %+v", code, c)
	}
}

func TestWrongUseSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  map[string]string
		says string
	}{
		{[]string{"--nonsense"}, nil, "nonsense"},
		{[]string{"serve"}, nil, "\"serve\""},
		{[]string{"--http-addr", "nowhere"}, nil, "--http-addr"},
		{[]string{"--brokers", "localhost"}, nil, "--brokers"},
		{[]string{"--brokers", "a:1"}, nil, "--run-id"},
		{[]string{"--brokers", "a:1", "--run-id", "r"}, nil, "--state-dir"},
		{[]string{"--state-dir", "d"}, nil, "--run-id"},
		{[]string{"--run-id", "a/b"}, nil, "--run-id"},
		{[]string{"--namespace", "a b"}, nil, "--namespace"},
		{[]string{"--learning-rate", "0"}, nil, "learning rate"},
		{[]string{"--ppo-epochs", "0"}, nil, "epochs"},
		{[]string{"--train-temperature", "0"}, nil, "temperature"},
		{[]string{"--abort-rate", "2"}, nil, "abort rate"},
		{[]string{"--latency", "-1s"}, nil, "latency"},
		{[]string{"--log-level", "loud"}, nil, "--log-level"},
		{[]string{"--log-format", "xml"}, nil, "--log-format"},
		{[]string{"--problems", "/does/not/exist"}, nil, "--problems"},
		{nil, map[string]string{"SLUICE_SEED": "many"}, "SLUICE_SEED"},
	} {
		var out, errs bytes.Buffer
		if code := try(append([]string{"--http-addr", "127.0.0.1:0"}, c.args...), env(c.env), &out, &errs); code != process.ExitUsage || !strings.Contains(errs.String(), c.says) || out.Len() != 0 {
			t.Errorf("%v %v: exit %d, stdout %q, stderr %q; want 2, and stderr naming %q", c.args, c.env, code, &out, &errs, c.says)
		}
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	var out, errs bytes.Buffer
	if code := try([]string{"--help"}, nil, &out, &errs); code != process.ExitOK || errs.Len() != 0 {
		t.Fatalf("exit %d, stderr %q", code, &errs)
	}
	for _, says := range []string{"stand-in for a GPU", "Reads ppo-batches", "Promises", "SLUICE_", "--http-addr", "--learning-rate", "--freeze", "--abort-rate"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("help does not say %q", says)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "newer.json"), []byte(`{"format": 99}`), 0o644); err != nil {
		t.Fatal(err)
	}
	held, err := state.Open(dir, "held", "v")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args []string
		want int
		says string
	}{
		{[]string{"--state-dir", dir, "--run-id", "newer"}, process.ExitUnusable, "format 99"},
		{[]string{"--state-dir", dir, "--run-id", "held"}, process.ExitUnusable, "in use"},
		{[]string{"--http-addr", taken.Addr().String()}, process.ExitFailed, "--http-addr"},
		{[]string{"--http-addr", "127.0.0.1:0", "--ready-file", filepath.Join(dir, "no", "such", "dir")}, process.ExitUsage, "--ready-file"},
	} {
		var out, errs bytes.Buffer
		if code := try(append([]string{"--http-addr", "127.0.0.1:0"}, c.args...), nil, &out, &errs); code != c.want || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%v: exit %d, %q; want %d, saying %q", c.args, code, &errs, c.want, c.says)
		}
	}
}

// life is one run of the program inside the test.
type life struct {
	t       *testing.T
	addr    string
	file    string
	signals chan os.Signal
	done    chan error
}

func begin(t *testing.T, args ...string) *life {
	t.Helper()
	l := start(t, append(args, "--http-addr", "127.0.0.1:0")...)
	l.until("the ready file appears", func() bool {
		addresses, err := readyfile.Read(l.file, os.Getpid())
		l.addr = addresses["http"]
		return err == nil
	})
	return l
}

// start does not wait until the program is ready.
func start(t *testing.T, args ...string) *life {
	l := &life{t: t, file: filepath.Join(t.TempDir(), "ready"), done: make(chan error, 1), signals: make(chan os.Signal, 1)}
	sys := process.System{Args: append(args, "--ready-file", l.file), Signals: l.signals, Stdout: io.Discard, Stderr: io.Discard}
	go func() { l.done <- process.Execute(Program(), sys) }()
	return l
}

// until polls, without a limit of its own: the test's time limit ends it.
func (l *life) until(what string, ok func() bool) {
	l.t.Helper()
	for !ok() {
		select {
		case err := <-l.done:
			l.t.Fatalf("run ended with %v before %s", err, what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (l *life) end() {
	l.t.Helper()
	l.signals <- syscall.SIGTERM
	if err := <-l.done; err != nil {
		l.t.Errorf("run: %v", err)
	}
	if _, err := os.Stat(l.file); !os.IsNotExist(err) {
		l.t.Errorf("the ready file is still there: %v", err)
	}
}

func (l *life) get(path string) (int, string) {
	l.t.Helper()
	r, err := http.Get("http://" + l.addr + path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestServesWithoutBrokers(t *testing.T) {
	l := begin(t)
	for path, says := range map[string]string{"/healthz": "ok", "/readyz": "ok", "/metrics": "simpolicy_policy_version 0", "/v1/models": "simpolicy", "/health": ""} {
		if code, got := l.get(path); code != 200 || !strings.Contains(got, says) {
			t.Errorf("GET %s: %d %q", path, code, got)
		}
	}
	r, err := http.Post("http://"+l.addr+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"Hi"}`))
	if err != nil || r.StatusCode != 200 {
		t.Errorf("completion: %v, %v", r, err)
	} else {
		r.Body.Close()
	}
	l.end()
}

func TestServesWhileItWaitsForBrokers(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	l := start(t, "--brokers", "127.0.0.1:1", "--run-id", "r", "--state-dir", t.TempDir(), "--http-addr", free.Addr().String())
	l.addr = free.Addr().String()
	l.until("it serves", func() bool {
		r, err := http.Get("http://" + l.addr + "/health")
		if err == nil {
			r.Body.Close()
		}
		return err == nil && r.StatusCode == 200
	})
	if code, got := l.get("/readyz"); code != 503 || !strings.Contains(got, "kafka") {
		t.Errorf("readyz: %d %q; want 503 naming kafka", code, got)
	}
	if _, err := os.Stat(l.file); !os.IsNotExist(err) {
		t.Errorf("the ready file is there before the brokers: %v", err)
	}
	if code, _ := l.get("/health"); code != 200 {
		t.Errorf("health: %d", code)
	}
	l.end()
}

func TestTrainsOverRealSockets(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "n.ppo-batches"), kfake.SeedTopics(1, "n.policy-updates", "n.trainer-reports"))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	addr := broker.ListenAddrs()[0]
	dir := t.TempDir()
	l := begin(t, "--brokers", addr, "--namespace", "n.", "--run-id", "r", "--state-dir", dir)
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics("n.policy-updates"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	rec, err := codec.Encode(&sluicev1.StepBatch{RunId: "r", Step: 1, ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: sluicev1.TokenReduction_TOKEN_REDUCTION_MEAN})
	if err != nil {
		t.Fatal(err)
	}
	out := &kgo.Record{Topic: "n.ppo-batches", Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	if err := client.ProduceSync(t.Context(), out).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var got *kgo.Record
	for got == nil {
		if it := client.PollFetches(t.Context()).RecordIter(); !it.Done() {
			got = it.Next()
		}
	}
	in := codec.Record{Key: got.Key, Value: got.Value}
	for _, h := range got.Headers {
		in.Headers = append(in.Headers, codec.Header{Key: h.Key, Value: h.Value})
	}
	m, err := codec.Decode(in)
	if err != nil {
		t.Fatal(err)
	}
	if u := m.(*sluicev1.PolicyUpdate); u.GetStep() != 1 || u.GetTrained() || u.GetInferenceUrl() != fmt.Sprintf("http://%s", l.addr) {
		t.Errorf("update %v; want step 1, untrained, served at %s", u, l.addr)
	}
	if code, got := l.get("/readyz"); code != 200 {
		t.Errorf("readyz: %d %q", code, got)
	}
	l.end()
	if _, err := os.Stat(filepath.Join(dir, "r.json")); err != nil {
		t.Errorf("state: %v", err)
	}
}
