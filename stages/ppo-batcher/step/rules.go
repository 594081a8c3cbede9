package step

import (
	"errors"
	"fmt"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/microbatch"
)

// ErrRules: a rule cannot be used.
var ErrRules = errors.New("step: bad rules")

// Rules say how a step becomes batches.
type Rules struct {
	// Packing bounds one micro-batch.
	Packing microbatch.Limits
	// ClipLow and ClipHigh bound the probability ratio in the trainer's loss; they
	// travel with the batch.
	ClipLow, ClipHigh float64
	// Reduction is how the trainer is to reduce the tokens inside a datum; it
	// travels with the batch.
	Reduction sluicev1.TokenReduction
	// Correction is how the trainer is to weigh tokens on whose logprobs it differs from
	// the sampler; it travels with the batch. Nil: not at all.
	Correction *sluicev1.Correction
	// Context is how many tokens a datum may have.
	Context int
	// MaxStaleness is by how many policy versions the oldest token of a datum may
	// lie behind the trainer.
	MaxStaleness uint32
}

// DefaultRules are the recipe's.
var DefaultRules = Rules{
	Packing: microbatch.DefaultLimits,
	ClipLow: 0.8, ClipHigh: 1.28,
	Reduction:    sluicev1.TokenReduction_TOKEN_REDUCTION_SUM,
	Context:      8192,
	MaxStaleness: 1,
}

// Validate says which rule cannot be used.
func (r Rules) Validate() error {
	if err := r.Packing.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrRules, err)
	}
	if !(r.ClipLow > 0 && r.ClipLow <= 1 && r.ClipHigh >= 1) {
		return fmt.Errorf("%w: clip bounds %v and %v: want 0 < low <= 1 <= high", ErrRules, r.ClipLow, r.ClipHigh)
	}
	if r.Reduction != sluicev1.TokenReduction_TOKEN_REDUCTION_SUM && r.Reduction != sluicev1.TokenReduction_TOKEN_REDUCTION_MEAN {
		return fmt.Errorf("%w: the reduction over a datum's tokens is neither sum nor mean", ErrRules)
	}
	if err := checkCorrection(r.Correction); err != nil {
		return fmt.Errorf("%w: correction: %w", ErrRules, err)
	}
	if r.Context < 1 {
		return fmt.Errorf("%w: training context of %d tokens, want at least 1", ErrRules, r.Context)
	}
	return nil
}

// limit is how many tokens a datum may have: the context, or a whole micro-batch where
// that is less.
func (r Rules) limit() int { return min(r.Context, r.Packing.PaddedTokens) }
