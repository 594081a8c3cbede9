package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

// sample asks for one completion for each of the members, which share the step.
// sampleIndex is identity.NoSample for a whole group. A member whose completion cannot
// be used goes on wanting one, or has ended.
func (h *handler) sample(ctx context.Context, members []*member, step rollout.Sample, sampleIndex int) error {
	t := members[0].Trajectory()
	p := t.GetPrompt()
	group := identity.GroupOf(p.GetGroup())
	eps, version := h.policies.of(group.RunID)
	request := inference.Request{
		ID:     fmt.Sprintf("%s/%d.%d", identity.TrajectoryID(t), step.Turn, step.Resumed),
		Prompt: step.Prompt, N: len(members), MaxTokens: step.MaxTokens,
		Seed:        seed(p, sampleIndex, step, members[0].account(step).Attempts()),
		Temperature: p.GetSampling().GetTemperature(), TopP: p.GetSampling().GetTopP(), TopK: int(p.GetSampling().GetTopK()),
		StopTokenIDs: h.stopTokens,
	}
	account := members[0].account(step)
	defer h.client.Begin(account)()
	started := time.Now()
	got, err := h.client.Sample(ctx, inference.Rank(eps, group.String()), request, account)
	if err != nil {
		for _, m := range members {
			if err := m.conclude(err); err != nil {
				return err
			}
		}
		return nil
	}
	ended := time.Now()
	h.metrics.sampleSeconds.Observe(ended.Sub(started).Seconds())
	mode, info := h.logprobs(eps), h.client.Known(got.Endpoint)
	for i, m := range members {
		if len(members) > 1 { // from here on each has an account of its own
			m.turn, m.at = account.Carry(turnID(m.Trajectory(), step.Turn)), step.Turn
		}
		m.Trajectory().LogprobsMode, m.Trajectory().Dialect = mode, info.Dialect
		c := rollout.Completion{Prompt: got.Prompt, PromptTokens: got.PromptTokens(), Started: started, Ended: ended}
		c.Versions, c.Source = h.policies.versionsOf(group.RunID, version, got, got.Choices[i])
		if err := h.take(m, got.Choices[i], c); err != nil {
			return err
		}
	}
	return nil
}

// take gives one completion to its trajectory, if it can be used.
func (h *handler) take(m *member, choice inference.Choice, c rollout.Completion) error {
	if choice.Err != nil {
		h.metrics.unusable.Inc()
		if inference.ClassOf(choice.Err) == inference.Refusal {
			return m.conclude(&inference.RefusedError{Err: choice.Err})
		}
		if err := m.turn.Unusable(h.client.Budget(), choice.Err); err != nil {
			return m.conclude(err)
		}
		return nil
	}
	h.metrics.tokens.Add(float64(len(choice.Tokens)))
	c.Tokens, c.Logprobs, c.Text, c.Finish = choice.Tokens, choice.Logprobs, choice.Text, choice.Finish
	c.Attempts = m.turn.Attempts()
	if err := m.Sampled(c); err != nil {
		return fmt.Errorf("sample %s: %w", identity.TrajectoryID(m.Trajectory()), err)
	}
	if !choice.Finish.More() {
		return nil
	}
	if err := m.turn.Aborted(len(choice.Tokens)); err != nil {
		return m.conclude(err)
	}
	return nil
}

// seed is the request's; the rest of an aborted turn, and another try at one, draw other
// numbers than the request before did.
func seed(p *sluicev1.Prompt, sampleIndex int, step rollout.Sample, attempts int) uint64 {
	s := identity.Seed(p.GetRunSeed(), identity.GroupOf(p.GetGroup()), sampleIndex, p.GetAttempt(), step.Turn)
	return s ^ uint64(step.Resumed)*0x9e3779b97f4a7c15 ^ uint64(attempts)*0xbf58476d1ce4e5b9
}
