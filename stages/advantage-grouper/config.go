package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
	"github.com/sluice-rl/sluice/topology/process"
)

// config is what the flags set.
type config struct {
	deadline  time.Duration
	rule      advantage.Rule
	stepsKept uint64
	// refill asks once more for members lost to infrastructure.
	refill bool
}

func (c *config) register(flags *process.Flags) {
	f := flags.Group("Groups")
	f.DurationVar(&c.deadline, "group-deadline", 15*time.Minute,
		"close a group this long after it was opened, with the members it has; the time starts anew when the stage does, and stands still while a sampler or all executors report their backend away")
	f.BoolVar(&c.refill, "refill", true,
		"ask once more for members that infrastructure has lost; never for stragglers or prompts that are too long")
	c.rule.Register(f)
	f.Uint64Var(&c.stepsKept, "steps-kept", 256,
		"how many steps of each run closed groups are remembered for: what arrives of an older step is dropped as late, even the prompt of a group never seen")
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
