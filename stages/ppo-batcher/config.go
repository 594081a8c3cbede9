package main

import (
	"errors"
	"fmt"

	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/topology/process"
)

// config is what the flags set.
type config struct {
	rules     step.Rules
	stepsKept uint64
}

func (c *config) register(flags *process.Flags) {
	f := flags.Group("Batches")
	c.rules.Register(f)
	f.Uint64Var(&c.stepsKept, "steps-kept", 256, "how many steps of each run are remembered as batched: what arrives of an older step is dropped as late, even of one never seen")
}

func (c *config) validate() error {
	var errs []error
	if c.stepsKept < 1 {
		errs = append(errs, errors.New("--steps-kept is 0, want at least 1"))
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
