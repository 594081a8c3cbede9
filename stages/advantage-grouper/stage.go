package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/stages/internal/runner"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `advantage-grouper gathers the trajectories of one problem into their group.

It reads prompts, each of which opens a group, and scored, whose trajectories join it.
It writes to grouped every member once, as it arrives, and one GroupClosed per group:
used, degenerate or dropped, with each member's fate and advantage.

The first graded copy of a member counts; later copies are counted and dropped, also
after the group is closed. A group closes when every place is taken, or at its deadline,
whose time runs only while this stage works and has caught up. Where members are missing
or ungraded it needs max(2, half its size) graded ones, otherwise it is dropped.

Outputs, state and offsets commit in one transaction: each group closes exactly once,
whatever is killed. Groups of evaluation are grouped and measured like any others; the
batcher leaves them out.`

func spec() stage.Spec {
	var cfg config
	return stage.Spec{
		Name:  "advantage-grouper",
		About: about,
		Flags: func(flags *process.Flags) {
			f := flags.Group("Groups")
			f.DurationVar(&cfg.deadline, "group-deadline", 15*time.Minute,
				"close a group this long after it was opened, with the members it has; the time starts anew when the stage does")
			f.BoolVar(&cfg.rule.DivideByDeviation, "divide-by-deviation", false,
				"also divide advantages by the standard deviation of the group's rewards")
			f.Uint64Var(&cfg.stepsKept, "steps-kept", 256,
				"how many steps of each run closed groups are remembered for: what arrives of an older step is dropped as late, even the prompt of a group never seen")
		},
		Validate: cfg.validate,
		Run:      func(ctx context.Context, env *stage.Env) error { return cfg.run(ctx, env) },
	}
}

func (c *config) validate() error {
	var errs []error
	if c.deadline <= 0 {
		errs = append(errs, fmt.Errorf("--group-deadline is %s, want above 0", c.deadline))
	}
	if c.stepsKept < 1 {
		errs = append(errs, fmt.Errorf("--steps-kept is 0, want at least 1"))
	}
	return errors.Join(errs...)
}

func (c *config) run(ctx context.Context, env *stage.Env) error {
	m, err := newMetrics(env.Metrics)
	if err != nil {
		return err
	}
	return runner.RunKeyed(ctx, runner.KeyedConfig{Cluster: env.Kafka, Stage: "advantage-grouper"},
		func(int32) runner.Machine { return newMachine(*c, env.Log, m) })
}
