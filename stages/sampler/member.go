package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

// member is a trajectory in hand and the account of its turn.
type member struct {
	*rollout.Rollout
	// turn is the account of the turn at hand, of which at is the number.
	turn *inference.Turn
	at   int
}

// account is the one of the turn that a step is of.
func (m *member) account(step rollout.Sample) *inference.Turn {
	if m.turn == nil || m.at != step.Turn {
		m.turn, m.at = &inference.Turn{ID: turnID(m.Trajectory(), step.Turn)}, step.Turn
	}
	return m.turn
}

func turnID(t *sluicev1.Trajectory, turn int) string {
	return fmt.Sprintf("%s turn %d", identity.PlaceOf(t), turn)
}

// conclude ends a trajectory whose turn cannot be had, for the reason that the error
// stands for. Errors that say nothing of the trajectory are returned: the record waits.
func (m *member) conclude(err error) error {
	var refused *inference.RefusedError
	var spent *inference.SpentError
	now := time.Now()
	if errors.As(err, &spent) {
		m.Attempted(spent.Attempts)
	}
	switch {
	case errors.As(err, &refused):
		m.Refuse(refused.Err.Error(), now)
	case spent != nil && (errors.Is(err, inference.ErrAnswer) || errors.Is(err, inference.ErrNoTokenIDs)):
		m.Fault(err.Error(), now)
	case spent != nil:
		m.GiveUp(err.Error(), now)
	case errors.Is(err, inference.ErrTemplate), errors.Is(err, inference.ErrNoTemplate):
		m.Fault(err.Error(), now)
	default:
		return err
	}
	return nil
}

// pause keeps a rollout from asking in a loop while the policy's weights are being
// changed and every generation is aborted at once, or every answer is unusable.
type pause struct{ next time.Duration }

const (
	pauseFirst = 50 * time.Millisecond
	pauseMost  = 4 * time.Second
)

// before waits where a turn is asked for again; stopping ends it early.
func (p *pause) before(ctx context.Context, again bool, stopping <-chan struct{}) error {
	if !again {
		p.next = 0
		return nil
	}
	p.next = min(max(pauseFirst, 2*p.next), pauseMost)
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-stopping:
		return inference.ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}
