package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/topology/process/readyfile"
)

var errForeign = errors.New("foreign data")

type ready = func(map[string]string) error

func program(serve func(context.Context, ready) (func() error, error)) Program {
	return Program{
		Name: "server", About: "server serves.\n", ReadyFile: `{"pid":..}`, Unusable: []error{errForeign},
		Flags: func(f *pflag.FlagSet) { f.Bool("bad", false, "a flag") }, Validate: func() error { return nil },
		Serve: func(ctx context.Context, _ *slog.Logger, r ready) (func() error, error) { return serve(ctx, r) },
	}
}

func signalled() { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) }

func TestStatusSaysWhyItEnded(t *testing.T) {
	fails := func(err error) func(context.Context, ready) (func() error, error) {
		return func(context.Context, ready) (func() error, error) { return nil, err }
	}
	// until serves until the first signal, which it sends itself.
	until := func(stop func() error) func(context.Context, ready) (func() error, error) {
		return func(ctx context.Context, _ ready) (func() error, error) {
			signalled()
			<-ctx.Done()
			return stop, nil
		}
	}
	for _, c := range []struct {
		name  string
		serve func(context.Context, ready) (func() error, error)
		args  []string
		want  int
		says  string
	}{
		{"stopped", until(func() error { return nil }), nil, ExitClean, "stopped"},
		{"nothing to stop", until(nil), nil, ExitClean, "stopped"},
		{"a failed stop", until(func() error { return errors.New("disk full") }), nil, ExitFailed, "disk full"},
		{"a second signal", until(func() error { signalled(); select {} }), nil, ExitHardStop, "second signal"},
		{"failed", fails(errors.New("no port")), nil, ExitFailed, "no port"},
		{"unusable", fails(errForeign), nil, ExitUnusable, "foreign data"},
		{"unknown flag", nil, []string{"--nonsense"}, ExitUsage, "nonsense"},
		{"argument", nil, []string{"x"}, ExitUsage, "only flags"},
		{"log level", nil, []string{"--log-level", "loud"}, ExitUsage, "loud"},
		{"help", nil, []string{"--help"}, ExitClean, "--ready-file"},
	} {
		var out, err bytes.Buffer
		if got := Main(program(c.serve), c.args, &out, &err); got != c.want || !strings.Contains(out.String()+err.String(), c.says) {
			t.Errorf("%s: status %d, said %q; want %d and %q", c.name, got, out.String()+err.String(), c.want, c.says)
		}
	}
}

func TestTheReadyFileIsThereWhileItServes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready")
	serve := func(ctx context.Context, ready ready) (func() error, error) {
		if err := ready(map[string]string{"kafka": "127.0.0.1:1"}); err != nil {
			t.Error(err)
		}
		if got, err := readyfile.Read(path, os.Getpid()); err != nil || got["kafka"] != "127.0.0.1:1" {
			t.Errorf("while it serves: %v, %v", got, err)
		}
		signalled()
		<-ctx.Done()
		return func() error { return nil }, nil
	}
	var out bytes.Buffer
	if got := Main(program(serve), []string{"--ready-file", path}, &out, &out); got != ExitClean {
		t.Errorf("status %d, said %q", got, out.String())
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the stop: %v, want no file", err)
	}
}
