package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/observation"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/toolcall"
)

const (
	name              = "sampler"
	topicCodeCalls    = "code-calls"
	topicTrajectories = "trajectories"
)

// handler works on prompts and code results.
type handler struct {
	client       *inference.Client
	policies     *policies
	templates    *templates
	protocol     toolcall.Protocol
	defuser      *observation.Defuser
	timeout      observation.Timeout
	systemPrompt string
	logprobsMode string
	stopTokens   []uint32
	warnings     *warnings
	metrics      *metrics
	log          *slog.Logger
	// stopping is closed when the process is to end.
	stopping <-chan struct{}
}

// Handle brings every trajectory of a record to its next code call or to its end.
func (h *handler) Handle(ctx context.Context, m kafka.Message) ([]kafka.Output, error) {
	switch body := m.Body.(type) {
	case *sluicev1.Prompt:
		return h.unlessClosed(ctx, body.GetGroup(), func(ctx context.Context) ([]kafka.Output, error) { return h.begin(ctx, body) })
	case *sluicev1.CodeResult:
		return h.unlessClosed(ctx, body.GetTrajectory().GetPrompt().GetGroup(), func(ctx context.Context) ([]kafka.Output, error) { return h.resume(ctx, body) })
	}
	return nil, kafka.Reject(fmt.Errorf("a %T on topic %s: the sampler works on Prompt and CodeResult", m.Body, m.Topic), "refused")
}

// unlessClosed works on a record until its group's step is done: what nobody waits for is
// given no more work, and leads to nothing.
func (h *handler) unlessClosed(ctx context.Context, place *sluicev1.GroupPlace, f func(context.Context) ([]kafka.Output, error)) ([]kafka.Output, error) {
	group := identity.GroupOf(place)
	ctx, end := h.policies.work(ctx, group)
	defer end()
	outputs, err := f(ctx)
	if errors.Is(context.Cause(ctx), errClosed) {
		h.metrics.closed.Inc()
		h.log.Debug("a record of a step that is done is left", "group", group)
		return nil, nil
	}
	return outputs, err
}

// begin samples the first turn of all members with one request.
func (h *handler) begin(ctx context.Context, p *sluicev1.Prompt) ([]kafka.Output, error) {
	if p.GetToolEnabled() && p.GetToolProtocol() != h.protocol.Name() {
		return nil, kafka.Reject(fmt.Errorf("prompt asks for tool protocol %q, this sampler speaks %q: start one with --tool-protocol %[1]s", p.GetToolProtocol(), h.protocol.Name()), "refused")
	}
	eps, _ := h.policies.of(p.GetGroup().GetRunId())
	group := identity.GroupOf(p.GetGroup()).String()
	account := &inference.Turn{ID: group + " turn 0"}
	defer h.client.Begin(account)()
	tmpl, err := h.templates.of(ctx, eps, account)
	if err != nil {
		return h.conclude(p, err)
	}
	conversation := inference.Conversation{Messages: rollout.Conversation(p, h.systemPrompt), Generate: true}
	if p.GetToolEnabled() {
		conversation.Tools = h.protocol.Tools()
	}
	tokens, err := h.client.Render(ctx, inference.Rank(eps, group), conversation, account)
	if err != nil {
		return h.conclude(p, err)
	}
	h.warnings.sampling(p, h.logprobs(eps))
	members := h.members(tmpl.Glue(), h.withinContext(p, eps), tokens)
	if first, ok := members[0].Next().(rollout.Sample); ok {
		for _, m := range members {
			m.turn = account
		}
		if err := h.sample(ctx, members, first, identity.NoSample); err != nil {
			return nil, err
		}
	}
	return h.finish(ctx, tmpl, members)
}

// conclude ends all members of a prompt that was never sampled.
func (h *handler) conclude(p *sluicev1.Prompt, err error) ([]kafka.Output, error) {
	members := h.members(rollout.Glue{}, p, nil)
	outputs := make([]kafka.Output, len(members))
	for i, m := range members {
		if err := m.conclude(err); err != nil {
			return nil, err
		}
		outputs[i] = h.ended(m.Trajectory())
	}
	return outputs, nil
}

// withinContext lowers a trajectory's budget to what the servers can hold, so that a
// trajectory ends by its budget and not by a request that a server refuses.
func (h *handler) withinContext(p *sluicev1.Prompt, eps []inference.Endpoint) *sluicev1.Prompt {
	most := 0
	for _, ep := range eps {
		if n := h.client.Known(ep).MaxModelLen; n > 0 && (most == 0 || n < most) {
			most = n
		}
	}
	if most == 0 || int64(p.GetBudgets().GetTrajectoryTokens()) <= int64(most) {
		return p
	}
	h.warnings.context(p, int64(most))
	p = proto.Clone(p).(*sluicev1.Prompt)
	p.Budgets.TrajectoryTokens = uint32(most)
	return p
}

// logprobs is what the endpoints' logprobs are of: as the flag says, or as their dialect
// documents it.
func (h *handler) logprobs(eps []inference.Endpoint) string {
	if h.logprobsMode != logprobsAuto {
		return h.logprobsMode
	}
	for _, ep := range eps {
		if mode := h.client.Known(ep).Logprobs; mode != "" {
			return mode
		}
	}
	return ""
}

// members starts the trajectories that a prompt asks for.
func (h *handler) members(glue rollout.Glue, p *sluicev1.Prompt, tokens []uint32) []*member {
	indices := p.GetSampleIndices()
	if len(indices) == 0 {
		for i := range p.GetGroupSize() {
			indices = append(indices, i)
		}
	}
	members := make([]*member, len(indices))
	for i, index := range indices {
		members[i] = &member{Rollout: rollout.Start(h.config(glue), p, index, drawCopy(), tokens, time.Now())}
	}
	return members
}

// drawCopy tells work that is done twice apart. 0 stands for none.
func drawCopy() uint64 {
	for {
		if c := rand.Uint64(); c != 0 {
			return c
		}
	}
}

func (h *handler) config(glue rollout.Glue) rollout.Config {
	return rollout.Config{Protocol: h.protocol, Defuser: h.defuser, Glue: glue, Timeout: h.timeout, Stage: name}
}

// resume takes up a trajectory whose program has run.
func (h *handler) resume(ctx context.Context, c *sluicev1.CodeResult) ([]kafka.Output, error) {
	// The record may be worked on again after an error: it must stay as it was read.
	t := proto.Clone(c.GetTrajectory()).(*sluicev1.Trajectory)
	eps, _ := h.policies.of(t.GetPrompt().GetGroup().GetRunId())
	account := &inference.Turn{ID: turnID(t, len(t.GetTurns()))}
	defer h.client.Begin(account)()
	tmpl, failed := h.templates.of(ctx, eps, account)
	var glue rollout.Glue
	if failed == nil {
		glue = tmpl.Glue()
	}
	r, err := rollout.Resume(h.config(glue), t, time.Now())
	if err == nil && r.Trajectory().GetEndReason() == 0 {
		err = r.Executed(c.GetExecution(), time.Now())
	}
	if err != nil {
		return nil, kafka.Reject(err, "invalid")
	}
	m := &member{Rollout: r}
	if failed != nil {
		if err := m.conclude(failed); err != nil {
			return nil, err
		}
	}
	return h.finish(ctx, tmpl, []*member{m})
}

// finish drives each trajectory on until it wants a program run or has ended.
func (h *handler) finish(ctx context.Context, tmpl *inference.Template, members []*member) ([]kafka.Output, error) {
	outputs := make([]kafka.Output, len(members))
	g, ctx := errgroup.WithContext(ctx)
	for i, m := range members {
		g.Go(func() (err error) {
			outputs[i], err = h.drive(ctx, tmpl, m)
			return err
		})
	}
	return outputs, g.Wait()
}

func (h *handler) drive(ctx context.Context, tmpl *inference.Template, m *member) (kafka.Output, error) {
	var pause pause
	for {
		switch step := m.Next().(type) {
		case rollout.Sample:
			again := step.Resumed > 0 || m.account(step).Attempts() > 0
			if err := pause.before(ctx, again, h.stopping); err != nil {
				return kafka.Output{}, err
			}
			if err := h.sample(ctx, []*member{m}, step, int(m.Trajectory().GetSampleIndex())); err != nil {
				return kafka.Output{}, err
			}
		case rollout.Observe:
			if err := h.observe(ctx, tmpl, m, step); err != nil {
				return kafka.Output{}, err
			}
		case rollout.Call:
			return kafka.Output{Topic: topicCodeCalls, RoundRobin: true, Body: &sluicev1.CodeCall{
				Trajectory: m.Trajectory(), CallId: step.CallID, RequestedAt: timestamppb.Now(),
			}}, nil
		case rollout.End:
			return h.ended(m.Trajectory()), nil
		}
	}
}

func (h *handler) observe(ctx context.Context, tmpl *inference.Template, m *member, step rollout.Observe) error {
	t := m.Trajectory()
	eps, _ := h.policies.of(t.GetPrompt().GetGroup().GetRunId())
	account := &inference.Turn{ID: turnID(t, len(t.GetTurns()))}
	defer h.client.Begin(account)()
	tail, err := tmpl.Tail(ctx, h.templates.renderer(inference.Rank(eps, identity.GroupOf(t.GetPrompt().GetGroup()).String()), account), step.Text)
	if err != nil {
		return m.conclude(err)
	}
	return m.Observed(tail, time.Now())
}

// ended counts a trajectory that has ended and, for the reasons that are somebody's
// fault, logs it.
func (h *handler) ended(t *sluicev1.Trajectory) kafka.Output {
	h.metrics.ended.WithLabelValues(reason(t)).Inc()
	switch t.GetEndReason() {
	case sluicev1.EndReason_END_REASON_PROTOCOL_FAULT:
		h.log.Error("trajectory cannot be trained on", "trajectory", identity.TrajectoryID(t), "detail", t.GetEndDetail())
	case sluicev1.EndReason_END_REASON_INFRA_ERROR, sluicev1.EndReason_END_REASON_REFUSED:
		h.log.Warn("trajectory ended by its server", "trajectory", identity.TrajectoryID(t), "reason", reason(t), "detail", t.GetEndDetail())
	}
	return kafka.Output{Topic: topicTrajectories, Body: t}
}
