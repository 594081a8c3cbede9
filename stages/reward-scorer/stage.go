package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/stages/internal/runner"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `reward-scorer gives finished trajectories their rewards.

It reads trajectories and writes to scored, for each, the trajectory with its reward,
the answer found in its last box, the verdict of the comparison with the reference and
every reward's name and version. Trajectories that infrastructure or protocol broke are
passed on ungraded: they never bear a reward. So are those on which the reward fails.

A copy that has been scored is dropped. Outputs, state and offsets commit in one
transaction: each trajectory is scored exactly once, whatever is killed. Scoring itself
is done before the transaction begins, on all processors.

reward-scorer check [--profile sound|compat] reads lines {"id","gold","pred"} from
standard input and writes the verdict of each; reward-scorer score [--reward FILE] reads
lines {"id","text","reference"} and writes the reward of each. Neither needs a broker.
reward-scorer replay runs what was recorded through another reward.`

// config is what the flags set.
type config struct {
	rewardFile       string
	readInvalidCalls bool
	stepsKept        uint64
	// set is what validate made of them.
	set *reward.Set
}

func spec() stage.Spec {
	var cfg config
	return stage.Spec{
		Name:     "reward-scorer",
		About:    about,
		Flags:    func(f *process.Flags) { cfg.register(f.Group("Reward")) },
		Validate: cfg.validate,
		Commands: []process.Command{checkCommand(), scoreCommand(), replayCommand()},
		Run:      func(ctx context.Context, env *stage.Env) error { return cfg.run(ctx, env) },
	}
}

func (c *config) register(f *pflag.FlagSet) {
	f.StringVar(&c.rewardFile, "reward", "", rewardUsage)
	f.BoolVar(&c.readInvalidCalls, "read-invalid-calls", false,
		"look for an answer in the final text of a trajectory that ended with a malformed tool call; without it such a trajectory is wrong unread")
	f.Uint64Var(&c.stepsKept, "steps-kept", 64,
		"how many steps of each run scored copies are remembered for; one of an older step that comes again is scored again, and dropped by the grouper")
}

func (c *config) validate() error {
	if c.stepsKept < 1 {
		return errors.New("--steps-kept is 0, want at least 1")
	}
	var err error
	c.set, err = c.rewards()
	return err
}

// rewards are the rewards to compute, the deciding one first.
func (c *config) rewards() (*reward.Set, error) {
	switch {
	case c.rewardFile != "" && c.readInvalidCalls:
		return nil, errors.New("--reward and --read-invalid-calls exclude each other: write `read_invalid_calls: true` at the reward in the file")
	case c.rewardFile != "":
		return loadRewards(c.rewardFile)
	}
	return reward.NewSet("outcome", reward.Scorer{
		Name: "outcome", Version: "1", Logic: reward.Outcome(), Rules: reward.Rules{ReadInvalidCalls: c.readInvalidCalls},
	})
}

func (c *config) run(ctx context.Context, env *stage.Env) error {
	m, err := newMetrics(env.Metrics)
	if err != nil {
		return err
	}
	s := &scorer{set: c.set}
	return runner.RunKeyed(ctx, runner.KeyedConfig{Cluster: env.Kafka, Stage: "reward-scorer", Prepare: s.prepare},
		func(int32) runner.Machine { return newMachine(s.of, c.stepsKept, env.Log, m) })
}
