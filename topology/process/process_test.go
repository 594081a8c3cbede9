package process

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

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// launch runs a program as if it were a process and returns its exit code and output.
func launch(c Command, environ map[string]string, signals chan os.Signal, args ...string) (code int, stdout, stderr string) {
	if c.Name == "" {
		c.Name, c.Serves = "server", true
	}
	if c.Run == nil {
		c.Run = func(context.Context, *Life) error { return nil }
	}
	var out, errOut bytes.Buffer
	code = Run(c, System{
		Args:    args,
		Environ: func(k string) (string, bool) { v, ok := environ[k]; return v, ok },
		Stdin:   strings.NewReader(""), Stdout: &out, Stderr: &errOut,
		Signals: signals,
	})
	return code, out.String(), errOut.String()
}

// slots is a program's one flag.
func slots(n *int) func(*Flags) {
	return func(f *Flags) { f.Group("Work").IntVar(n, "slots", 1, "records at once") }
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
	file := write(t, "c.yaml", "slots: 3\nlog-level: debug\n")
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
			var n int
			s := Command{Flags: slots(&n)}
			if code, _, stderr := launch(s, c.environ, nil, c.args...); code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			if n != c.want {
				t.Errorf("slots = %d, want %d", n, c.want)
			}
		})
	}
	t.Run("a list in the file", func(t *testing.T) {
		var brokers []string
		s := Command{Flags: func(f *Flags) { f.Group("Kafka").StringSliceVar(&brokers, "brokers", []string{"x:1"}, "brokers") }}
		file := write(t, "c.yaml", "slots: 3\nbrokers: [a:1, b:2]\n")
		if code, _, _ := launch(s, nil, nil, "--config", file); code != ExitUsage || strings.Join(brokers, " ") != "x:1" {
			t.Fatal("slots is no flag of this program: the file should have been refused")
		}
		file = write(t, "c.yaml", "brokers: [a:1, b:2]\n")
		if code, _, stderr := launch(s, nil, nil, "--config", file); code != ExitOK || strings.Join(brokers, " ") != "a:1 b:2" {
			t.Errorf("exit code %d, brokers = %s: %s", code, brokers, stderr)
		}
	})
	for name, content := range map[string]string{"an empty file": "", "a file of remarks": "# later\n", "a file with no value": "---\n"} {
		if code, _, stderr := launch(Command{}, nil, nil, "--config", write(t, "c.yaml", content)); code != ExitOK {
			t.Errorf("%s: exit code %d: %s", name, code, stderr)
		}
	}
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
		{name: "a key twice", file: "slots: 1\nslots: 2", want: "line 2: slots is given on line 1 already"},
		{name: "a list for a file", file: "- slots", want: "line 1: want keys and values"},
		{name: "no folder for the ready file", args: []string{"--ready-file=/nonexistent/ready"}, want: "--ready-file"},
		{name: "address", args: []string{"--http-addr=nowhere"}, want: "--http-addr"},
		{name: "broken yaml", file: "a: [", want: "c.yaml"},
		{name: "value of the file", file: "slots: many", want: `line 1`},
		{name: "value of the environment", environ: map[string]string{"SLUICE_SLOTS": "many"}, want: "environment variable SLUICE_SLOTS"},
		{name: "no such file", args: []string{"--config", "/nonexistent/c.yaml"}, want: "--config"},
		{name: "level", args: []string{"--log-level=loud"}, want: "--log-level"},
		{name: "format", args: []string{"--log-format=xml"}, want: "--log-format"},
		{name: "control characters are escaped", args: []string{"--log-level=\x1b[2J"}, want: `\x1b[2J`},
		{name: "validate", args: []string{"--slots=0"}, want: "--slots: 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n int
			s := Command{
				Flags: slots(&n),
				Check: func() error {
					if n == 0 {
						return errors.New("--slots: 0")
					}
					return nil
				},
				Run: func(context.Context, *Life) error { t.Error("must not run"); return nil },
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
	spec := func(got *string) Command {
		return Command{Flags: func(f *Flags) { Secret(f.Group("ClickHouse"), got, "clickhouse-password", "ClickHouse's password") }}
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
	t.Run("a program that asks for one as a flag is refused", func(t *testing.T) {
		s := Command{Flags: func(f *Flags) { f.Group("Work").String("password", "", "a password") }}
		if code, _, stderr := launch(s, nil, nil); code != ExitUsage || !strings.Contains(stderr, "process.Secret") {
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
	errForeign, errTaken := errors.New("foreign data"), errors.New("taken")
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, ExitOK},
		{errors.New("x"), ExitFailed},
		{Usage(errors.New("x")), ExitUsage},
		{Unusable(errors.New("clickhouse 18")), ExitUnusable},
		{Stopped(errors.New("half done")), ExitStopped},
		{fmt.Errorf("a: %w", ErrFenced), ExitFenced},
		{fmt.Errorf("a: %w", ErrHardStop), ExitHardStop},
		{fmt.Errorf("a: %w", errForeign), ExitUnusable},
		{fmt.Errorf("a: %w", errTaken), ExitFenced},
		{Usage(errForeign), ExitUnusable},
		{Status(124), 124},
		{context.DeadlineExceeded, ExitFailed},
	} {
		for _, serves := range []bool{true, false} {
			s := Command{
				Name: "program", Serves: serves, Exits: []Exit{{errForeign, ExitUnusable}, {errTaken, ExitFenced}},
				Run: func(context.Context, *Life) error { return c.err },
			}
			if code, _, _ := launch(s, nil, nil); code != c.want {
				t.Errorf("Run returned %v: exit code %d, want %d", c.err, code, c.want)
			}
		}
	}
}

func TestSignals(t *testing.T) {
	t.Run("the first ends the context", func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		s := Command{Run: func(ctx context.Context, _ *Life) error {
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
		s := Command{Run: func(ctx context.Context, _ *Life) error {
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
		s := Command{Run: func(ctx context.Context, _ *Life) error {
			signals <- os.Interrupt
			<-ctx.Done()
			return errors.New("could not commit")
		}}
		if code, _, _ := launch(s, nil, signals); code != ExitFailed {
			t.Errorf("exit code %d, want %d", code, ExitFailed)
		}
	})
	t.Run("a command that was cut short says so", func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		s := Command{Name: "command", Run: func(ctx context.Context, _ *Life) error {
			signals <- os.Interrupt
			<-ctx.Done()
			return ctx.Err()
		}}
		if code, _, stderr := launch(s, nil, signals); code != ExitStopped || !strings.Contains(stderr, "stopped by a signal") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
	t.Run("the second is left to a program that says so, the third is not", func(t *testing.T) {
		for third, want := range map[bool]int{false: ExitFailed, true: ExitHardStop} {
			signals := make(chan os.Signal, 3)
			stuck := make(chan struct{})
			s := Command{StopsItself: true, Name: "command", Run: func(ctx context.Context, l *Life) error {
				signals <- os.Interrupt
				<-ctx.Done()
				select {
				case <-l.Hard():
					t.Error("hard after the first signal")
				default:
				}
				signals <- os.Interrupt
				<-l.Hard()
				if third {
					signals <- os.Interrupt
					<-stuck
				}
				return errors.New("cut short")
			}}
			code, _, stderr := launch(s, nil, signals)
			close(stuck)
			if code != want {
				t.Errorf("a third signal %v: exit code %d, want %d: %s", third, code, want, stderr)
			}
		}
	})
}

func get(t *testing.T, addr, what string) (int, string) {
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

func TestHealthAndReadyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	s := Command{Run: func(_ context.Context, e *Life) error {
		e.Address("kafka", "127.0.0.1:9")
		if _, err := os.Stat(path); err == nil {
			t.Error("ready file before it was ready")
		}
		e.Health.Ready("kafka", errors.New("no broker"))
		e.Health.Ready("inference", nil)
		if _, err := os.Stat(path); err == nil {
			t.Error("ready file though one part is not ready")
		}
		e.Health.Ready("kafka", nil)
		if _, err := os.Stat(path); err == nil {
			t.Error("ready file though it has not begun its work")
		}
		e.Health.Begun()
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var ready struct {
			PID   int
			HTTP  string `json:"health"`
			Kafka string
		}
		if err := json.Unmarshal(b, &ready); err != nil || ready.PID != os.Getpid() || ready.Kafka != "127.0.0.1:9" {
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
		if _, body := get(t, ready.HTTP, "/metrics"); !strings.Contains(body, `sluice_build_info{program="server"`) || !strings.Contains(body, "go_goroutines") {
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
	if (&Health{}).IsReady() {
		t.Error("ready though no part has said so")
	}
}

func TestAWatcherIsToldOfEveryPart(t *testing.T) {
	var told []string
	h := &Health{}
	h.Ready("kafka", errors.New("away"))
	h.Watch(func(name string, err error) { told = append(told, fmt.Sprint(name, " ", err)) })
	h.Begun()
	h.Ready("kafka", nil)
	if got := strings.Join(told, ", "); got != "kafka away, work <nil>, kafka <nil>" {
		t.Errorf("told %s", got)
	}
}

func TestAReadyFileOfAKilledPredecessorIsRemoved(t *testing.T) {
	path := write(t, "ready", `{"pid":1}`)
	launch(Command{Run: func(context.Context, *Life) error {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("while it is not ready: %v, want no file", err)
		}
		return nil
	}}, nil, nil, "--ready-file", path)
}

func TestAReadyFileThatCannotBeWrittenEndsTheProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := Command{Run: func(ctx context.Context, l *Life) error {
		os.RemoveAll(dir)
		l.Health.Begun()
		<-ctx.Done()
		return ctx.Err()
	}}
	if code, _, stderr := launch(s, nil, nil, "--ready-file", filepath.Join(dir, "ready")); code != ExitFailed || !strings.Contains(stderr, "--ready-file") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestHTTPTakesFurtherHandlers(t *testing.T) {
	launch(Command{Run: func(_ context.Context, l *Life) error {
		if code, _ := get(t, l.Addr(), "/v1/models"); code != http.StatusServiceUnavailable {
			t.Errorf("before there is a handler: %d, want that it is starting", code)
		}
		l.HTTP.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "inference") })
		if _, body := get(t, l.Addr(), "/v1/models"); body != "inference" {
			t.Errorf("answer %q", body)
		}
		l.Health.Begun()
		for path, want := range map[string]int{"/healthz": 200, "/v2/models": 404} {
			if code, _ := get(t, l.Addr(), path); code != want {
				t.Errorf("%s: %d, want %d", path, code, want)
			}
		}
		return nil
	}}, nil, nil)
}

func TestStopTwice(t *testing.T) {
	s, err := startServer("127.0.0.1:0", prometheus.NewRegistry(), &Health{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	s.Stop()
}

func TestPortTaken(t *testing.T) {
	first, err := startServer("127.0.0.1:0", prometheus.NewRegistry(), &Health{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Stop()
	if code, _, stderr := launch(Command{}, nil, nil, "--http-addr", first.Addr()); code != ExitFailed || !strings.Contains(stderr, "--http-addr") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestHelp(t *testing.T) {
	s := Command{
		Name: "server", Serves: true, About: "server reads prompts, writes trajectories.",
		Flags:    func(f *Flags) { f.Group("Work").Int("slots", 4, "records worked on at once") },
		Commands: []Command{{Name: "check", Args: []string{"FILE"}, Short: "Look at a file"}},
	}
	code, stdout, _ := launch(s, nil, nil, "--help")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"reads prompts", "server [flags]", "check FILE  Look at a file", "\nWork:\n", "--slots", "(default 4)",
		"\nProcess:\n", "--ready-file", "--version", "SLUICE_LOG_LEVEL", "Exit codes:",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("--help does not say %q:\n%s", want, stdout)
		}
	}
	if !strings.HasSuffix(stdout, exitCodesText) {
		t.Errorf("--help does not end with the exit codes:\n%s", stdout)
	}
	_, again, _ := launch(s, nil, nil, "-h")
	if again != stdout {
		t.Errorf("-h says something else:\n%s", again)
	}
}

func TestVersion(t *testing.T) {
	for _, c := range []Command{{Name: "server", Serves: true}, {Name: "server", Run: func(context.Context, *Life) error { return errors.New("must not run") }}} {
		if code, stdout, _ := launch(c, nil, nil, "--version"); code != 0 || !strings.HasPrefix(stdout, "server ") || !strings.Contains(stdout, "go1.") {
			t.Errorf("exit code %d, %q", code, stdout)
		}
	}
}

func TestCommands(t *testing.T) {
	s := Command{Name: "program", Exits: []Exit{{io.ErrNoProgress, ExitUnusable}}, Commands: []Command{
		{Name: "pass", PassesOn: true, Run: func(_ context.Context, l *Life) error { fmt.Fprint(l.Stdout, l.Args); return nil }},
		{Name: "check", Run: func(context.Context, *Life) error { return Usage(errors.New("no file given")) }},
		{Name: "stuck", Run: func(context.Context, *Life) error { return io.ErrNoProgress }},
		{Name: "letters", Commands: []Command{
			{Name: "show", Args: []string{"ID"}, Flags: func(f *Flags) { f.Group("Letters").Bool("json", false, "as JSON") },
				Run: func(_ context.Context, l *Life) error { fmt.Fprint(l.Stdout, "letter ", l.Args[0]); return nil }},
		}},
	}}
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"pass -x y --help", ExitOK, "[-x y --help]", ""},
		{"check", ExitUsage, "", "program check: no file given\nprogram check: see program check --help\n"},
		{"stuck", ExitUnusable, "", "program stuck: "},
		{"letters show 3 --json", ExitOK, "letter 3", ""},
		{"letters show", ExitUsage, "", "program letters show: want ID, got 0 arguments"},
		{"letters shwo", ExitUsage, "", "did you mean show?"},
		{"chekc", ExitUsage, "", "did you mean check?"},
		{"check --jsn", ExitUsage, "", "program check: unknown flag: --jsn"},
		{"", ExitOK, "Usage:", ""},
	} {
		// Not by launch, which gives the root a Run.
		var out, errOut bytes.Buffer
		code := Run(s, System{Args: strings.Fields(c.args), Stdout: &out, Stderr: &errOut})
		if code != c.code || !strings.Contains(out.String(), c.stdout) || !strings.Contains(errOut.String(), c.stderr) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q; want %d, %q, %q", c.args, code, out.String(), errOut.String(), c.code, c.stdout, c.stderr)
		}
	}
}

func TestAProgramWithHealthOfItsOwnOpensNoPort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready")
	c := Command{Name: "sandboxd", Serves: true, OwnHealth: true, Run: func(_ context.Context, l *Life) error {
		l.Address("socket", "/run/sandboxd.sock")
		l.Health.Begun()
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(b), `"socket":"/run/sandboxd.sock"`) || strings.Contains(string(b), "health") {
			t.Errorf("ready file %q, %v: want the socket alone", b, err)
		}
		return nil
	}}
	if code, _, stderr := launch(c, nil, nil, "--ready-file", path); code != ExitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code, _, _ := launch(c, nil, nil, "--http-addr", "127.0.0.1:0"); code != ExitUsage {
		t.Errorf("--http-addr: exit code %d, want %d", code, ExitUsage)
	}
}
