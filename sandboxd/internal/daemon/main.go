package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/rootfs"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/runsc"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/state"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNoRunsc     = 3
	ExitNoRoot      = 4
	ExitStateInUse  = 5
	ExitInterrupted = 6
)

// ErrCutShort occurs when running calls were ended by a second signal or by the
// end of the drain time.
var ErrCutShort = errors.New("running calls were cut short")

// ExitCode maps an error to the exit code that tells its cause.
func ExitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return ExitOK
	case errors.Is(err, ErrConfig):
		return ExitUsage
	case errors.Is(err, runsc.ErrNotFound), errors.Is(err, runsc.ErrUnusable):
		return ExitNoRunsc
	case errors.Is(err, rootfs.ErrNoPython):
		return ExitNoRoot
	case errors.Is(err, state.ErrInUse):
		return ExitStateInUse
	case errors.Is(err, ErrCutShort):
		return ExitInterrupted
	}
	return ExitFailed
}

const about = `sandboxd runs untrusted Python, each program in a gVisor sandbox of its own
that is thrown away afterwards.

  sandboxd [flags]                  serve
  sandboxd run [flags] FILE.py      run one program (see: sandboxd run --help)

Every flag can also be set by an environment variable: --state-dir is
SANDBOXD_STATE_DIR.

Exit codes: 0 stopped cleanly · 1 failed · 2 flags make no sense · 3 no usable
runsc · 4 no Python in the root file system · 5 state directory in use ·
6 running calls were cut short.

Inside Docker, start the container with --cap-add SYS_ADMIN --security-opt
seccomp=unconfined, and -v /sys/fs/cgroup:/sys/fs/cgroup:rw for the limits that need
control groups. Without root, sandboxes run in user namespaces; limits that
need cgroup rights are then named as missing in the log and in /healthz.

Flags:
`

// Serve is the daemon's command: parse, run until a signal, return why it ended.
func Serve(ctx context.Context, args []string, stdout io.Writer) error {
	fs := pflag.NewFlagSet("sandboxd", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() { fmt.Fprint(stdout, about, fs.FlagUsages()) }
	cfg := Flags(fs)
	if err := Parse(fs, args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%w: unexpected argument %q: the only command is run", ErrConfig, fs.Arg(0))
	}
	if err := cfg.Complete(); err != nil {
		return err
	}
	log, err := cfg.Logger(os.Stderr)
	if err != nil {
		return err
	}
	graceful, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	hard, stopHard := context.WithCancel(context.WithoutCancel(ctx))
	defer stopHard()
	go func() {
		<-graceful.Done()
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(again)
		select {
		case <-again:
			stopHard()
		case <-hard.Done():
		}
	}()
	return run(graceful, hard, cfg, log)
}

// Parse reads args, then the environment for what args did not set.
func Parse(fs *pflag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return FromEnvironment(fs, os.LookupEnv)
}

// version is the module's version, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return info.Main.Version
}
