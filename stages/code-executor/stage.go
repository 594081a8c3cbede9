package main

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `code-executor runs the programs that the policy wrote, in sandboxes of sandboxd.

Reads   code-calls (share group: one record per slot)
Writes  code-results; trajectories that it had to give up

A slot reserves a sandbox before it asks for a record. A sandbox that fails is
retried in a fresh one, --attempts times in all; then the trajectory ends as
infra_error and is not graded. While sandboxd is away the executor waits.
Needs brokers with share groups (Apache Kafka 4.2 or later).`

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
		c, err := client.New(client.Config{Address: e.cfg.address, TokenFile: e.cfg.tokenFile})
		if err != nil {
			return process.Usage(err)
		}
		defer c.Close()
		boxes = daemon{c}
	}
	slots, err := e.await(ctx, env, boxes)
	if err != nil {
		return err
	}
	shelf := &shelf{sandboxes: boxes, log: env.Log, ready: func(err error) { env.Health.Ready(readyPart, err) }}
	h := &handler{shelf: shelf, attempts: e.cfg.attempts, metrics: newMetrics(env.Metrics), log: env.Log}
	return kafka.RunShare(ctx, kafka.ShareConfig{
		Cluster: env.Kafka, Stage: name, Slots: slots, Reserve: shelf.reserve, Lock: e.cfg.lock,
	}, func(int) kafka.Handler { return h })
}

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
