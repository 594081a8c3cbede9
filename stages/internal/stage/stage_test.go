package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/topology/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// launch runs a stage as if it were a process and returns its exit code and output.
func launch(s Spec, args ...string) (code int, stdout, stderr string) {
	if s.Name == "" {
		s.Name = "sampler"
	}
	if s.Run == nil {
		s.Run = func(context.Context, *Env) error { return nil }
	}
	var out, errOut bytes.Buffer
	code = process.Run(s.Program(), process.System{Args: args, Stdout: &out, Stderr: &errOut})
	return code, out.String(), errOut.String()
}

func TestUsageErrors(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "topology.yaml")
	if err := os.WriteFile(broken, []byte("topics: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, arg, want string }{
		{"broker without port", "--brokers=kafka", `--brokers: "kafka": want host:port`},
		{"no broker", "--brokers=", "--brokers is empty"},
		{"namespace", "--namespace=a b", "--namespace"},
		{"instance", "--instance-id=a/b", "--instance-id"},
		{"control characters are escaped", "--instance-id=\x1b[2J", `\x1b[2J`},
		{"no topology", "--topology=/nonexistent.yaml", "--topology"},
		{"a broken topology", "--topology=" + broken, broken},
		{"stray argument", "nope", `argument "nope" is not understood`},
		{"what the stage refuses", "--brokers=bad:1", "the stage refuses"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Spec{
				Validate: func() error { return errors.New("the stage refuses") },
				Run:      func(context.Context, *Env) error { t.Error("must not run"); return nil },
			}
			code, _, stderr := launch(s, c.arg)
			if code != process.ExitUsage || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, want %d with %q, got %s", code, process.ExitUsage, c.want, stderr)
			}
			if strings.Contains(stderr, "\x1b") {
				t.Errorf("raw escape on the terminal: %q", stderr)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, process.ExitOK},
		{errors.New("x"), process.ExitFailed},
		{process.Usage(errors.New("x")), process.ExitUsage},
		{fmt.Errorf("a: %w", kafka.ErrConfig), process.ExitUsage},
		{process.Unusable(errors.New("clickhouse 18")), process.ExitUnusable},
		{fmt.Errorf("a: %w", kafka.ErrUnsupported), process.ExitUnusable},
		{fmt.Errorf("a: %w", kafka.ErrFenced), process.ExitFenced},
	} {
		s := Spec{Run: func(context.Context, *Env) error { return c.err }}
		if code, _, _ := launch(s); code != c.want {
			t.Errorf("Run returned %v: exit code %d, want %d", c.err, code, c.want)
		}
	}
	if code, _, _ := launch(Spec{Name: "nobody"}); code != process.ExitUsage {
		t.Errorf("a stage the topology does not know: exit code %d, want %d", code, process.ExitUsage)
	}
}

func TestTheStageIsReadyOnceTheRunnerSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	exists := func() bool { _, err := os.Stat(path); return err == nil }
	s := Spec{Run: func(_ context.Context, e *Env) error {
		e.Health.Ready("inference", nil)
		if exists() {
			t.Error("ready file though the stage has not begun its work")
		}
		e.Kafka.Begin("client")
		if exists() {
			t.Error("ready file though a client named in Begin is not ready")
		}
		e.Health.Ready("kafka client", nil)
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var ready struct {
			PID    int
			Health string
		}
		if err := json.Unmarshal(b, &ready); err != nil || ready.PID != os.Getpid() || !strings.HasPrefix(ready.Health, "127.0.0.1:") {
			return fmt.Errorf("ready file %q, want this process on loopback: %w", b, err)
		}
		return nil
	}}
	if code, _, stderr := launch(s, "--ready-file", path); code != process.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
}

func TestEveryFlagExplainsItself(t *testing.T) {
	flags := &process.Flags{}
	Spec{Name: "sampler"}.Program().Flags(flags)
	flags.Group("Kafka").VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			t.Errorf("--%s has no usage text", f.Name)
		}
	})
	if flags.Group("Kafka").Lookup("instance-id") == nil {
		t.Error("the group Kafka lacks --instance-id")
	}
}

func TestHelp(t *testing.T) {
	code, stdout, _ := launch(Spec{
		About:    "sampler reads prompts, writes trajectories.",
		Flags:    func(f *process.Flags) { f.Group("Sampling").Int("slots", 4, "records worked on at once") },
		Commands: []process.Command{{Name: "check", Short: "Check"}},
	}, "--help")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"reads prompts", "Sampling:", "--slots", "(default 4)", "Kafka:", "--brokers", "--ready-file", "sampler COMMAND", "Exit codes:", "--instance-id"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("--help does not say %q:\n%s", want, stdout)
		}
	}
}
