package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/stages/internal/reward"
	"github.com/sluice-rl/sluice/stages/internal/runner"
	"github.com/sluice-rl/sluice/stages/internal/stage"
)

const about = `reward-scorer gives finished trajectories their rewards.

It reads trajectories and writes to scored, for each, the trajectory with its reward,
the answer found in its last box, the verdict of the comparison with the reference and
every reward's name and version. Trajectories that infrastructure or protocol broke are
passed on ungraded: they never bear a reward. So are those on which the reward fails.

A copy that has been scored is dropped. Outputs, state and offsets commit in one
transaction: each trajectory is scored exactly once, whatever is killed. Scoring itself
is done before the transaction begins, on all processors.`

// config is what the flags set.
type config struct {
	readInvalidCalls bool
	stepsKept        uint64
}

func spec() stage.Spec {
	var cfg config
	return stage.Spec{
		Name:     "reward-scorer",
		About:    about,
		Flags:    cfg.register,
		Validate: cfg.validate,
		Run:      func(ctx context.Context, env *stage.Env) error { return cfg.run(ctx, env) },
	}
}

func (c *config) register(f *pflag.FlagSet) {
	f.BoolVar(&c.readInvalidCalls, "read-invalid-calls", false,
		"look for an answer in the final text of a trajectory that ended with a malformed tool call; without it such a trajectory is wrong unread")
	f.Uint64Var(&c.stepsKept, "steps-kept", 64,
		"how many steps of each run scored copies are remembered for; one of an older step that comes again is scored again, and dropped by the grouper")
}

func (c *config) validate() error {
	if c.stepsKept < 1 {
		return errors.New("--steps-kept is 0, want at least 1")
	}
	return nil
}

// rewards are the rewards to compute, the deciding one first.
func (c *config) rewards() (*reward.Set, error) {
	return reward.NewSet("outcome", reward.Scorer{
		Name: "outcome", Version: "1", Logic: reward.Outcome(), Rules: reward.Rules{ReadInvalidCalls: c.readInvalidCalls},
	})
}

func (c *config) run(ctx context.Context, env *stage.Env) error {
	set, err := c.rewards()
	if err != nil {
		return stage.Usage(err)
	}
	m, err := newMetrics(env.Metrics)
	if err != nil {
		return err
	}
	s := &scorer{set: set}
	return runner.RunKeyed(ctx, runner.KeyedConfig{Cluster: env.Kafka, Stage: "reward-scorer", Prepare: s.prepare},
		func(int32) runner.Machine { return newMachine(s.of, c.stepsKept, env.Log, m) })
}
