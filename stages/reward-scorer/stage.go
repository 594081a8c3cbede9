package main

import (
	"context"

	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `reward-scorer gives finished trajectories their rewards.

It reads trajectories and writes to scored, for each, the trajectory with its reward,
the answer found in its last box, the verdict of the comparison with the reference and
every reward's name and version. Trajectories that infrastructure or protocol broke are
passed on ungraded: they never bear a reward. So are those on which the reward fails.

A copy that has been scored is dropped. Outputs, state and offsets commit in one
transaction: each trajectory is scored exactly once, whatever is killed. Scoring itself
is done before the transaction begins, on all processors.`

func spec() stage.Spec {
	c := &config{}
	return stage.Spec{
		Name: "reward-scorer", About: about, Flags: c.register, Validate: c.validate, Run: c.run,
		Commands: []process.Command{checkCommand(), scoreCommand()},
	}
}

func (c *config) run(ctx context.Context, env *stage.Env) error {
	m, err := newMetrics(env.Metrics)
	if err != nil {
		return err
	}
	s := &scorer{set: c.set}
	return kafka.RunKeyed(ctx, kafka.KeyedConfig{Cluster: env.Kafka, Stage: "reward-scorer", Prepare: s.prepare},
		func(int32) kafka.Machine { return newMachine(s.of, c.stepsKept, env.Log, m) })
}
