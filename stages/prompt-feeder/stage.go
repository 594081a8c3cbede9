package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/prompt-feeder/dataset"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `prompt-feeder feeds problems, step by step, into the pipeline.

Reads   a prepared problem file; policy-updates; runs
Writes  prompts; runs

In train mode a step is fed when the trainer has answered the one before it
(sync pacing), in seeded epochs, until --steps are answered. In eval mode every
problem is fed once, in file order, without waiting; give it a run id of its own.
After a restart it goes on where it was and feeds nothing twice. What the run is (the
problems' hash, seed, sizes, budgets, sampling) is recorded when it begins; a restart that
differs is refused with the differences. Of two feeders of one run the later one goes on.

` + "`prompt-feeder prepare --help`" + ` tells how a problem file is made.`

// feeder is the stage: what it was told, and its run.
type feeder struct{ config }

func newFeeder() *feeder { return &feeder{} }

func (f *feeder) spec() stage.Spec {
	return stage.Spec{
		Name: "prompt-feeder", About: about,
		Flags: f.register, Validate: f.validate,
		Commands: []process.Command{prepareCommand()},
		Run:      func(ctx context.Context, env *stage.Env) error { return f.run(ctx, env) },
	}
}

// errDone ends the reading of policy updates when everything is fed and answered.
var errDone = errors.New("the run is complete")

func (f *feeder) run(ctx context.Context, env *stage.Env) error {
	file, err := dataset.Open(f.data)
	if err != nil {
		return process.Usage(fmt.Errorf("--data: %w", err))
	}
	defer file.Close()
	env.Log.Info("problems opened", "file", f.data, "rows", file.Len(), "sha256", file.SHA256())
	if err := f.checkFile(file.Len()); err != nil {
		return err
	}
	src := source{file: file, order: dataset.NewOrder(file.Len(), f.seed), inOrder: f.mode == "eval"}

	if there, err := env.Kafka.AwaitTopics(ctx, "prompt-feeder", env.Stage); !there {
		return err
	}
	letters, err := kafka.NewProducer(ctx, env.Kafka, "prompt-feeder")
	if err != nil {
		return err
	}
	defer letters.Close()
	answers := newFollower(f.runID)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return kafka.RunBroadcast(ctx, env.Kafka, env.Stage.Reads, answers.caughtUp, answers.take, letters)
	})
	group.Go(func() error {
		if err := answers.wait(ctx, func(p progress) bool { return true }); err != nil {
			return err
		}
		env.Kafka.Begin()
		if err := f.persist(ctx, env, src, answers); err != nil {
			return err
		}
		return errDone
	})
	if err := group.Wait(); !errors.Is(err, errDone) {
		return err
	}
	env.Log.Info("run complete", "run", f.runID)
	return nil
}
