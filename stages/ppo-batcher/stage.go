package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/internal/runner"
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

Outputs, state and offsets commit in one transaction: each step is batched exactly once,
whatever is killed. Steps that hold nothing but groups of evaluation are not batched.`

// options are the flags as they are given.
type options struct {
	config
	reduction string
}

func spec() stage.Spec {
	o := options{config: config{rules: step.DefaultRules}}
	return stage.Spec{
		Name:     "ppo-batcher",
		About:    about,
		Flags:    func(f *process.Flags) { o.register(f.Group("Batches")) },
		Validate: o.validate,
		Run:      func(ctx context.Context, env *stage.Env) error { return o.run(ctx, env) },
	}
}

func (o *options) register(f *pflag.FlagSet) {
	r := &o.rules
	f.IntVar(&r.Packing.Data, "max-data", r.Packing.Data, "trajectories in one micro-batch, at most")
	f.IntVar(&r.Packing.PaddedTokens, "max-padded-tokens", r.Packing.PaddedTokens, "tokens in one micro-batch, padding to its longest included, at most")
	f.Float64Var(&r.ClipLow, "clip-low", r.ClipLow, "lower bound of PPO's probability ratio; travels with the batch")
	f.Float64Var(&r.ClipHigh, "clip-high", r.ClipHigh, "upper bound of PPO's probability ratio; travels with the batch")
	f.StringVar(&o.reduction, "token-reduction", "sum", "how the trainer is to reduce the tokens of one trajectory: sum or mean; travels with the batch")
	f.IntVar(&r.Context, "training-context", r.Context, "tokens of one trajectory that the trainer can take; longer ones are refused")
	f.Uint32Var(&r.MaxStaleness, "max-staleness", r.MaxStaleness, "policy versions by which a trajectory's oldest token may lie behind the trainer; staler ones are refused")
	f.Uint64Var(&o.stepsKept, "steps-kept", 256, "how many steps of each run are remembered as batched: what arrives of an older step is dropped as late, even of one never seen")
}

func (o *options) validate() error {
	var errs []error
	switch o.reduction {
	case "sum":
		o.rules.Reduction = sluicev1.TokenReduction_TOKEN_REDUCTION_SUM
	case "mean":
		o.rules.Reduction = sluicev1.TokenReduction_TOKEN_REDUCTION_MEAN
	default:
		errs = append(errs, fmt.Errorf("--token-reduction is %q, want sum or mean", o.reduction))
	}
	if o.stepsKept < 1 {
		errs = append(errs, errors.New("--steps-kept is 0, want at least 1"))
	}
	for flag, n := range map[string]int{"max-data": o.rules.Packing.Data, "max-padded-tokens": o.rules.Packing.PaddedTokens, "training-context": o.rules.Context} {
		if n < 1 {
			errs = append(errs, fmt.Errorf("--%s is %d, want at least 1", flag, n))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, o.rules.Validate())
	}
	return errors.Join(errs...)
}

// bytesPerToken is what one token takes in an encoded micro-batch: two ids, two floats
// and a mask.
const bytesPerToken = 4*tokens.Size + 1

// checkSize refuses limits under which a full micro-batch could not be written.
func (o *options) checkSize(maxMessageBytes int32) error {
	need := (o.rules.Packing.PaddedTokens + 64*o.rules.Packing.Data) * bytesPerToken
	if need > int(maxMessageBytes) {
		return fmt.Errorf("--max-padded-tokens %d needs messages of up to %d bytes, the topology allows %d: lower it or raise max_message_bytes",
			o.rules.Packing.PaddedTokens, need, maxMessageBytes)
	}
	return nil
}

func (o *options) run(ctx context.Context, env *stage.Env) error {
	if err := o.checkSize(env.Topology.MaxMessageBytes); err != nil {
		return process.Usage(err)
	}
	m, err := newMetrics(env.Metrics)
	if err != nil {
		return err
	}
	return runner.RunKeyed(ctx, runner.KeyedConfig{Cluster: env.Kafka, Stage: "ppo-batcher"},
		func(int32) runner.Machine { return newMachine(o.config, env.Log, m) })
}
