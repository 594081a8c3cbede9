package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/rootfs"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/runsc"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/state"
	"github.com/sluice-rl/sluice/topology/process"
)

func parse(t *testing.T, env map[string]string, args ...string) (cfg *Config, err error) {
	t.Helper()
	p := Program()
	p.Flags = func(f *process.Flags) { cfg = Flags(f) }
	p.Check = func() error { return cfg.Complete() }
	p.Run = func(context.Context, *process.Life) error { return nil }
	return cfg, process.Execute(p, process.System{
		Args: args, Environ: func(name string) (string, bool) { v, ok := env[name]; return v, ok }, Stdout: t.Output(), Stderr: t.Output(),
	})
}

func TestEnvironmentFillsWhatFlagsLeave(t *testing.T) {
	cfg, err := parse(t, map[string]string{"SLUICE_MEMORY": "1GiB", "SLUICE_TIMEOUT": "5s", "SLUICE_POOL": "bare=7"}, "--timeout=7s", "--state-dir=/s")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Memory != 1<<30 || cfg.Timeout != 7*time.Second || cfg.Pool["bare"] != 7 {
		t.Errorf("memory %d, timeout %s, pool %v; want the environment's 1 GiB, the flag's 7s, bare=7", cfg.Memory, cfg.Timeout, cfg.Pool)
	}
	if cfg.Socket != "/s/sandboxd.sock" || cfg.CacheDir != "/s/rootfs" || cfg.Reservable != cfg.Slots-1 {
		t.Errorf("derived fields: %s %s %d", cfg.Socket, cfg.CacheDir, cfg.Reservable)
	}
}

func TestDefaultsAreValid(t *testing.T) {
	if _, err := parse(t, nil); err != nil {
		t.Error(err)
	}
}

func TestBadConfigurationSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--isolation=process"}, "--i-understand-this-is-not-a-sandbox"},
		{[]string{"--isolation=chroot"}, "want call, trajectory or process"},
		{[]string{"--listen=127.0.0.1:1"}, "--token-file"},
		{[]string{"--listen=nonsense", "--token-file=x"}, "missing port"},
		{[]string{"--memory=1MiB"}, "at least 128MiB"},
		{[]string{"--keep-output=1KiB"}, "at least 16KiB"},
		{[]string{"--slots=0"}, "slots is 0"},
		{[]string{"--breaker-rate=2"}, "a share from 0 to 1"},
		{[]string{"--reservable=99", "--slots=4"}, "reservable slots is 99"},
		{[]string{"--pool=perl=1"}, "perl=1"},
		{[]string{"--timeout=0s"}, "--timeout"},
		{[]string{"--timeout=2h"}, "--max-timeout"},
		{[]string{"--breaker-threshold=9", "--breaker-window=3"}, "--breaker-threshold"},
		{[]string{"--log-level=loud"}, "--log-level"},
		{[]string{"--log-format=xml"}, "--log-format"},
		{[]string{"--warm-wait=0s"}, "--warm-wait"},
		{[]string{"--cpus=0"}, "--cpus"},
		{[]string{"--socket=/" + strings.Repeat("x", 120)}, "107"},
	} {
		if _, err := parse(t, nil, tt.args...); !errors.Is(err, process.ErrUsage) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: got %v, want a configuration error with %q", tt.args, err, tt.want)
		}
	}
	if _, err := parse(t, map[string]string{"SLUICE_SLOTS": "many"}); !errors.Is(err, process.ErrUsage) || !strings.Contains(err.Error(), "SLUICE_SLOTS") {
		t.Errorf("got %v, want an error that names the variable", err)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "17": 17, "64KiB": 64 << 10, "512MiB": 512 << 20, "2G": 2 << 30, " 1 MiB": 1 << 20} {
		var s size
		if err := s.Set(text); err != nil || int64(s) != want {
			t.Errorf("%q is %d (%v), want %d", text, s, err, want)
		}
		var again size
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%q is written %q, which reads as %d", text, s.String(), again)
		}
	}
	for _, text := range []string{"", "x", "-1", "1TB", "9999999999GiB"} {
		var s size
		if err := s.Set(text); err == nil {
			t.Errorf("%q was taken as %d", text, s)
		}
	}
}

func TestExitCodesTellWhy(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, process.ExitOK}, {ErrConfig, process.ExitUsage}, {runsc.ErrNotFound, process.ExitUnusable}, {runsc.ErrUnusable, process.ExitUnusable},
		{rootfs.ErrNoPython, process.ExitUnusable}, {state.ErrInUse, process.ExitUnusable}, {ErrCutShort, process.ExitHardStop},
		{errors.New("else"), process.ExitFailed},
	} {
		if got := process.ExitCode(c.err, Exits...); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

// A dynamically linked runsc fails deep inside with a message that nobody
// understands; it is refused at the start.
func TestUnusableRunscIsRefusedAtOnce(t *testing.T) {
	text := filepath.Join(t.TempDir(), "runsc")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"/nonexistent/runsc": runsc.ErrNotFound, text: runsc.ErrUnusable} {
		if _, err := runsc.Locate(path, ""); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	shell, err := filepath.EvalSymlinks("/bin/sh")
	need(t, "/bin/sh", err)
	if _, err := runsc.Locate(shell, ""); !errors.Is(err, runsc.ErrUnusable) || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("a dynamically linked binary: got %v, want what to do", err)
	}
}
