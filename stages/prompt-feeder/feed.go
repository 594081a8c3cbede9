package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/internal/status"
	"github.com/sluice-rl/sluice/stages/prompt-feeder/dataset"
	"github.com/sluice-rl/sluice/topology/process"
)

// errStopped: a stage has stopped the run.
var errStopped = errors.New("the run was stopped")

// persist feeds until the run is complete. After trouble with the brokers it claims the
// run anew, which settles what was under way, and goes on behind what is in the topic.
func (f *feeder) persist(ctx context.Context, env *stage.Env, src source, answers *follower) error {
	for wait := time.Second; ; wait = min(2*wait, 15*time.Second) {
		err := f.feed(ctx, env, src, answers)
		if err == nil || ctx.Err() != nil || kafka.Final(err) || errors.Is(err, process.ErrUsage) {
			return err
		}
		env.Log.Warn("the run cannot be fed: trying again", "run", f.runID, "error", err)
		env.Status.Failed("retried", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// feed claims the run, checks that it is the one that was begun, and feeds step after
// step until the last one is answered.
func (f *feeder) feed(ctx context.Context, env *stage.Env, src source, answers *follower) error {
	producer, err := kafka.Claim(ctx, env.Kafka, "prompt-feeder", f.runID)
	if err != nil {
		return err
	}
	defer producer.Close()
	before := history{runID: f.runID}
	err = kafka.Scan(ctx, env.Kafka, "prompt-feeder", topicRuns, time.Time{}, func(m kafka.Message) error {
		before.take(m.Body)
		return nil
	})
	if err != nil {
		return err
	}
	if err := f.begin(ctx, env, producer, before, src.file); err != nil {
		return err
	}
	last := f.lastStep(src.file.Len())
	at := before.fed
	if f.mode == "eval" {
		for step := uint64(1); step <= last; step++ {
			if err := f.feedStep(ctx, env, producer, src, 0, step, at); err != nil {
				return err
			}
		}
		return nil
	}
	for p := answers.progress(); last == 0 || p.done < last; {
		if err := f.feedStep(ctx, env, producer, src, p.incarnation, p.done+1, at); err != nil {
			return err
		}
		f.waits(env, p)
		if err := answers.wait(ctx, func(now progress) bool { return now != p }); err != nil {
			return err
		}
		env.Status.Clear(noteWaits)
		if now := answers.progress(); now.incarnation != p.incarnation {
			env.Log.Info("the trainer rolled back", "incarnation", now.incarnation, "to step", now.done)
		}
		p = answers.progress()
	}
	return nil
}

const (
	topicRuns = "runs"
	// noteWaits is what the feeder says of itself while the trainer owes an answer.
	noteWaits = "trainer"
)

func (f *feeder) waits(env *stage.Env, p progress) {
	env.Status.Note(noteWaits, status.Note{Text: fmt.Sprintf("run %s: step %d is fed, its answer is awaited", f.runID, p.done+1)})
}

// begin records what the run is, or refuses to go on with another one.
func (f *feeder) begin(ctx context.Context, env *stage.Env, producer *kafka.Exclusive, before history, file *dataset.File) error {
	is := f.identity(file.SHA256(), file.Len())
	if before.run != nil {
		if s := before.stop; s != nil {
			env.Log.Warn("the run was stopped before; it goes on", "run", f.runID, "stage", s.GetStage(), "reason", s.GetReason())
		}
		return same(before.run, is)
	}
	is.RecordedAt = timestamppb.New(time.Now())
	if err := producer.Produce(ctx, kafka.Output{Topic: topicRuns, Body: is}); err != nil {
		return fmt.Errorf("record what the run is: %w", err)
	}
	return nil
}

// feedStep feeds a step whole, if it is not there.
func (f *feeder) feedStep(ctx context.Context, env *stage.Env, producer *kafka.Exclusive, src source, incarnation uint32, step uint64, at fed) error {
	if at.has(incarnation, step) {
		env.Log.Info("step is there already", "run", f.runID, "incarnation", incarnation, "step", step)
		return nil
	}
	prompts, err := f.stepPrompts(src, incarnation, step, time.Now())
	if err != nil {
		return process.Usage(fmt.Errorf("--data: %w", err))
	}
	outputs := []kafka.Output{{Topic: topicRuns, Body: &sluicev1.RunFed{RunId: f.runID, Incarnation: incarnation, Step: step}}}
	for _, p := range prompts {
		outputs = append(outputs, kafka.Output{Topic: "prompts", Body: p})
	}
	if err := producer.Produce(ctx, outputs...); err != nil {
		return fmt.Errorf("feed step %d: %w", step, err)
	}
	env.Log.Info("step fed", "run", f.runID, "incarnation", incarnation, "step", step, "fed", len(prompts))
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

func (f *follower) take(m kafka.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch body := m.Body.(type) {
	case *sluicev1.PolicyUpdate:
		if body.GetRunId() == f.runID && f.now.observe(body) {
			f.announce()
		}
	case *sluicev1.RunStop:
		// One from before this process began was about its predecessor.
		if body.GetRunId() == f.runID && f.ready {
			return fmt.Errorf("%w by %s: %s", errStopped, body.GetStage(), body.GetReason())
		}
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
