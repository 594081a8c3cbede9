package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/sampler/observation"
	"github.com/sluice-rl/sluice/stages/sampler/toolcall"
)

// Sampled takes what the policy answered to the Sample that Next gave.
func (r *Rollout) Sampled(c Completion) error {
	sample, ok := r.Next().(Sample)
	if !ok {
		return fmt.Errorf("%w: a completion came while it waits for %T", ErrOutOfTurn, r.Next())
	}
	r.now = c.Ended
	if !r.check(sample, c) {
		return nil
	}
	if !r.open {
		r.t.Turns = append(r.t.Turns, &sluicev1.Turn{SampleStartedAt: timestamppb.New(c.Started)})
		r.raw.Reset()
	}
	turn := r.turn()
	turn.Tokens = tokens.AppendIDs(turn.Tokens, c.Tokens...)
	turn.Logprobs = tokens.AppendFloats(turn.Logprobs, c.Logprobs...)
	for _, v := range c.Versions {
		turn.Versions = tokens.AppendVersion(turn.Versions, v.Version, v.Count)
	}
	turn.VersionSource = max(turn.VersionSource, c.Source)
	turn.Attempts = uint32(max(0, c.Attempts))
	custody.Seal(r.t)
	turn.SampleEndedAt = timestamppb.New(c.Ended)
	r.raw.WriteString(c.Text)
	r.sent = append(sample.Prompt, c.Tokens...)
	r.total += len(c.Tokens)

	if c.Finish.More() && len(c.Tokens) < sample.MaxTokens {
		if c.Finish == Cut {
			turn.Cuts++
		} else {
			turn.Aborts++
		}
		r.open = true
		return nil
	}
	r.open = false
	turn.Truncated = c.Finish != Stopped
	turn.Text = toolcall.Strip(strings.ToValidUTF8(r.raw.String(), "\uFFFD"))
	r.decide(turn)
	return nil
}

// check ends the trajectory where a completion cannot be trained on as it is.
func (r *Rollout) check(s Sample, c Completion) bool {
	switch {
	case len(c.Tokens) != len(c.Logprobs):
		r.fault("%d tokens, %d logprobs: must be equal", len(c.Tokens), len(c.Logprobs))
	case len(c.Tokens) > s.MaxTokens:
		r.fault("%d tokens sampled where at most %d were asked for", len(c.Tokens), s.MaxTokens)
	case len(c.Tokens) == 0 && !c.Finish.More():
		r.fault("an ending without a token: a policy that stops at once has sampled an end token")
	case versioned(c.Versions) != len(c.Tokens):
		r.fault("%d tokens, versions of %d: must be equal", len(c.Tokens), versioned(c.Versions))
	case c.Prompt != nil && !slices.Equal(c.Prompt, s.Prompt):
		r.fault("%s", otherPrompt(s.Prompt, c.Prompt))
	case c.Prompt == nil && c.PromptTokens > 0 && c.PromptTokens != len(s.Prompt):
		r.fault("the server sampled on a prompt of %d tokens where %d were sent: it adds or drops some", c.PromptTokens, len(s.Prompt))
	default:
		for i, l := range c.Logprobs {
			// l-l is 0 for every number but NaN and the infinities.
			if l-l != 0 {
				r.fault("the logprob of sampled token %d is %v", i, l)
				return false
			}
		}
		return true
	}
	return false
}

func versioned(vs []Versions) int {
	n := 0
	for _, v := range vs {
		n += v.Count
	}
	return n
}

// otherPrompt says in what the prompt that was sampled on differs from the one sent.
func otherPrompt(sent, used []uint32) string {
	at := 0
	for at < min(len(sent), len(used)) && sent[at] == used[at] {
		at++
	}
	s := fmt.Sprintf("the server sampled on another prompt: %d tokens sent, %d used, the first difference is at index %d", len(sent), len(used), at)
	switch {
	case len(used) > len(sent) && slices.Equal(used[len(used)-len(sent):], sent):
		s += fmt.Sprintf(": it put %d tokens before it (a BOS?)", len(used)-len(sent))
	case len(used) < len(sent) && slices.Equal(sent[len(sent)-len(used):], used):
		s += fmt.Sprintf(": it dropped the first %d", len(sent)-len(used))
	}
	return s
}

// decide reads a turn that is complete.
func (r *Rollout) decide(turn *sluicev1.Turn) {
	if !r.t.GetPrompt().GetToolEnabled() {
		turn.Kind = sluicev1.TurnKind_TURN_KIND_ANSWER
		r.end(sluicev1.EndReason_END_REASON_ANSWER, turn.Text, "")
		return
	}
	parsed := r.cfg.Protocol.Parse(turn.Text)
	turn.Kind, turn.Code, turn.InvalidReason = parsed.Kind, parsed.Code, string(parsed.Reason)
	b := r.t.GetPrompt().GetBudgets()
	switch {
	case turn.Kind == sluicev1.TurnKind_TURN_KIND_ANSWER:
		r.end(sluicev1.EndReason_END_REASON_ANSWER, turn.Text, "")
	case turn.Kind != sluicev1.TurnKind_TURN_KIND_TOOL:
		r.end(sluicev1.EndReason_END_REASON_INVALID_TOOL_CALL, turn.Text, turn.InvalidReason)
	case r.t.CodeCalls >= b.GetCodeCalls():
		r.end(sluicev1.EndReason_END_REASON_CODE_CALL_BUDGET, turn.Text,
			fmt.Sprintf("a call beyond the %d allowed", b.GetCodeCalls()))
	case len(r.t.Turns) >= int(b.GetTurns()):
		r.end(sluicev1.EndReason_END_REASON_TURN_BUDGET, turn.Text,
			fmt.Sprintf("a call in turn %d of the %d allowed", len(r.t.Turns), b.GetTurns()))
	}
}

// Executed takes the run of the program that Next asked for with Call.
func (r *Rollout) Executed(e *sluicev1.Execution, now time.Time) error {
	if call, ok := r.Next().(Call); !ok {
		return fmt.Errorf("%w: an execution came while it waits for %T", ErrOutOfTurn, r.Next())
	} else if id := e.GetCallId(); id != "" && id != call.CallID {
		return fmt.Errorf("%w: an execution of call %s came for call %s", ErrOutOfTurn, id, call.CallID)
	}
	r.now = now
	r.turn().Execution = e
	r.t.Executions++
	r.observing = true
	r.turn().TimeoutObservation = r.cfg.Timeout.Recorded(e)
	r.candidate = r.cfg.Defuser.Defuse(observation.Text(e, r.cfg.Timeout))
	return nil
}

// Observed takes the tokens of the observation that Next asked for with Observe: the
// closing tokens, the observation and all around it up to the next turn.
func (r *Rollout) Observed(tail []uint32, now time.Time) error {
	if _, ok := r.Next().(Observe); !ok {
		return fmt.Errorf("%w: tokens of an observation came while it waits for %T", ErrOutOfTurn, r.Next())
	}
	r.now = now
	if !hasPrefix(tail, r.cfg.Glue.Closing) {
		r.fault("the chat template closes an assistant's message differently before an observation: %d tokens do not begin with the %d closing ones", len(tail), len(r.cfg.Glue.Closing))
		return nil
	}
	turn := r.turn()
	glue := tail[Overlap(tokens.ReadIDs(turn.GetTokens()), r.cfg.Glue.Closing):]
	b := r.t.GetPrompt().GetBudgets()
	own, left := max(0, len(tail)-r.cfg.Glue.Overhead), int(b.GetTrajectoryTokens())-r.total
	if own > int(b.GetObservationTokens()) || len(glue) > left {
		r.shrink(own, len(glue), left)
		return nil
	}
	r.observing = false
	turn.Observation = r.candidate
	turn.GlueTokens = tokens.IDs(glue...)
	custody.Seal(r.t)
	r.t.CodeCalls++
	r.total += len(glue)
	if len(glue) == left {
		// Nothing is left to answer with, so there is no answer to read.
		r.end(sluicev1.EndReason_END_REASON_TOKEN_BUDGET, "",
			fmt.Sprintf("the observation filled the %d tokens allowed", b.GetTrajectoryTokens()))
	}
	return nil
}

func (r *Rollout) shrink(own, glue, left int) {
	shorter, ok := observation.Shrink(r.candidate)
	if ok {
		r.candidate = shorter
		return
	}
	r.end(sluicev1.EndReason_END_REASON_OBSERVATION_DOES_NOT_FIT, r.turn().GetText(), fmt.Sprintf(
		"shrunk as far as it goes it has %d tokens of %d allowed, %d with the glue around it of %d left",
		own, r.t.GetPrompt().GetBudgets().GetObservationTokens(), glue, left))
}
