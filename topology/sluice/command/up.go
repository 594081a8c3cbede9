package command

import (
	"context"
	"errors"

	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/sluice/up"
)

const upAbout = `Run the whole system on this machine: the binaries that production uses, each as a
process of its own, with an embedded broker, ClickHouse, sandbox daemon and policy.
Each embedded part is replaced by an address where its flag is given.

A live view shows steps, trajectories, depth per topic and mean reward; at the end
comes a table that ClickHouse answers by SQL, one trajectory turn by turn, and
DIR/summary.json. Ctrl-C stops everything in order; the same command then goes on
with the interrupted run. A finished run is followed by a new one.

The settings of the log are those of the processes, whose logs are in DIR/logs.

simpolicy is a stand-in for a GPU: a small policy over strategies with a real PPO
update. To train a real model give --inference-url, and let its trainer read
ppo-batches and answer in policy-updates.`

func upCommand() process.Command {
	var o up.Options
	return process.Command{
		Name: "up", Short: "Run the whole system on this machine", About: upAbout, LogLevel: "info", StopsItself: true,
		Flags: o.Register, Check: func() error { return o.Validate() },
		Run: func(ctx context.Context, l *process.Life) error {
			o.LogFlags = l.LogFlags
			err := up.Run(ctx, l.Hard(), o, l.Stdout)
			switch {
			case errors.Is(err, up.ErrStopped):
				return process.Status(process.ExitStopped) // the screen has said so
			case errors.Is(err, up.ErrHardStop):
				return process.Status(process.ExitHardStop)
			}
			return err
		},
	}
}
