package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
	"github.com/sluice-rl/sluice/stages/internal/replayer"
	"github.com/sluice-rl/sluice/stages/internal/runner"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/process"
)

const replayAbout = `Runs recorded trajectories through another reward, beside the original, which is never
touched: new scores, the recorded groups closed again with new advantages, new batches.

What is replayed comes from Kafka (scored or trajectories, and for groups the closings in
grouped) or from an archive that sluice export made. It goes into topics of the replay's
own, replay-ID.scored and so on behind the namespace, or with --to into a folder, an
archive of JSON lines or Parquet. sluice replay makes the topics; metrics-writer
--replay-id ID puts them into ClickHouse beside the original.

Membership of groups is what was recorded: who was missing or ungraded stays so. Give the
rules of advantages and batches as the original had them, unless they are to differ.
Interrupted, the same command goes on where it was. The same input and configuration give
the same bytes, unless a reward of kind http answers otherwise.`

// replayFlags are the flags of a replay as they are given.
type replayFlags struct {
	config
	batching batchFlags
	rule     advantage.Rule
	sel      archive.Selection

	id, from, archive, to, format, state, until string
	brokers                                     []string
	namespace, topology                         string
	parallel                                    int
}

// batchFlags are the flags of batches, by the names that ppo-batcher has for them.
type batchFlags struct {
	rules     step.Rules
	reduction string
}

func (r *replayFlags) register(f *pflag.FlagSet) {
	f.StringVar(&r.id, "id", "", "names the replay: 1 to 40 of A-Z a-z 0-9 _ -")
	f.StringVar(&r.rewardFile, "reward", "", rewardUsage)
	f.BoolVar(&r.readInvalidCalls, "read-invalid-calls", false, "as of reward-scorer: read the answer of a trajectory that ended with a malformed tool call")
	f.StringVar(&r.until, "until", string(replayer.Groups), "how far to go: scores, groups (scores too) or batches (all three)")
	f.StringVar(&r.archive, "archive", "", "archive to replay from, a folder or a file; without it Kafka")
	f.StringVar(&r.from, "from", "scored", "topic of the trajectories: scored or trajectories")
	r.sel.Register(f)
	f.StringVar(&r.to, "to", "", "folder for the result, as an archive; without it topics")
	f.StringVar(&r.format, "format", "", "of the archive in --to: jsonl (default) or parquet")
	f.StringVar(&r.state, "state", "", "folder for the checkpoint (default: .sluice/replay/ID, or .replay in --to)")
	f.IntVar(&r.parallel, "parallel", 0, "chunks of trajectories scored at once (0: one per processor)")
	f.StringSliceVar(&r.brokers, "brokers", []string{"127.0.0.1:9092"}, "Kafka brokers to start from: host:port, separated by commas")
	f.StringVar(&r.namespace, "namespace", "", "prefix of the original's topics")
	f.StringVar(&r.topology, "topology", "", "topology file (default: the one built in)")
	f.BoolVar(&r.rule.DivideByDeviation, "divide-by-deviation", false, "as of advantage-grouper: divide advantages by the standard deviation of the group's rewards")
	b := &r.batching.rules
	f.IntVar(&b.Packing.Data, "max-data", b.Packing.Data, "as of ppo-batcher: trajectories in one micro-batch, at most")
	f.IntVar(&b.Packing.PaddedTokens, "max-padded-tokens", b.Packing.PaddedTokens, "as of ppo-batcher: tokens in one micro-batch, at most")
	f.Float64Var(&b.ClipLow, "clip-low", b.ClipLow, "as of ppo-batcher: lower bound of PPO's probability ratio")
	f.Float64Var(&b.ClipHigh, "clip-high", b.ClipHigh, "as of ppo-batcher: upper bound of PPO's probability ratio")
	f.StringVar(&r.batching.reduction, "token-reduction", "sum", "as of ppo-batcher: sum or mean over one trajectory's tokens")
	f.IntVar(&b.Context, "training-context", b.Context, "as of ppo-batcher: tokens of one trajectory that can be trained on")
	f.Uint32Var(&b.MaxStaleness, "max-staleness", b.MaxStaleness, "as of ppo-batcher: policy versions by which a trajectory may lie behind the trainer")
}

func (r *replayFlags) validate() error {
	if err := topology.CheckReplayID(r.id); err != nil {
		return fmt.Errorf("--id, a new one for each replay: %w", err)
	}
	if r.batching.reduction != "sum" && r.batching.reduction != "mean" {
		return fmt.Errorf("--token-reduction is %q, want sum or mean", r.batching.reduction)
	}
	if r.parallel < 0 {
		return fmt.Errorf("--parallel is %d, want 0 or more", r.parallel)
	}
	if r.archive == "" && len(r.brokers) == 0 {
		return errors.New("--brokers is empty: want host:port")
	}
	if err := r.sel.Check(); err != nil {
		return err
	}
	if err := r.validateOutput(); err != nil {
		return err
	}
	var err error
	r.set, err = r.rewards()
	return err
}

func (r *replayFlags) validateOutput() error {
	switch {
	case r.to == "" && r.format != "":
		return errors.New("--format is of an archive: name its folder by --to, or leave --format out to write topics")
	case r.format != "" && r.format != archive.JSONL && r.format != archive.Parquet:
		return fmt.Errorf("--format is %q, want %s or %s", r.format, archive.JSONL, archive.Parquet)
	}
	for _, format := range []string{archive.JSONL, archive.Parquet} {
		if r.to != "" && filepath.Ext(r.to) == "."+format {
			return fmt.Errorf("--to is %q: want a folder, in which each topic gets a file; --format %s says what they are", r.to, format)
		}
	}
	if r.format == "" {
		r.format = archive.JSONL
	}
	return nil
}

// fingerprint stands for all that decides what comes out.
func (r *replayFlags) fingerprint() (string, error) {
	var rewards []byte
	if r.rewardFile != "" {
		var err error
		if rewards, err = os.ReadFile(r.rewardFile); err != nil {
			return "", err
		}
	}
	source := r.namespace
	if r.archive != "" {
		var err error
		if source, err = filepath.Abs(r.archive); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal([]any{rewards, r.readInvalidCalls, r.until, r.archive != "", source, r.from, r.sel, r.to != "", r.format, r.rule, r.batching.rules})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// replayCommand is `reward-scorer replay`.
func replayCommand() process.Command {
	r := &replayFlags{batching: batchFlags{rules: step.DefaultRules}}
	return process.Command{
		Name: "replay", Short: "Run what was recorded through another reward", About: replayAbout,
		Flags: func(f *process.Flags) { r.register(f.Group("Replay")) }, Check: r.validate,
		Run: func(ctx context.Context, l *process.Life) error {
			top, err := topology.Load(r.topology)
			if err != nil {
				return process.Usage(err)
			}
			cluster := runner.ClusterConfig{Brokers: r.brokers, Namespace: r.namespace, Topology: top, Instance: r.id, Log: l.Log}
			return r.run(ctx, cluster, l.Stdout, l.Stderr)
		},
	}
}

func (r *replayFlags) run(ctx context.Context, cluster runner.ClusterConfig, stdout, stderr io.Writer) error {
	cfg, done, err := r.configure(cluster)
	if err != nil {
		return err
	}
	defer done()
	cfg.Progress = newProgress(stderr).show
	sum, err := replayer.Run(ctx, cfg)
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return process.Stopped(errors.New("interrupted; the same command goes on from here"))
	case errors.Is(err, replayer.ErrConfig):
		return process.Usage(err)
	case errors.Is(err, replayer.ErrOther), errors.Is(err, replayer.ErrBusy):
		return process.Unusable(err)
	case err != nil:
		return err
	}
	if err := json.NewEncoder(stdout).Encode(sum); err != nil {
		return err
	}
	if sum.RewardFailed > 0 {
		said := fmt.Sprintf("the reward failed on %d of %d trajectories, which are ungraded", sum.RewardFailed, sum.Scored)
		if len(sum.Examples) > 0 {
			said += ": " + sum.Examples[0]
		}
		if sum.Graded == 0 {
			return errors.New(said)
		}
		fmt.Fprintf(stderr, "reward-scorer replay: %s\n", said)
	}
	return nil
}

// configure opens the source and the sink.
func (r *replayFlags) configure(cluster runner.ClusterConfig) (cfg replayer.Config, done func(), err error) {
	cfg = replayer.Config{
		ID: r.id, Trajectories: r.from, Select: r.sel, Until: replayer.Until(r.until), Rewards: r.set, Rule: r.rule,
		Batches: r.batching.rules, State: r.state, Workers: r.parallel, Log: cluster.Log,
	}
	cfg.Batches.Reduction = reductions[r.batching.reduction]
	if cfg.Fingerprint, err = r.fingerprint(); err != nil {
		return cfg, nil, process.Usage(err)
	}
	if cfg.State == "" {
		cfg.State = filepath.Join(".sluice", "replay", r.id)
		if r.to != "" {
			cfg.State = filepath.Join(r.to, ".replay")
		}
	}
	var closers []func()
	done = func() {
		for _, f := range closers {
			f()
		}
	}
	if r.archive != "" {
		a, err := archive.Open(r.archive)
		if err != nil {
			return cfg, nil, process.Usage(err)
		}
		source := replayer.NewArchiveSource(a)
		cfg.Source, closers = source, append(closers, source.Close)
	} else {
		source, err := replayer.NewKafkaSource(cluster)
		if err != nil {
			return cfg, nil, err
		}
		cfg.Source, closers = source, append(closers, source.Close)
	}
	if r.to != "" {
		cfg.Sink = replayer.NewFolderSink(r.to, r.id, r.format, cfg.State)
		return cfg, done, nil
	}
	sink, err := replayer.NewTopicSink(cluster, r.id)
	if err != nil {
		done()
		return cfg, nil, err
	}
	cfg.Sink, closers = sink, append(closers, sink.Close)
	return cfg, done, nil
}
