package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/topology/process"
)

// config is what the flags set.
type config struct {
	rules     step.Rules
	stepsKept uint64
	limits    limits
	// stalled is after what time a step that does not move is warned of.
	stalled time.Duration
}

func (c *config) register(flags *process.Flags) {
	f := flags.Group("Batches")
	c.rules.Register(f)
	f.Float64Var(&c.limits.protocolFaults, "max-protocol-faults", 0, "stop a run (its feeder fails) when more than this share of a step's trajectories, 0 to 1, ended as protocol_fault; 0: only warn, above 0.05")
	f.Float64Var(&c.limits.infraErrors, "max-infra-errors", 0, "the same for infra_error")
	f.DurationVar(&c.stalled, "stalled-after", 10*time.Minute, "warn of a step that has not moved for this long")
	f.Uint64Var(&c.stepsKept, "steps-kept", 256, "how many steps of each run are remembered as batched: what arrives of an older step is dropped as late, even of one never seen")
}

func (c *config) validate() error {
	var errs []error
	if c.stepsKept < 1 {
		errs = append(errs, errors.New("--steps-kept is 0, want at least 1"))
	}
	for flag, share := range map[string]float64{"max-protocol-faults": c.limits.protocolFaults, "max-infra-errors": c.limits.infraErrors} {
		if !(share >= 0 && share <= 1) {
			errs = append(errs, fmt.Errorf("--%s is %v, want a share from 0 to 1", flag, share))
		}
	}
	return errors.Join(append(errs, c.rules.Check())...)
}

// bytesPerToken is what one token takes in an encoded micro-batch: two ids, two floats
// and a mask.
const bytesPerToken = 4*tokens.Size + 1

// checkSize refuses limits under which a full micro-batch could not be written.
func (c *config) checkSize(maxMessageBytes int32) error {
	need := (c.rules.Packing.PaddedTokens + 64*c.rules.Packing.Data) * bytesPerToken
	if need > int(maxMessageBytes) {
		return fmt.Errorf("--max-padded-tokens %d needs messages of up to %d bytes, the topology allows %d: lower it or raise max_message_bytes",
			c.rules.Packing.PaddedTokens, need, maxMessageBytes)
	}
	return nil
}
