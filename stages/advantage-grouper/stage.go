package main

import (
	"context"

	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
)

const about = `advantage-grouper gathers the trajectories of one problem into their group.

It reads prompts, each of which opens a group, and scored, whose trajectories join it.
It writes to grouped every member once, as it arrives, and one GroupClosed per group:
used, degenerate or dropped, with each member's fate and advantage. A member that
infrastructure has lost it asks for once more, with a prompt of its own.

One graded copy of a member counts; others are counted and dropped, also after the group
is closed. A group closes when every place is taken; or at its deadline, whose time runs
only while this stage works and has caught up, and while the stages before it do not
report (stage-status) that their backend is away; or by hand (sluice close). Where members
are missing or ungraded it needs max(2, half its size) graded ones, otherwise it is
dropped.

Outputs, state and offsets commit in one transaction: each group closes exactly once,
whatever is killed. Groups of evaluation are grouped and measured like any others; the
batcher leaves them out.`

func spec() stage.Spec {
	c := &config{}
	return stage.Spec{Name: "advantage-grouper", About: about, Flags: c.register, Validate: c.validate, Run: c.run}
}

func (c *config) run(ctx context.Context, env *stage.Env) error {
	m, err := newMetrics(env.Metrics)
	if err != nil {
		return err
	}
	tells := &standstill{log: env.Log, board: env.Status}
	return kafka.RunKeyed(ctx, kafka.KeyedConfig{Cluster: env.Kafka, Stage: "advantage-grouper"},
		func(int32) kafka.Machine { return newMachine(*c, env.Log, m, tells) })
}
