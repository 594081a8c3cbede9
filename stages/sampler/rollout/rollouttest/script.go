package rollouttest

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

// ErrScript occurs when a rollout asks for something that its script does not have, or
// ends before the script does.
var ErrScript = errors.New("the rollout left its script")

// Script is what policy and executor will do, in order.
type Script struct {
	Completions []Completion
	Executions  []*sluicev1.Execution
}

// Completion is one answer of the scripted policy.
type Completion struct {
	// Raw is the text with special tokens: its bytes are the tokens.
	Raw      string
	Logprobs []float32
	// Aborted says that the server broke off here.
	Aborted bool
}

// Play drives a rollout to its end. Every answer comes at the same time now.
func (s Script) Play(r *rollout.Rollout, now time.Time) error {
	for {
		var err error
		switch step := r.Next().(type) {
		case rollout.Sample:
			if len(s.Completions) == 0 {
				return fmt.Errorf("%w: it wants to sample turn %d", ErrScript, step.Turn)
			}
			err = r.Sampled(s.Completions[0].answer(step, now))
			s.Completions = s.Completions[1:]
		case rollout.Call:
			if len(s.Executions) == 0 {
				return fmt.Errorf("%w: it wants to run call %s", ErrScript, step.CallID)
			}
			err = r.Executed(s.Executions[0], now)
			s.Executions = s.Executions[1:]
		case rollout.Observe:
			err = r.Observed(Tail(step.Text), now)
		case rollout.End:
			if n, m := len(s.Completions), len(s.Executions); n+m > 0 {
				return fmt.Errorf("%w: it ended (%s) with %d completions and %d executions left", ErrScript, r.Trajectory().GetEndReason(), n, m)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c Completion) answer(s rollout.Sample, now time.Time) rollout.Completion {
	a := rollout.Completion{
		Tokens: Tokens(c.Raw), Logprobs: c.Logprobs, Text: WithoutSpecial(c.Raw),
		Prompt: s.Prompt, Started: now, Ended: now, Attempts: 1,
	}
	a.Versions = []rollout.Versions{{Version: 1, Count: len(a.Tokens)}}
	switch {
	case c.Aborted:
		a.Finish = rollout.Aborted
	case len(a.Tokens) == s.MaxTokens:
		a.Finish = rollout.Length
	}
	return a
}
