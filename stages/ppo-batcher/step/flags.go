package step

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// Register declares the rules as flags, with what r holds as their defaults: of the
// batcher, and of whoever batches as it does.
func (r *Rules) Register(f *pflag.FlagSet) {
	f.IntVar(&r.Packing.Data, "max-data", r.Packing.Data, "trajectories in one micro-batch, at most")
	f.IntVar(&r.Packing.PaddedTokens, "max-padded-tokens", r.Packing.PaddedTokens, "tokens in one micro-batch, padding to its longest included, at most")
	f.Float64Var(&r.ClipLow, "clip-low", r.ClipLow, "lower bound of PPO's probability ratio; travels with the batch")
	f.Float64Var(&r.ClipHigh, "clip-high", r.ClipHigh, "upper bound of PPO's probability ratio; travels with the batch")
	f.Var(reductionFlag{&r.Reduction}, "token-reduction", "how the trainer is to reduce the tokens of one trajectory: sum or mean; travels with the batch")
	f.Var(correctionFlag{&r.Correction}, "correction", "importance sampling between sampler and trainer: how the trainer is to weigh a token, or a whole sequence, by exp(its own logprob before the step - the sampler's); travels with the batch")
	f.IntVar(&r.Context, "training-context", r.Context, "tokens of one trajectory that the trainer can take; longer ones are refused")
	f.Uint32Var(&r.MaxStaleness, "max-staleness", r.MaxStaleness, "policy versions by which a trajectory's oldest token may lie behind the trainer; staler ones are refused")
}

// Check is Validate in the words of the flags.
func (r Rules) Check() error {
	var errs []error
	for _, n := range []struct {
		flag  string
		value int
	}{{"max-data", r.Packing.Data}, {"max-padded-tokens", r.Packing.PaddedTokens}, {"training-context", r.Context}} {
		if n.value < 1 {
			errs = append(errs, fmt.Errorf("--%s is %d, want at least 1", n.flag, n.value))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, r.Validate())
	}
	return errors.Join(errs...)
}

// reductionFlag is a reduction as a flag.
type reductionFlag struct{ to *sluicev1.TokenReduction }

func (reductionFlag) Type() string { return "sum|mean" }

func (f reductionFlag) String() string {
	if f.to != nil && *f.to == sluicev1.TokenReduction_TOKEN_REDUCTION_MEAN {
		return "mean"
	}
	return "sum"
}

func (f reductionFlag) Set(text string) error {
	switch text {
	case "sum":
		*f.to = sluicev1.TokenReduction_TOKEN_REDUCTION_SUM
	case "mean":
		*f.to = sluicev1.TokenReduction_TOKEN_REDUCTION_MEAN
	default:
		return errors.New("want sum or mean")
	}
	return nil
}
