package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/sluice-rl/sluice/stages/internal/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// launch runs a spec as if it were a process and returns its exit code and output.
func launch(s Spec, environ map[string]string, signals chan os.Signal, args ...string) (code int, stdout, stderr string) {
	if s.Name == "" {
		s.Name = "sampler"
	}
	if s.Run == nil {
		s.Run = func(context.Context, *Env) error { return nil }
	}
	var out, errOut bytes.Buffer
	code = run(s, process{
		args:    args,
		environ: func(k string) (string, bool) { v, ok := environ[k]; return v, ok },
		stdin:   strings.NewReader(""), stdout: &out, stderr: &errOut,
		signals: signals,
	})
	return code, out.String(), errOut.String()
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPrecedence(t *testing.T) {
	file := write(t, "c.yaml", "slots: 3\nbrokers: [a:1, b:2]\n")
	for _, c := range []struct {
		name    string
		args    []string
		environ map[string]string
		want    int
	}{
		{"default", nil, nil, 1},
		{"file before default", []string{"--config", file}, nil, 3},
		{"environment before file", []string{"--config", file}, map[string]string{"SLUICE_SLOTS": "5"}, 5},
		{"flag before environment", []string{"--config", file, "--slots=7"}, map[string]string{"SLUICE_SLOTS": "5"}, 7},
		{"the file may be named by the environment", nil, map[string]string{"SLUICE_CONFIG": file}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var slots int
			s := Spec{Flags: func(fs *pflag.FlagSet) { fs.IntVar(&slots, "slots", 1, "records at once") }}
			if code, _, stderr := launch(s, c.environ, nil, c.args...); code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			if slots != c.want {
				t.Errorf("slots = %d, want %d", slots, c.want)
			}
		})
	}
	t.Run("a list in the file", func(t *testing.T) {
		var brokers []string
		s := Spec{Run: func(_ context.Context, e *Env) error { brokers = e.Kafka.Brokers; return nil }}
		launch(s, nil, nil, "--config", file)
		if len(brokers) != 0 {
			t.Fatal("slots is no flag of this spec: the file should have been refused")
		}
		s.Flags = func(fs *pflag.FlagSet) { fs.Int("slots", 1, "records at once") }
		launch(s, nil, nil, "--config", file)
		if got := strings.Join(brokers, " "); got != "a:1 b:2" {
			t.Errorf("brokers = %s", got)
		}
	})
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		environ map[string]string
		file    string
		want    string
	}{
		{name: "unknown flag", args: []string{"--nope"}, want: "unknown flag: --nope"},
		{name: "stray argument", args: []string{"nope"}, want: `argument "nope" is not understood`},
		{name: "unknown key", file: "slotss: 3", want: `line 1: unknown key "slotss"`},
		{name: "nested key", file: "slots: {a: 1}", want: "line 1: slots: want a plain value"},
		{name: "broken yaml", file: "a: [", want: "c.yaml"},
		{name: "value of the file", file: "slots: many", want: `line 1`},
		{name: "value of the environment", environ: map[string]string{"SLUICE_SLOTS": "many"}, want: "environment variable SLUICE_SLOTS"},
		{name: "no such file", args: []string{"--config", "/nonexistent/c.yaml"}, want: "--config"},
		{name: "broker without port", args: []string{"--brokers=kafka"}, want: `--brokers: "kafka": want host:port`},
		{name: "namespace", args: []string{"--namespace=a b"}, want: "--namespace"},
		{name: "level", args: []string{"--log-level=loud"}, want: "--log-level"},
		{name: "format", args: []string{"--log-format=xml"}, want: "--log-format"},
		{name: "instance", args: []string{"--instance-id=a/b"}, want: "--instance-id"},
		{name: "control characters are escaped", args: []string{"--instance-id=\x1b[2J"}, want: `\x1b[2J`},
		{name: "validate", args: []string{"--slots=0"}, want: "--slots: 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var slots int
			s := Spec{
				Flags: func(fs *pflag.FlagSet) { fs.IntVar(&slots, "slots", 1, "records at once") },
				Validate: func() error {
					if slots == 0 {
						return errors.New("--slots: 0")
					}
					return nil
				},
				Run: func(context.Context, *Env) error { t.Error("must not run"); return nil },
			}
			args := c.args
			if c.file != "" {
				args = append(args, "--config", write(t, "c.yaml", c.file))
			}
			code, _, stderr := launch(s, c.environ, nil, args...)
			if code != ExitUsage || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, want %d with %q, got %s", code, ExitUsage, c.want, stderr)
			}
			if strings.Contains(stderr, "\x1b") {
				t.Errorf("raw escape on the terminal: %q", stderr)
			}
		})
	}
}

func TestSecrets(t *testing.T) {
	file := write(t, "password", "from file\nsecond line\n")
	spec := func(got *string) Spec {
		return Spec{Flags: func(fs *pflag.FlagSet) { Secret(fs, got, "clickhouse-password", "ClickHouse's password") }}
	}
	t.Run("from a file", func(t *testing.T) {
		var got string
		launch(spec(&got), map[string]string{"SLUICE_CLICKHOUSE_PASSWORD": "from env"}, nil, "--clickhouse-password-file", file)
		if got != "from file" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("from the environment", func(t *testing.T) {
		var got string
		launch(spec(&got), map[string]string{"SLUICE_CLICKHOUSE_PASSWORD": "from env"}, nil)
		if got != "from env" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("not as a flag, not in the configuration file", func(t *testing.T) {
		var got string
		if code, _, _ := launch(spec(&got), nil, nil, "--clickhouse-password=x"); code != ExitUsage {
			t.Errorf("flag: exit code %d, want %d", code, ExitUsage)
		}
		if code, _, _ := launch(spec(&got), nil, nil, "--config", write(t, "c.yaml", "clickhouse-password: x")); code != ExitUsage {
			t.Errorf("file: exit code %d, want %d", code, ExitUsage)
		}
	})
	t.Run("a stage that asks for one as a flag is refused", func(t *testing.T) {
		s := Spec{Flags: func(fs *pflag.FlagSet) { fs.String("password", "", "a password") }}
		if code, _, stderr := launch(s, nil, nil); code != ExitUsage || !strings.Contains(stderr, "stage.Secret") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
	t.Run("an empty file", func(t *testing.T) {
		var got string
		if code, _, stderr := launch(spec(&got), nil, nil, "--clickhouse-password-file", write(t, "p", "\n")); code != ExitUsage {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, ExitOK},
		{errors.New("x"), ExitFailed},
		{Usage(errors.New("x")), ExitUsage},
		{fmt.Errorf("a: %w", runner.ErrConfig), ExitUsage},
		{Unusable(errors.New("clickhouse 18")), ExitUnusable},
		{fmt.Errorf("a: %w", runner.ErrUnsupported), ExitUnusable},
		{fmt.Errorf("a: %w", runner.ErrFenced), ExitFenced},
		{context.DeadlineExceeded, ExitFailed},
	} {
		s := Spec{Run: func(context.Context, *Env) error { return c.err }}
		if code, _, _ := launch(s, nil, nil); code != c.want {
			t.Errorf("Run returned %v: exit code %d, want %d", c.err, code, c.want)
		}
	}
	if code, _, _ := launch(Spec{Name: "nobody"}, nil, nil); code != ExitUsage {
		t.Errorf("a stage the topology does not know: exit code %d, want %d", code, ExitUsage)
	}
}

func TestSignals(t *testing.T) {
	t.Run("the first ends the context", func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		s := Spec{Run: func(ctx context.Context, _ *Env) error {
			signals <- syscall.SIGTERM
			<-ctx.Done()
			return fmt.Errorf("poll: %w", ctx.Err())
		}}
		if code, _, stderr := launch(s, nil, signals); code != ExitOK {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
	t.Run("the second does not wait", func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		stuck := make(chan struct{})
		s := Spec{Run: func(ctx context.Context, _ *Env) error {
			signals <- os.Interrupt
			signals <- os.Interrupt
			<-stuck
			return nil
		}}
		code, _, _ := launch(s, nil, signals)
		close(stuck)
		if code != ExitHardStop {
			t.Errorf("exit code %d, want %d", code, ExitHardStop)
		}
	})
	t.Run("a failure while stopping is a failure", func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		s := Spec{Run: func(ctx context.Context, _ *Env) error {
			signals <- os.Interrupt
			<-ctx.Done()
			return errors.New("could not commit")
		}}
		if code, _, _ := launch(s, nil, signals); code != ExitFailed {
			t.Errorf("exit code %d, want %d", code, ExitFailed)
		}
	})
}

func TestHealthAndReadyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	get := func(t *testing.T, addr, what string) (int, string) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
		resp, err := client.Get("http://" + addr + what)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	s := Spec{Run: func(_ context.Context, e *Env) error {
		if _, err := os.Stat(path); err == nil {
			t.Error("ready file before the stage was ready")
		}
		e.Health.Ready("kafka", errors.New("no broker"))
		e.Health.Ready("inference", nil)
		if _, err := os.Stat(path); err == nil {
			t.Error("ready file though one part is not ready")
		}
		e.Health.Ready("kafka", nil)
		if _, err := os.Stat(path); err == nil {
			t.Error("ready file though the stage has not begun its work")
		}
		e.Kafka.Begin("client")
		if _, err := os.Stat(path); err == nil {
			t.Error("ready file though a client named in Begin is not ready")
		}
		e.Health.Ready("kafka client", nil)
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var ready struct {
			PID  int    `json:"pid"`
			HTTP string `json:"http"`
		}
		if err := json.Unmarshal(b, &ready); err != nil || ready.PID != os.Getpid() {
			return fmt.Errorf("ready file %q: %w", b, err)
		}
		if !strings.HasPrefix(ready.HTTP, "127.0.0.1:") {
			t.Errorf("listens on %s, want loopback", ready.HTTP)
		}
		if code, body := get(t, ready.HTTP, "/readyz"); code != 200 {
			t.Errorf("/readyz: %d %s", code, body)
		}
		e.Health.Ready("kafka", errors.New("broker gone"))
		if code, body := get(t, ready.HTTP, "/readyz"); code != 503 || !strings.Contains(body, "broker gone") {
			t.Errorf("/readyz: %d %s", code, body)
		}
		if code, _ := get(t, ready.HTTP, "/healthz"); code != 200 {
			t.Errorf("/healthz: %d though only readiness is lost", code)
		}
		e.Health.Live("loop", errors.New("stuck"))
		if code, _ := get(t, ready.HTTP, "/healthz"); code != 503 {
			t.Errorf("/healthz: %d, want 503", code)
		}
		if _, body := get(t, ready.HTTP, "/metrics"); !strings.Contains(body, `sluice_build_info{stage="sampler"`) || !strings.Contains(body, "go_goroutines") {
			t.Errorf("/metrics lacks build info or Go's own: %.300s", body)
		}
		return nil
	}}
	if code, _, stderr := launch(s, nil, nil, "--ready-file", path); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("ready file is still there after the end")
	}
}

func TestNotReadyWhileNothingWasNamed(t *testing.T) {
	if ok, _ := (&Health{}).report(false); ok {
		t.Error("ready though no part has said so")
	}
	if ok, _ := (&Health{}).report(true); !ok {
		t.Error("not live though no part complains")
	}
}

func TestStopTwice(t *testing.T) {
	s, err := startServer("127.0.0.1:0", nil, &Health{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	s.Stop()
}

func TestPortTaken(t *testing.T) {
	first, err := startServer("127.0.0.1:0", nil, &Health{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Stop()
	if code, _, stderr := launch(Spec{}, nil, nil, "--http-addr", first.Addr()); code != ExitUsage || !strings.Contains(stderr, "--http-addr") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestHelp(t *testing.T) {
	s := Spec{
		About:    "sampler reads prompts, writes trajectories.",
		Flags:    func(fs *pflag.FlagSet) { fs.Int("slots", 4, "records worked on at once") },
		Commands: map[string]Command{"check": nil},
	}
	code, stdout, _ := launch(s, nil, nil, "--help")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"reads prompts", "--slots", "(default 4)", "--brokers", "SLUICE_READY_FILE", "sampler check", "Exit codes:"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("--help does not say %q:\n%s", want, stdout)
		}
	}
	if end := strings.TrimSpace(stdout); !strings.HasSuffix(end, "--instance-id") {
		t.Errorf("--help does not end with the exit codes:\n%s", end)
	}
}

func TestEveryFlagExplainsItself(t *testing.T) {
	newConfig(Spec{Name: "sampler"}).flags.VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			t.Errorf("--%s has no usage text", f.Name)
		}
	})
}

func TestCommand(t *testing.T) {
	s := Spec{Commands: map[string]Command{
		"prepare": func(_ context.Context, args []string, _ io.Reader, stdout, _ io.Writer) error {
			fmt.Fprint(stdout, args)
			return nil
		},
		"check": func(context.Context, []string, io.Reader, io.Writer, io.Writer) error {
			return Usage(errors.New("no file given"))
		},
	}}
	if code, stdout, _ := launch(s, nil, nil, "prepare", "-x", "y"); code != 0 || stdout != "[-x y]" {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
	if code, _, stderr := launch(s, nil, nil, "check"); code != ExitUsage || !strings.Contains(stderr, "no file given") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}
