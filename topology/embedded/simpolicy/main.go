package simpolicy

import (
	"context"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/state"
	"github.com/sluice-rl/sluice/topology/process"
)

// Program is simpolicy.
func Program() process.Command {
	var c config
	return process.Command{
		Name: "simpolicy", About: about, Serves: true,
		HTTPAddr: "127.0.0.1:8000", HTTPServes: "/v1/completions and the rest of the inference server, ",
		Flags: c.register, Check: c.check,
		Run: func(ctx context.Context, l *process.Life) error { return run(ctx, &c, l) },
		Exits: []process.Exit{
			{Err: state.ErrNewer, Code: process.ExitUnusable}, {Err: state.ErrInUse, Code: process.ExitUnusable},
			{Err: state.ErrUnusable, Code: process.ExitUnusable},
		},
	}
}
