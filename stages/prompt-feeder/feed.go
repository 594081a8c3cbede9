package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/runner"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/prompt-feeder/dataset"
	"github.com/sluice-rl/sluice/topology/process"
)

// errDone ends the reading of policy updates when everything is fed and answered.
var errDone = errors.New("the run is complete")

func (f *feeder) run(ctx context.Context, env *stage.Env) error {
	file, err := dataset.Open(f.data)
	if err != nil {
		return process.Usage(fmt.Errorf("--data: %w", err))
	}
	defer file.Close()
	env.Log.Info("problems opened", "file", f.data, "rows", file.Len(), "sha256", file.SHA256())

	producer, err := runner.NewProducer(ctx, env.Kafka, "prompt-feeder")
	if err != nil {
		return err
	}
	defer producer.Close()
	src := source{file: file, order: dataset.NewOrder(file.Len(), f.seed), inOrder: f.mode == "eval"}

	answers := newFollower(f.runID)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return runner.RunBroadcast(ctx, env.Kafka, []string{"policy-updates"}, answers.caughtUp, answers.take)
	})
	group.Go(func() error {
		if err := answers.wait(ctx, func(p progress) bool { return true }); err != nil {
			return err
		}
		env.Kafka.Begin()
		if err := f.feed(ctx, env, producer, src, answers); err != nil {
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

// feed feeds step after step until the last one is answered.
func (f *feeder) feed(ctx context.Context, env *stage.Env, producer *runner.Producer, src source, answers *follower) error {
	last := f.lastStep(src.file.Len())
	if f.mode == "eval" {
		return f.feedAll(ctx, env, producer, src, last)
	}
	for {
		p := answers.progress()
		if last != 0 && p.done >= last {
			return nil
		}
		// Only a step that another process may have begun can have prompts in
		// the topic; after that this process knows what it fed.
		fed, err := f.fedSince(ctx, env, p.since())
		if err != nil {
			return err
		}
		for p = answers.progress(); last == 0 || p.done < last; p = answers.progress() {
			if err := f.feedStep(ctx, env, producer, src, p.incarnation, p.done+1, fed); err != nil {
				return err
			}
			moved := func(now progress) bool { return now != p }
			if err := answers.wait(ctx, moved); err != nil {
				return err
			}
			fed = nil
			if answers.progress().incarnation != p.incarnation {
				env.Log.Info("the trainer rolled back", "incarnation", answers.progress().incarnation, "to step", answers.progress().done)
				break
			}
		}
	}
}

// feedAll feeds an evaluation: every problem once.
func (f *feeder) feedAll(ctx context.Context, env *stage.Env, producer *runner.Producer, src source, last uint64) error {
	fed, err := f.fedSince(ctx, env, time.Time{})
	if err != nil {
		return err
	}
	for step := uint64(1); step <= last; step++ {
		if err := f.feedStep(ctx, env, producer, src, 0, step, fed); err != nil {
			return err
		}
	}
	return nil
}

// fedSince reads which slots of this run are in the topic already.
func (f *feeder) fedSince(ctx context.Context, env *stage.Env, since time.Time) (map[identity.Group]bool, error) {
	fed := map[identity.Group]bool{}
	err := runner.Scan(ctx, env.Kafka, "prompt-feeder", "prompts", since, func(m runner.Message) error {
		if p, ok := m.Body.(*sluicev1.Prompt); ok && p.GetGroup().GetRunId() == f.runID {
			fed[identity.GroupOf(p.GetGroup())] = true
		}
		return nil
	})
	return fed, err
}

func (f *feeder) feedStep(ctx context.Context, env *stage.Env, producer *runner.Producer, src source, incarnation uint32, step uint64, fed map[identity.Group]bool) error {
	prompts, err := f.stepPrompts(src, incarnation, step, fed, time.Now())
	if err != nil {
		return err
	}
	outputs := make([]runner.Output, len(prompts))
	for i, p := range prompts {
		outputs[i] = runner.Output{Topic: "prompts", Body: p}
	}
	if err := producer.Produce(ctx, outputs...); err != nil {
		return fmt.Errorf("feed step %d: %w", step, err)
	}
	env.Log.Info("step fed", "run", f.runID, "incarnation", incarnation, "step", step,
		"fed", len(prompts), "already there", int(f.groups(step, src.file.Len()))-len(prompts))
	return nil
}

// follower keeps the progress that policy updates tell of.
type follower struct {
	runID string

	mu      sync.Mutex
	ready   bool
	now     progress
	changed chan struct{} // closed and replaced at every change
}

func newFollower(runID string) *follower {
	return &follower{runID: runID, changed: make(chan struct{})}
}

func (f *follower) progress() progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *follower) take(m runner.Message) error {
	u, ok := m.Body.(*sluicev1.PolicyUpdate)
	if !ok || u.GetRunId() != f.runID {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now.observe(u) {
		f.announce()
	}
	return nil
}

// caughtUp says that what was answered before this process began is known.
func (f *follower) caughtUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = true
	f.announce()
}

func (f *follower) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// wait returns once the follower has caught up and the progress is as wanted.
func (f *follower) wait(ctx context.Context, wanted func(progress) bool) error {
	for {
		f.mu.Lock()
		met, changed := f.ready && wanted(f.now), f.changed
		f.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
