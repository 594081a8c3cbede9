package main

import (
	"context"

	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `ppo-batcher packs a step's trajectories into micro-batches for a trainer.

It reads grouped: members as they arrive, then the closing of each group; and, broadcast,
policy-updates, which say where the trainer is. When all groups of a step are closed it
writes to ppo-batches one StepBatch, with count 0 if there is nothing to train on, and
behind it, on the same partition, the step's micro-batches.

Members are packed first-fit decreasing by padded tokens. Not packed, but named with
their reason: advantage 0, no policy tokens, longer than the training context, sampled
by a policy too old, digests that do not fit the tokens. Advantages are multiplied by (data in the micro-batch / N), where N
counts all graded members of used and degenerate groups.

A closing that cannot be used, because it gives the step another number of groups or its
advantages do not sum to 0, goes to dead-letters and counts as that of a dropped group.

Outputs, state and offsets commit in one transaction: each step is batched exactly once,
whatever is killed. Steps that hold nothing but groups of evaluation are not batched.`

const name = "ppo-batcher"

func spec() stage.Spec {
	c := &config{rules: step.DefaultRules}
	return stage.Spec{Name: name, About: about, Flags: c.register, Validate: c.validate, Run: c.run}
}

func (c *config) run(ctx context.Context, env *stage.Env) error {
	if err := c.checkSize(env.Topology.MaxMessageBytes); err != nil {
		return process.Usage(err)
	}
	m, err := newMetrics(env.Metrics)
	if err != nil {
		return err
	}
	steps := newProgress(env.Log, m, c.stalled)
	env.Status.Steps(steps.steps)
	return kafka.RunKeyed(ctx, kafka.KeyedConfig{Cluster: env.Kafka, Stage: name},
		func(partition int32) kafka.Machine { return newMachine(partition, *c, env.Log, m, steps, env.Status) })
}
