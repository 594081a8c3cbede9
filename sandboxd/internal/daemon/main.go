package daemon

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/rootfs"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/runsc"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/state"
	"github.com/sluice-rl/sluice/topology/process"
)

// ErrCutShort occurs when running calls were ended by a second signal or by the
// end of the drain time.
var ErrCutShort = errors.New("running calls were cut short")

// Exits are the exit codes of the daemon's errors.
var Exits = []process.Exit{
	{Err: ErrConfig, Code: process.ExitUsage},
	{Err: runsc.ErrNotFound, Code: process.ExitUnusable}, {Err: runsc.ErrUnusable, Code: process.ExitUnusable},
	{Err: rootfs.ErrNoPython, Code: process.ExitUnusable}, {Err: state.ErrInUse, Code: process.ExitUnusable},
	{Err: ErrCutShort, Code: process.ExitHardStop},
}

const about = `sandboxd runs untrusted Python, each program in a gVisor sandbox of its own
that is thrown away afterwards. Exit code 3: there is no usable runsc, no Python in
the root file system, or the state directory is in use.

Inside Docker, start the container with --cap-add SYS_ADMIN --security-opt
seccomp=unconfined, and -v /sys/fs/cgroup:/sys/fs/cgroup:rw for the limits that need
control groups. Without root, sandboxes run in user namespaces; limits that
need cgroup rights are then named as missing in the log and in /healthz.

Health and metrics are served on the socket, and on --listen: /healthz, /readyz and
/metrics. The ready file names the socket.`

// Program is the daemon, with the given commands.
func Program(commands ...process.Command) process.Command {
	var cfg *Config
	return process.Command{
		Name: "sandboxd", About: about, Commands: commands, Exits: Exits, Serves: true, OwnHealth: true, StopsItself: true,
		Flags: func(f *process.Flags) { cfg = Flags(f) },
		Check: func() error { return cfg.Complete() },
		Run: func(graceful context.Context, l *process.Life) error {
			hard, stop := context.WithCancel(context.WithoutCancel(graceful))
			defer stop()
			go func() {
				select {
				case <-l.Hard():
					stop()
				case <-hard.Done():
				}
			}()
			return run(graceful, hard, cfg, l.Log, func() {
				l.Address("socket", cfg.Socket)
				l.Health.Begun()
			})
		},
	}
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
