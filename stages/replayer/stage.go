package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/stages/replayer/perform"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `replayer runs recorded trajectories through another reward, beside the original, which is never
touched: new scores, the recorded groups closed again with new advantages, new batches.

What is replayed comes from Kafka (scored or trajectories, and for groups the closings in
grouped) or from an archive that sluice export made. It goes into topics of the replay's
own, replay-ID.scored and so on behind the namespace, or with --to into a folder, an
archive of JSON lines or Parquet. It makes the topics; metrics-writer --replay-id ID puts
them into ClickHouse beside the original.

Membership of groups is what was recorded: who was missing or ungraded stays so. Give the
rules of advantages and batches as the original had them, unless they are to differ.
Interrupted, the same command goes on where it was. The same input and configuration give
the same bytes, unless a reward of kind http answers otherwise.`

// program is the replayer. It ends when it is done, so it is no stage.Spec: it has no
// group and no health.
func program() process.Command {
	c := &config{batches: step.DefaultRules}
	return process.Command{
		Name: "replayer", About: about, Flags: c.register, Check: c.validate, Exits: stage.Exits,
		Run: func(ctx context.Context, l *process.Life) error {
			top, err := c.Load()
			if err != nil {
				return process.Usage(err)
			}
			cluster := kafka.ClusterConfig{Brokers: c.Brokers, Access: c.Access.Options(), Namespace: c.Namespace, Topology: top, Instance: c.id, Log: l.Log}
			if c.to == "" {
				if err := makeTopics(ctx, cluster, c.id); err != nil {
					return err
				}
			}
			return c.run(ctx, cluster, l.Stdout, l.Stderr)
		},
	}
}

func (c *config) run(ctx context.Context, cluster kafka.ClusterConfig, stdout, stderr io.Writer) error {
	cfg, done, err := c.configure(cluster)
	if err != nil {
		return err
	}
	defer done()
	cfg.Progress = newProgress(stderr).show
	sum, err := perform.Run(ctx, cfg)
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return process.Stopped(errors.New("interrupted; the same command goes on from here"))
	case errors.Is(err, perform.ErrConfig):
		return process.Usage(err)
	case errors.Is(err, perform.ErrOther), errors.Is(err, perform.ErrBusy):
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
		fmt.Fprintf(stderr, "replayer: %s\n", said)
	}
	return nil
}

// configure opens the source and the sink.
func (c *config) configure(cluster kafka.ClusterConfig) (cfg perform.Config, done func(), err error) {
	cfg = perform.Config{
		ID: c.id, Trajectories: c.from, Select: c.sel, Until: perform.Until(c.until), Rewards: c.set, Rule: c.rule,
		Batches: c.batches, State: c.state, Workers: c.parallel, Log: cluster.Log,
	}
	if cfg.Fingerprint, err = c.fingerprint(); err != nil {
		return cfg, nil, process.Usage(err)
	}
	if cfg.State == "" {
		cfg.State = filepath.Join(".sluice", "replay", c.id)
		if c.to != "" {
			cfg.State = filepath.Join(c.to, ".replay")
		}
	}
	var closers []func()
	done = func() {
		for _, f := range closers {
			f()
		}
	}
	if c.archive != "" {
		a, err := archive.Open(c.archive)
		if err != nil {
			return cfg, nil, process.Usage(err)
		}
		source := perform.NewArchiveSource(a)
		cfg.Source, closers = source, append(closers, source.Close)
	} else {
		source, err := perform.NewKafkaSource(cluster)
		if err != nil {
			return cfg, nil, err
		}
		cfg.Source, closers = source, append(closers, source.Close)
	}
	if c.to != "" {
		cfg.Sink = perform.NewFolderSink(c.to, c.id, c.format, cfg.State)
		return cfg, done, nil
	}
	sink, err := perform.NewTopicSink(cluster, c.id)
	if err != nil {
		done()
		return cfg, nil, err
	}
	cfg.Sink, closers = sink, append(closers, sink.Close)
	return cfg, done, nil
}
