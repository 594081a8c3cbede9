package main

import (
	"errors"

	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward/rewardfile"
	"github.com/sluice-rl/sluice/topology/process"
)

// config is what the flags set.
type config struct {
	rewards   rewardfile.Flags
	stepsKept uint64
	// set is what validate made of the rewards.
	set *reward.Set
}

func (c *config) register(flags *process.Flags) {
	f := flags.Group("Reward")
	c.rewards.Register(f)
	f.Uint64Var(&c.stepsKept, "steps-kept", 64,
		"how many steps of each run scored copies are remembered for; one of an older step that comes again is scored again, and dropped by the grouper")
}

func (c *config) validate() error {
	if c.stepsKept < 1 {
		return errors.New("--steps-kept is 0, want at least 1")
	}
	var err error
	c.set, err = c.rewards.Set()
	return err
}
