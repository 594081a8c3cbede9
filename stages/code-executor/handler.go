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

// handler runs the program of one record at a time per slot.
type handler struct {
	shelf    *shelf
	attempts int
	metrics  *metrics
	log      *slog.Logger
}

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
	})
	var request *client.RequestError
	if errors.Is(err, errInfra) || errors.As(err, &request) {
		return h.giveUp(call, err), nil
	}
	if err != nil {
		return nil, err
	}
	h.metrics.ran(result)
	return []kafka.Output{{Topic: topicCodeResults, Body: &sluicev1.CodeResult{
		Trajectory: call.GetTrajectory(), CallId: call.GetCallId(),
		Execution: execution(call.GetCallId(), timeout, result, queued, time.Now(), m.Delivery),
	}}}, nil
}

// run runs a program until a sandbox has not failed under it.
func (h *handler) run(ctx context.Context, r client.Request) (client.Result, error) {
	var last string
	for failed, lost := 0, 0; failed < h.attempts; {
		slot := h.shelf.take()
		if slot == nil {
			// The one reserved before the poll was lost: sandboxd has restarted.
			var err error
			if slot, err = h.shelf.get(ctx); err != nil {
				return client.Result{}, err
			}
		}
		result, err := slot.Run(ctx, r)
		switch {
		case err == nil && known(result.Outcome):
			h.shelf.put(slot)
			h.shelf.up()
			return result, nil
		case err == nil:
			failed++
			last = fmt.Sprintf("%s %s", result.Outcome, result.Message)
			h.shelf.put(slot)
			h.metrics.infra.Inc()
			h.log.Warn("a sandbox failed under a program", "call", r.Label, "attempt", failed, "sandbox", result.SandboxID, "message", result.Message)
		case errors.Is(err, client.ErrReservationLost):
			slot.Release()
			if lost++; lost > maxLost {
				return client.Result{}, err
			}
		default:
			h.shelf.put(slot)
			if err := h.trouble(ctx, err); err != nil {
				return client.Result{}, err
			}
		}
	}
	return client.Result{}, fmt.Errorf("%w under %d attempts: %s", errInfra, h.attempts, last)
}

// maxLost is how many reservations may be lost under one program before it is left to
// the runner to try again later: a daemon that restarts loses one.
const maxLost = 10

// trouble waits where waiting can help; nothing is known about the program then.
func (h *handler) trouble(ctx context.Context, err error) error {
	var busy *client.BusyError
	var request *client.RequestError
	switch {
	case errors.As(err, &request) || ctx.Err() != nil:
		return err
	case !errors.As(err, &busy):
		h.shelf.away(err)
		return err
	}
	select {
	case <-time.After(max(busy.RetryAfter, 50*time.Millisecond)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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
		r.GiveUp(strings.ToValidUTF8(err.Error(), "\uFFFD"), now)
	}
	return []kafka.Output{{Topic: topicTrajectories, Body: t}}
}

func label(callID string) string { return callID[:min(len(callID), api.MaxLabel)] }
