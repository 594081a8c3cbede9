package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/sampler/observation"
	"github.com/sluice-rl/sluice/stages/sampler/toolcall"
)

// Config is what all rollouts of one process share.
type Config struct {
	Protocol toolcall.Protocol
	Defuser  *observation.Defuser
	Glue     Glue
	// Timeout is what the policy is told of a program that ran too long; empty is
	// observation.Message.
	Timeout observation.Timeout
	// Stage is noted as the one that ended a trajectory.
	Stage string
}

// Rollout drives one trajectory. It is not safe for concurrent use.
type Rollout struct {
	cfg Config
	t   *sluicev1.Trajectory
	// sent is the last prompt and what was sampled on it since: what the next prompt
	// must begin with.
	sent []uint32
	// total counts all tokens of the trajectory.
	total int
	// open: the last turn was aborted and is to go on; raw is its text so far.
	open bool
	raw  strings.Builder
	// observing: the last turn's program has run, candidate is the observation to
	// try next.
	observing bool
	candidate string
	// now is the latest time that was told.
	now time.Time
}

// Start begins the trajectory of one member. copy must not be 0. A prompt that leaves
// no room for a token of answer ends it at once, ungraded.
func Start(cfg Config, p *sluicev1.Prompt, sampleIndex uint32, copy uint64, promptTokens []uint32, now time.Time) *Rollout {
	r := &Rollout{cfg: cfg, now: now, t: &sluicev1.Trajectory{
		Prompt: p, SampleIndex: sampleIndex, Copy: copy, StartedAt: timestamppb.New(now),
	}}
	if n, budget := len(promptTokens), int(p.GetBudgets().GetTrajectoryTokens()); n >= budget {
		r.end(sluicev1.EndReason_END_REASON_PROMPT_TOO_LONG, "",
			fmt.Sprintf("the prompt is %d tokens, the budget for the whole trajectory %d", n, budget))
		return r
	}
	r.t.PromptTokens = tokens.IDs(promptTokens...)
	r.total = len(promptTokens)
	return r
}

// Resume takes up a trajectory that waits for the execution of its last turn. One whose
// tokens are not those that were sampled ends at once, ungraded.
func Resume(cfg Config, t *sluicev1.Trajectory, now time.Time) (*Rollout, error) {
	r := &Rollout{cfg: cfg, t: t, now: now}
	last := r.turn()
	if t.GetEndReason() != 0 || last.GetKind() != sluicev1.TurnKind_TURN_KIND_TOOL || last.GetExecution() != nil || tokens.Count(last.GetGlueTokens()) > 0 {
		return nil, fmt.Errorf("%w: %s does not wait for an execution", ErrOutOfTurn, identity.TrajectoryID(t))
	}
	r.sent = tokens.OfTrajectory(t)
	r.total = len(r.sent)
	if err := custody.Check(t); err != nil {
		r.end(sluicev1.EndReason_END_REASON_PROTOCOL_FAULT, r.turn().GetText(), err.Error())
	}
	return r, nil
}

// Trajectory is the record, as far as it has got.
func (r *Rollout) Trajectory() *sluicev1.Trajectory { return r.t }

// Next says what is needed now. It may be asked again.
func (r *Rollout) Next() Step {
	switch {
	case r.t.GetEndReason() != 0:
		return End{}
	case r.observing:
		return Observe{Text: r.candidate}
	case r.calling():
		turn := len(r.t.GetTurns()) - 1
		return Call{CallID: identity.CallID(r.t, turn), Code: r.turn().GetCode()}
	}
	prompt := tokens.OfTrajectory(r.t)
	if !hasPrefix(prompt, r.sent) {
		r.fault("the next prompt does not begin with the %d tokens so far", len(r.sent))
		return End{}
	}
	s := Sample{Prompt: prompt, MaxTokens: r.room(), Turn: len(r.t.GetTurns())}
	if r.open {
		s.Turn--
		s.Resumed = int(r.turn().GetAborts() + r.turn().GetCuts() + r.turn().GetTakeovers())
	}
	return s
}

// Attempted notes how many requests gave nothing usable for the turn that it wants now,
// before that ends the trajectory.
func (r *Rollout) Attempted(n int) { r.t.FailedAttempts = uint32(max(0, n)) }

// GiveUp ends the trajectory, ungraded, because the world failed. Like Fault and Refuse
// it leaves one that has ended as it is.
func (r *Rollout) GiveUp(detail string, now time.Time) {
	if r.t.GetEndReason() != 0 {
		return
	}
	r.now = now
	r.end(sluicev1.EndReason_END_REASON_INFRA_ERROR, r.text(), detail)
}

// Broken ends the trajectory, ungraded, because its program breaks sandboxes.
func (r *Rollout) Broken(detail string, now time.Time) {
	if r.t.GetEndReason() != 0 {
		return
	}
	r.now = now
	r.end(sluicev1.EndReason_END_REASON_SANDBOX_BROKEN, r.text(), detail)
}

// Fault ends the trajectory, ungraded, because of what the policy's server does with it.
func (r *Rollout) Fault(detail string, now time.Time) {
	if r.t.GetEndReason() != 0 {
		return
	}
	r.now = now
	r.fault("%s", detail)
}

// Refuse ends the trajectory with what it has, ungraded, because the policy's server
// will not go on with it.
func (r *Rollout) Refuse(detail string, now time.Time) {
	if r.t.GetEndReason() != 0 {
		return
	}
	r.now = now
	r.end(sluicev1.EndReason_END_REASON_REFUSED, r.text(), r.where()+detail)
}

// fault ends the trajectory because what the policy's server sent cannot be trained on.
func (r *Rollout) fault(format string, args ...any) {
	r.end(sluicev1.EndReason_END_REASON_PROTOCOL_FAULT, r.text(), r.where()+fmt.Sprintf(format, args...))
}

// where names the turn at hand.
func (r *Rollout) where() string {
	at := len(r.t.GetTurns())
	if r.open || r.observing {
		at--
	}
	return fmt.Sprintf("turn %d: ", at)
}

// text is the last turn's. One that was aborted and is not gone on with was never read,
// but its tokens were sampled: they stay, and so does their text.
func (r *Rollout) text() string {
	if r.open {
		r.turn().Text = toolcall.Strip(strings.ToValidUTF8(r.raw.String(), "\uFFFD"))
		return ""
	}
	return r.turn().GetText()
}

func (r *Rollout) end(reason sluicev1.EndReason, finalText, detail string) {
	r.t.EndReason = reason
	r.t.FinalText = finalText
	r.t.EndDetail = detail
	r.t.EndedBy = r.cfg.Stage
	r.t.EndedAt = timestamppb.New(r.now)
	r.open, r.observing = false, false
}

// turn is the last turn, nil before the first.
func (r *Rollout) turn() *sluicev1.Turn {
	if turns := r.t.GetTurns(); len(turns) > 0 {
		return turns[len(turns)-1]
	}
	return nil
}

// calling: the last turn's program is to be run.
func (r *Rollout) calling() bool {
	return r.turn().GetKind() == sluicev1.TurnKind_TURN_KIND_TOOL && r.turn().GetExecution() == nil
}

// room is how many tokens may still be sampled in the turn at hand.
func (r *Rollout) room() int {
	b := r.t.GetPrompt().GetBudgets()
	left := int(b.GetTrajectoryTokens()) - r.total
	if !r.t.GetPrompt().GetToolEnabled() {
		return left
	}
	inTurn := int(b.GetTurnTokens())
	if r.open {
		inTurn -= tokens.Count(r.turn().GetTokens())
	}
	return min(left, inTurn)
}

func hasPrefix(s, prefix []uint32) bool {
	return len(s) >= len(prefix) && slices.Equal(s[:len(prefix)], prefix)
}
