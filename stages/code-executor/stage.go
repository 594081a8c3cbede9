package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `code-executor runs the programs that the policy wrote, in sandboxes of sandboxd.

Reads   code-calls (share group: one record per slot; or a classic group)
Writes  code-results; trajectories that it had to give up; code-calls that go back

One slot at a time reserves a sandbox and then asks for a record. A sandbox that
fails is retried in a fresh one, --attempts times in all; a call that was cut off,
or whose executor died, is taken up again, three times in all. Then the trajectory
ends as infra_error and is not graded. A program under which the kernel of its
sandbox dies twice ends it as sandbox_broken instead, ungraded, too. While sandboxd is
away the executor waits.
Share groups need Apache Kafka 4.2 or later; elsewhere a classic group is used.`

// drain is how long programs may run on once the stage is told to stop: the longest that
// one may take by default, and its way back.
const drain = 35 * time.Second

// readyPart is what the executor calls sandboxd in its readiness.
const readyPart = "sandboxd"

// executor is the wiring: flags, client, handlers, the runner.
type executor struct {
	cfg config
	// sandboxes is nil but in tests, which have a fake.
	sandboxes sandboxes
}

func newExecutor() *executor { return &executor{} }

func (e *executor) spec() stage.Spec {
	return stage.Spec{
		Name: name, About: about,
		Flags:    func(f *process.Flags) { e.cfg.register(f.Group("Execution")) },
		Validate: e.cfg.validate,
		Run:      e.run,
	}
}

func (e *executor) run(ctx context.Context, env *stage.Env) error {
	env.Status.Backend(readyPart, e.cfg.address)
	env.Health.Ready(readyPart, errors.New("not asked yet"))
	boxes := e.sandboxes
	if boxes == nil {
		c, err := client.New(client.Config{Address: e.cfg.address, TokenFile: e.cfg.tokenFile, Owner: owner(env.Kafka.Namespace)})
		if err != nil {
			return process.Usage(err)
		}
		defer c.Close()
		boxes = daemon{c}
	}
	intake, err := env.Kafka.ChooseIntake(ctx, name, topology.Intake(e.cfg.intake))
	if err != nil {
		return err
	}
	slots, err := e.await(ctx, env, boxes)
	if err != nil {
		return err
	}
	m := newMetrics(env.Metrics)
	ps := newPlaces(boxes, env.Log, m, env.Health.Ready)
	newHandler := func(slot int) kafka.Handler {
		return &handler{
			places: ps, slot: slot, attempts: e.cfg.attempts, patience: e.cfg.patience, stop: ctx.Done(), metrics: m, log: env.Log,
		}
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watched, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	watching.Go(func() { ps.watch(watched) })
	if intake == topology.IntakeClassic {
		return kafka.RunClassic(ctx, kafka.ClassicConfig{
			Cluster: env.Kafka, Stage: name, Concurrency: slots, MaxAttempts: maxAttempts,
			// As a share group does: a stop cuts no program off, though its partitions wait.
			Drain: drain,
		}, newHandler(noSlot))
	}
	return kafka.RunShare(ctx, kafka.ShareConfig{
		Cluster: env.Kafka, Stage: name, Slots: slots, Reserve: ps.reserve, Lock: e.cfg.lock, MaxAttempts: maxAttempts, Drain: drain,
	}, newHandler)
}

// owner is in whose name sandboxd is asked: it shares its slots evenly among owners.
func owner(namespace string) string {
	return "sluice " + namespace[:min(len(namespace), api.MaxLabel/2)]
}

// maxAttempts is how often work on a call may begin without a known end.
const maxAttempts = 3

// await waits until sandboxd has run a program of its own, and says how many slots to
// work with. It must not join the group before: it would take records it cannot work on.
func (e *executor) await(ctx context.Context, env *stage.Env, boxes sandboxes) (slots int, err error) {
	for said := false; ; {
		err := boxes.Ready(ctx)
		if slots = e.cfg.slots; err == nil && slots == 0 {
			slots, err = boxes.Slots(ctx)
		}
		var refused *client.RequestError
		switch {
		case err == nil && slots > 0:
			env.Health.Ready(readyPart, nil)
			env.Log.Info("sandboxd found", "slots", slots)
			return slots, nil
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.As(err, &refused):
			return 0, process.Unusable(err)
		case err == nil:
			err = errors.New("sandboxd has no slots")
		}
		env.Health.Ready(readyPart, err)
		if !said {
			said = true
			env.Log.Warn("sandboxd is not ready: waiting for it", "error", err)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
