package command

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sluice-rl/sluice/topology/sluice/up"
)

const upAbout = `Run the whole system on this machine: the binaries that production uses, each as a
process of its own, with an embedded broker, ClickHouse, sandbox daemon and policy.
Each embedded part is replaced by an address where its flag is given.

A live view shows steps, trajectories, depth per topic and mean reward; at the end
comes a table that ClickHouse answers by SQL, one trajectory turn by turn, and
DIR/summary.json. Ctrl-C stops everything in order; the same command then goes on
with the interrupted run. A finished run is followed by a new one.

simpolicy is a stand-in for a GPU: a small policy over strategies with a real PPO
update. To train a real model give --inference-url, and let its trainer read
ppo-batches and answer in policy-updates.

Exit status: 0 finished, 1 failed, 2 wrong use, 3 the directory or a process is
unusable, 4 stopped hard by a second signal, 130 stopped by a signal.`

// exitStopped is what shells give a program that Ctrl-C ended.
const (
	exitHardStop = 4
	exitStopped  = 130
)

func upCommand() *cobra.Command {
	var o up.Options
	c := &cobra.Command{Use: "up", Short: "Run the whole system on this machine", Long: upAbout, Args: noArgs}
	o.Register(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		err := up.Run(o, c.OutOrStdout())
		switch {
		case errors.Is(err, up.ErrStopped):
			return exitStatus(exitStopped)
		case errors.Is(err, up.ErrHardStop):
			return exitStatus(exitHardStop)
		}
		return err
	}
	return c
}
