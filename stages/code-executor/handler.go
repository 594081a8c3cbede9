package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

const (
	name              = "code-executor"
	topicCodeResults  = "code-results"
	topicTrajectories = "trajectories"
)

// errInfra occurs when sandboxes failed under one program as often as is allowed.
var errInfra = errors.New("sandbox failed")

// errBroken occurs when the kernel of a program's sandbox died for the second time: once is
// the machine's fault, twice in two sandboxes is the program's doing.
var errBroken = errors.New("the program breaks its sandbox")

const mostDeaths = 2

// handler runs the program of one record at a time, in the place of its slot.
type handler struct {
	places *places
	// slot is which of the places is its; none in the classic intake.
	slot     int
	attempts int
	// patience is how long a call in hand waits for a place before it goes back.
	patience time.Duration
	// stop is closed when the stage is to end: what has not begun goes back.
	stop    <-chan struct{}
	metrics *metrics
	log     *slog.Logger
}

// noSlot is the slot of a handler that has no place of its own.
const noSlot = -1

// Handle runs the program of a CodeCall.
func (h *handler) Handle(ctx context.Context, m kafka.Message) ([]kafka.Output, error) {
	call, ok := m.Body.(*sluicev1.CodeCall)
	if !ok {
		return nil, kafka.Reject(fmt.Errorf("a %T on topic %s: the executor works on CodeCall", m.Body, m.Topic), "refused")
	}
	queued := time.Now()
	turns := call.GetTrajectory().GetTurns()
	timeout := call.GetTrajectory().GetPrompt().GetBudgets().GetExecutionTimeoutMs()
	result, err := h.run(ctx, client.Request{
		Code: turns[len(turns)-1].GetCode(), TimeoutMS: int64(timeout), Label: label(call.GetCallId()),
		Trajectory: trajectory(call.GetTrajectory()),
	})
	var request *client.RequestError
	if errors.Is(err, errInfra) || errors.Is(err, errBroken) || errors.As(err, &request) {
		return h.giveUp(call, err), nil
	}
	if err != nil {
		return nil, err
	}
	h.metrics.ran(result)
	return []kafka.Output{{Topic: topicCodeResults, Body: &sluicev1.CodeResult{
		Trajectory: call.GetTrajectory(), CallId: call.GetCallId(),
		Execution: execution(call.GetCallId(), timeout, result, queued, time.Now(), m.Attempt),
	}}}, nil
}

// run runs a program until a sandbox has not failed under it. A call that cannot be run
// here goes back to its topic: after patience, since others may have a place; at once
// where the program may have run, since then one attempt is spent, and only the record
// remembers that if this process dies too; and when the stage stops.
func (h *handler) run(ctx context.Context, r client.Request) (client.Result, error) {
	var last string
	began := time.Now()
	deaths := 0
	for failed, wait := 0, firstPause; failed < h.attempts; {
		result, err := h.ask(ctx, r)
		var unknown *client.EndUnknownError
		var request *client.RequestError
		switch {
		case err == nil && known(result.Outcome):
			return result, nil
		case err == nil:
			failed++
			last = fmt.Sprintf("%s %s", result.Outcome, result.Message)
			h.metrics.infra.Inc()
			h.log.Warn("a sandbox failed under a program", "call", r.Label, "attempt", failed, "sandbox", result.SandboxID, "cause", result.Cause, "message", result.Message)
			if result.Cause == api.CauseDied {
				deaths++
			}
			if deaths == mostDeaths {
				return client.Result{}, fmt.Errorf("%w: its kernel died %d times, the last time: %s", errBroken, deaths, result.Message)
			}
			continue
		case ctx.Err() != nil || errors.As(err, &request):
			return client.Result{}, err
		case errors.As(err, &unknown):
			h.metrics.cut.Inc()
			return client.Result{}, kafka.Requeue(err, 1)
		case time.Since(began) > h.patience:
			return client.Result{}, kafka.Requeue(fmt.Errorf("no place for it here in %v: %w", h.patience, err), 0)
		}
		if err := h.wait(ctx, max(h.places.answered(err), wait)); err != nil {
			return client.Result{}, err
		}
		wait = min(2*wait, mostPause)
	}
	return client.Result{}, fmt.Errorf("%w under %d attempts: %s", errInfra, h.attempts, last)
}

// ask asks sandboxd once: in the slot's place, or, if that was lost, as a call in hand.
func (h *handler) ask(ctx context.Context, r client.Request) (client.Result, error) {
	if place := h.places.of(h.slot); place != nil {
		result, err := place.Run(ctx, r)
		if !errors.Is(err, client.ErrReservationLost) {
			return result, h.heard(err)
		}
	}
	h.places.count(&h.places.direct, 1)
	defer h.places.count(&h.places.direct, -1)
	result, err := h.places.sandboxes.Run(ctx, r)
	return result, h.heard(err)
}

// heard notes what an answer says of sandboxd, where it says anything.
func (h *handler) heard(err error) error {
	var unknown *client.EndUnknownError
	if err == nil || errors.As(err, &unknown) && !errors.Is(err, context.Canceled) {
		h.places.answered(err)
	}
	return err
}

var errStopping = errors.New("the stage stops before it was begun")

// wait waits between two attempts with a call in hand.
func (h *handler) wait(ctx context.Context, d time.Duration) error {
	h.places.count(&h.places.waiting, 1)
	defer h.places.count(&h.places.waiting, -1)
	if pause(ctx, h.stop, d) {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return kafka.Requeue(errStopping, 0)
}

// known: the outcome speaks of the program. One that this version does not know is
// taken for the sandbox's failure rather than shown to a policy.
func known(o api.Outcome) bool {
	_, ok := outcomes[o]
	return ok
}

// giveUp ends the trajectory with all it has.
func (h *handler) giveUp(call *sluicev1.CodeCall, err error) []kafka.Output {
	t := proto.Clone(call.GetTrajectory()).(*sluicev1.Trajectory)
	h.metrics.givenUp.Inc()
	h.log.Error("trajectory given up", "call", call.GetCallId(), "error", err)
	now := time.Now()
	// A trajectory that does not wait for an execution is left as it is: the runner
	// refuses to write it and gives the record up.
	if r, err2 := rollout.Resume(rollout.Config{Stage: name}, t, now); err2 == nil {
		detail := strings.ToValidUTF8(err.Error(), "\uFFFD")
		if errors.Is(err, errBroken) {
			r.Broken(detail, now)
		} else {
			r.GiveUp(detail, now)
		}
	}
	return []kafka.Output{{Topic: topicTrajectories, Body: t}}
}

func label(callID string) string { return callID[:min(len(callID), api.MaxLabel)] }

// trajectory names a trajectory to sandboxd. One whose name is too long has none: a
// part of it might be another's.
func trajectory(t *sluicev1.Trajectory) string {
	if id := identity.TrajectoryID(t); len(id) <= api.MaxLabel {
		return id
	}
	return ""
}
