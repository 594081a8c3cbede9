package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
	"github.com/sluice-rl/sluice/topology/process"
)

// start starts a feeder of a run.
func start(w *kafkatest.World, t *testing.T, problems int, args ...string) (*kafkatest.Running, *stage.Env) {
	f, _ := configured(t, problems, args...)
	env := w.Env("prompt-feeder")
	return w.Start(func(ctx context.Context, env *stage.Env) error { return f.run(ctx, env) }, env), env
}

// answer answers a step as a trainer whose clock is an hour ahead.
func answer(w *kafkatest.World, incarnation uint32, step uint64) {
	w.Put(kafka.Output{Topic: "policy-updates", Body: &sluicev1.PolicyUpdate{
		RunId: "run", Incarnation: incarnation, Step: step, PolicyVersion: uint32(step), PublishedAt: timestamppb.New(time.Now().Add(time.Hour)),
	}})
}

// places counts the prompts of each place.
func places(w *kafkatest.World) map[string]int {
	n := map[string]int{}
	for _, m := range w.Settle("prompts") {
		n[identity.GroupOf(m.(*sluicev1.Prompt).GetGroup()).String()]++
	}
	return n
}

func expectPlaces(t *testing.T, got map[string]int, want ...string) {
	t.Helper()
	for _, p := range want {
		if got[p] != 1 {
			t.Errorf("%s was fed %d times, want once", p, got[p])
		}
	}
	if len(got) != len(want) {
		t.Errorf("fed %v, want %v", got, want)
	}
}

// Over restarts, a rollback and a trainer whose clock is an hour ahead, every place is fed
// once.
func TestNothingIsFedTwice(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	kafkatest.Run(t, func(w *kafkatest.World) {
		args := []string{"--problems-per-step", "2", "--steps", "3"}
		one, _ := start(w, t, 5, args...)
		w.Await("prompts", 2)
		one.Stop()
		one, _ = start(w, t, 5, args...) // before the answer
		time.Sleep(time.Minute)
		answer(w, 0, 1)
		w.Await("prompts", 4)
		one.Stop()
		answer(w, 0, 2)
		answer(w, 1, 1) // the trainer went back
		one, _ = start(w, t, 5, args...)
		w.Await("prompts", 6)
		answer(w, 1, 2)
		w.Await("prompts", 8)
		answer(w, 1, 3)
		if err := one.Ended(); err != nil {
			t.Errorf("a complete run ends with %v", err)
		}
		expectPlaces(t, places(w), "run.0/1/0", "run.0/1/1", "run.0/2/0", "run.0/2/1", "run.1/2/0", "run.1/2/1", "run.1/3/0", "run.1/3/1")
	})
}

// A finished run is the one that it was: with another seed it is not called complete.
func TestARunIsGoneOnWithAsItWasBegun(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	kafkatest.Run(t, func(w *kafkatest.World) {
		args := []string{"--problems-per-step", "2", "--steps", "1"}
		one, _ := start(w, t, 5, args...)
		w.Await("prompts", 2)
		answer(w, 0, 1)
		if err := one.Ended(); err != nil {
			t.Fatal(err)
		}
		for _, other := range [][]string{{"--seed", "7"}, {"--problems-per-step", "3"}, {"--steps", "2", "--group-size", "4"}} {
			again, _ := start(w, t, 5, append(args, other...)...)
			if err := again.Ended(); !errors.Is(err, process.ErrUsage) || !strings.Contains(err.Error(), "begun otherwise") {
				t.Errorf("with %q it ends with %v, want a usage error", other, err)
			}
		}
		again, _ := start(w, t, 5, args...)
		if err := again.Ended(); err != nil {
			t.Errorf("as it was begun it ends with %v, want complete", err)
		}
		expectPlaces(t, places(w), "run.0/1/0", "run.0/1/1")
	})
}

// Of two feeders of a run the later one goes on; the other ends as soon as it would write.
func TestTwoFeedersOfOneRun(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	kafkatest.Run(t, func(w *kafkatest.World) {
		args := []string{"--problems-per-step", "2", "--steps", "2"}
		first, _ := start(w, t, 5, args...)
		w.Await("prompts", 2)
		second, _ := start(w, t, 5, args...)
		time.Sleep(time.Minute)
		answer(w, 0, 1)
		w.Await("prompts", 4)
		if err := first.Ended(); !errors.Is(err, kafka.ErrFenced) {
			t.Errorf("the first feeder ends with %v, want ErrFenced", err)
		}
		answer(w, 0, 2)
		if err := second.Ended(); err != nil {
			t.Errorf("the second feeder ends with %v", err)
		}
		expectPlaces(t, places(w), "run.0/1/0", "run.0/1/1", "run.0/2/0", "run.0/2/1")
	})
}

func TestAStageStopsTheRun(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	kafkatest.Run(t, func(w *kafkatest.World) {
		args := []string{"--problems-per-step", "2", "--steps", "2"}
		stop := func(run string) {
			w.Put(kafka.Output{Topic: "runs", Body: &sluicev1.RunStop{RunId: run, Stage: "ppo-batcher", Reason: "step 1: 8 of 8 lost"}})
		}
		one, _ := start(w, t, 5, args...)
		w.Await("prompts", 2)
		stop("other")
		time.Sleep(time.Minute)
		stop("run")
		if err := one.Ended(); !errors.Is(err, errStopped) || !strings.Contains(err.Error(), "8 of 8 lost") {
			t.Errorf("it ends with %v, want errStopped with the reason", err)
		}
		// Started again it goes on: whoever does that has looked.
		again, _ := start(w, t, 5, args...)
		time.Sleep(time.Minute)
		answer(w, 0, 1)
		w.Await("prompts", 4)
		again.Stop()
	})
}

// Errors of the brokers that no client retries by itself end nothing: the feeder claims
// the run again and goes on behind what is there.
func TestUnknownServerErrorsAreRetried(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	kafkatest.Run(t, func(w *kafkatest.World) {
		unknown := kerr.UnknownServerError.Code
		refused := map[int16]int{}
		w.Broker.ControlKey(int16(kmsg.InitProducerID), func(r kmsg.Request) (kmsg.Response, error, bool) {
			resp := r.ResponseKind().(*kmsg.InitProducerIDResponse)
			resp.ErrorCode = unknown
			refused[r.Key()]++
			return resp, nil, true
		})
		w.Broker.ControlKey(int16(kmsg.EndTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
			if w.Broker.KeepControl(); refused[r.Key()] == 2 {
				return nil, nil, false
			}
			resp := r.ResponseKind().(*kmsg.EndTxnResponse)
			resp.ErrorCode = unknown
			refused[r.Key()]++
			return resp, nil, true
		})
		one, _ := start(w, t, 5, "--problems-per-step", "2", "--steps", "1")
		w.Await("prompts", 2)
		answer(w, 0, 1)
		if err := one.Ended(); err != nil {
			t.Errorf("it ends with %v", err)
		}
		if refused[int16(kmsg.InitProducerID)] != 1 || refused[int16(kmsg.EndTxn)] != 2 {
			t.Errorf("refused %v, want one claim and two commits", refused)
		}
		expectPlaces(t, places(w), "run.0/1/0", "run.0/1/1")
	})
}

// Killed at any moment and started again, a step is fed whole and once.
func TestKilledAtAnyMoment(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) {
				const steps = 12
				var want []string
				for step := uint64(1); step <= steps; step++ {
					for kill := range uint64(2) {
						f, _ := configured(t, 9, "--problems-per-step", "4", "--steps", fmt.Sprint(steps))
						env := w.Env("prompt-feeder")
						line := w.Mortal(env, 100*seed+10*step+kill)
						life := w.Start(func(ctx context.Context, env *stage.Env) error { return f.run(ctx, env) }, env)
						time.Sleep(time.Duration((seed*7919+step*104729+kill*1299709)%120) * time.Millisecond)
						life.Kill(line)
					}
					last, _ := start(w, t, 9, "--problems-per-step", "4", "--steps", fmt.Sprint(steps))
					w.Await("prompts", int(4*step))
					answer(w, 0, step)
					if step < steps {
						last.Stop()
					} else if err := last.Ended(); err != nil {
						t.Error(err)
					}
					for slot := range 4 {
						want = append(want, fmt.Sprintf("run.0/%d/%d", step, slot))
					}
				}
				expectPlaces(t, places(w), want...)
			})
		})
	}
}
