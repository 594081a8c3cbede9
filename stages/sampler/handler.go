package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
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

// policy is an inference server: the one seam to other dialects than vLLM's.
type policy interface {
	Check(ctx context.Context, ep inference.Endpoint) (inference.Info, error)
	Sample(ctx context.Context, ep inference.Endpoint, r inference.Request) (inference.Response, error)
	Render(ctx context.Context, ep inference.Endpoint, c inference.Conversation) ([]uint32, error)
}

// handler works on prompts and code results.
type handler struct {
	policy       policy
	policies     *policies
	templates    *templates
	protocol     toolcall.Protocol
	defuser      *observation.Defuser
	systemPrompt string
	logprobsMode string
	stopTokens   []uint32
	// context is the longest prompt and completion together that the server takes; 0:
	// not known.
	context  atomic.Int64
	warnings *warnings
	metrics  *metrics
	log      *slog.Logger
}

// Handle brings every trajectory of a record to its next code call or to its end.
func (h *handler) Handle(ctx context.Context, m kafka.Message) ([]kafka.Output, error) {
	switch body := m.Body.(type) {
	case *sluicev1.Prompt:
		return h.begin(ctx, body)
	case *sluicev1.CodeResult:
		return h.goOn(ctx, body)
	}
	return nil, kafka.Reject(fmt.Errorf("a %T on topic %s: the sampler works on Prompt and CodeResult", m.Body, m.Topic), "refused")
}

// begin samples the first turn of all members with one request.
func (h *handler) begin(ctx context.Context, p *sluicev1.Prompt) ([]kafka.Output, error) {
	if p.GetToolEnabled() && p.GetToolProtocol() != h.protocol.Name() {
		return nil, kafka.Reject(fmt.Errorf("prompt asks for tool protocol %q, this sampler speaks %q: start one with --tool-protocol %[1]s", p.GetToolProtocol(), h.protocol.Name()), "refused")
	}
	h.warnings.sampling(p, h.logprobsMode)
	p = h.withinContext(p)
	ep, _ := h.policies.of(p.GetGroup().GetRunId())
	tmpl, err := h.templates.of(ctx, ep)
	if err != nil {
		return nil, refused(err)
	}
	conversation := inference.Conversation{Messages: rollout.Conversation(p, h.systemPrompt), Generate: true}
	if p.GetToolEnabled() {
		conversation.Tools = h.protocol.Tools()
	}
	tokens, err := h.policy.Render(ctx, ep, conversation)
	if err != nil {
		return nil, refused(err)
	}
	members := h.members(tmpl, p, tokens)
	if first, ok := members[0].Next().(rollout.Sample); ok {
		if err := h.sample(ctx, members, first, identity.NoSample); err != nil {
			return nil, err
		}
	}
	return h.finish(ctx, tmpl, members)
}

// withinContext lowers a trajectory's budget to what the server can hold, so that a
// trajectory ends by its budget and not by a request that the server refuses.
func (h *handler) withinContext(p *sluicev1.Prompt) *sluicev1.Prompt {
	most := h.context.Load()
	if most == 0 || int64(p.GetBudgets().GetTrajectoryTokens()) <= most {
		return p
	}
	h.warnings.context(p, most)
	p = proto.Clone(p).(*sluicev1.Prompt)
	p.Budgets.TrajectoryTokens = uint32(most)
	return p
}

// members starts the trajectories that a prompt asks for.
func (h *handler) members(tmpl *inference.Template, p *sluicev1.Prompt, tokens []uint32) []*rollout.Rollout {
	indices := p.GetSampleIndices()
	if len(indices) == 0 {
		for i := range p.GetGroupSize() {
			indices = append(indices, i)
		}
	}
	members := make([]*rollout.Rollout, len(indices))
	for i, index := range indices {
		members[i] = rollout.Start(h.config(tmpl), p, index, drawCopy(), tokens, time.Now())
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

func (h *handler) config(tmpl *inference.Template) rollout.Config {
	return rollout.Config{Protocol: h.protocol, Defuser: h.defuser, Glue: tmpl.Glue(), Stage: name}
}

// goOn takes up a trajectory whose program has run.
func (h *handler) goOn(ctx context.Context, c *sluicev1.CodeResult) ([]kafka.Output, error) {
	ep, _ := h.policies.of(c.GetTrajectory().GetPrompt().GetGroup().GetRunId())
	tmpl, err := h.templates.of(ctx, ep)
	if err != nil {
		return nil, refused(err)
	}
	// The record may be worked on again after an error: it must stay as it was read.
	t := proto.Clone(c.GetTrajectory()).(*sluicev1.Trajectory)
	r, err := rollout.Resume(h.config(tmpl), t, time.Now())
	if err == nil {
		err = r.Executed(c.GetExecution(), time.Now())
	}
	if err != nil {
		return nil, kafka.Reject(err, "invalid")
	}
	return h.finish(ctx, tmpl, []*rollout.Rollout{r})
}

// finish drives each rollout on until it wants a program run or has ended.
func (h *handler) finish(ctx context.Context, tmpl *inference.Template, rollouts []*rollout.Rollout) ([]kafka.Output, error) {
	outputs := make([]kafka.Output, len(rollouts))
	g, ctx := errgroup.WithContext(ctx)
	for i, r := range rollouts {
		g.Go(func() (err error) {
			outputs[i], err = h.drive(ctx, tmpl, r)
			return err
		})
	}
	return outputs, g.Wait()
}

func (h *handler) drive(ctx context.Context, tmpl *inference.Template, r *rollout.Rollout) (kafka.Output, error) {
	var pause pause
	for {
		switch step := r.Next().(type) {
		case rollout.Sample:
			if err := pause.before(ctx, step); err != nil {
				return kafka.Output{}, err
			}
			if err := h.sample(ctx, []*rollout.Rollout{r}, step, int(r.Trajectory().GetSampleIndex())); err != nil {
				return kafka.Output{}, err
			}
		case rollout.Observe:
			if err := h.observe(ctx, tmpl, r, step); err != nil {
				return kafka.Output{}, err
			}
		case rollout.Call:
			return kafka.Output{Topic: topicCodeCalls, RoundRobin: true, Body: &sluicev1.CodeCall{
				Trajectory: r.Trajectory(), CallId: step.CallID, RequestedAt: timestamppb.Now(),
			}}, nil
		case rollout.End:
			h.ended(r.Trajectory())
			return kafka.Output{Topic: topicTrajectories, Body: r.Trajectory()}, nil
		}
	}
}

// sample asks for one completion for each of the rollouts, which share the step.
// sampleIndex is identity.NoSample for a whole group.
func (h *handler) sample(ctx context.Context, rollouts []*rollout.Rollout, step rollout.Sample, sampleIndex int) error {
	t := rollouts[0].Trajectory()
	p := t.GetPrompt()
	ep, version := h.policies.of(p.GetGroup().GetRunId())
	request := inference.Request{
		ID:     fmt.Sprintf("%s/%d.%d", identity.TrajectoryID(t), step.Turn, step.Resumed),
		Prompt: step.Prompt, N: len(rollouts), MaxTokens: step.MaxTokens,
		Seed:        seed(p, sampleIndex, step),
		Temperature: p.GetSampling().GetTemperature(), TopP: p.GetSampling().GetTopP(), TopK: int(p.GetSampling().GetTopK()),
		StopTokenIDs: h.stopTokens,
	}
	started := time.Now()
	got, err := h.policy.Sample(ctx, ep, request)
	if err != nil {
		return refused(err)
	}
	ended := time.Now()
	h.metrics.sampleSeconds.Observe(ended.Sub(started).Seconds())
	if got.HasVersion {
		version = got.PolicyVersion
	}
	for i, r := range rollouts {
		c := got.Choices[i]
		h.metrics.tokens.Add(float64(len(c.Tokens)))
		err := r.Sampled(rollout.Completion{
			Tokens: c.Tokens, Logprobs: c.Logprobs, Text: c.Text, Finish: finish(c.Finish),
			PolicyVersion: version, Prompt: got.Prompt, Started: started, Ended: ended,
		})
		if err != nil {
			return fmt.Errorf("sample %s: %w", identity.TrajectoryID(r.Trajectory()), err)
		}
	}
	return nil
}

// seed is the request's; the rest of an aborted turn draws other numbers than its
// beginning did.
func seed(p *sluicev1.Prompt, sampleIndex int, step rollout.Sample) uint64 {
	s := identity.Seed(p.GetRunSeed(), identity.GroupOf(p.GetGroup()), sampleIndex, p.GetAttempt(), step.Turn)
	return s ^ uint64(step.Resumed)*0x9e3779b97f4a7c15
}

func finish(reason string) rollout.Finish {
	switch reason {
	case "length":
		return rollout.Length
	case "abort":
		return rollout.Aborted
	}
	return rollout.Stopped
}

func (h *handler) observe(ctx context.Context, tmpl *inference.Template, r *rollout.Rollout, step rollout.Observe) error {
	ep, _ := h.policies.of(r.Trajectory().GetPrompt().GetGroup().GetRunId())
	tail, err := tmpl.Tail(ctx, h.templates.renderer(ep), step.Text)
	if errors.Is(err, inference.ErrTemplate) {
		r.Fault(err.Error(), time.Now())
		return nil
	}
	if err != nil {
		return refused(err)
	}
	return r.Observed(tail, time.Now())
}

// ended counts and, for the two reasons that are somebody's fault, logs.
func (h *handler) ended(t *sluicev1.Trajectory) {
	h.metrics.ended.WithLabelValues(reason(t)).Inc()
	if t.GetEndReason() == sluicev1.EndReason_END_REASON_PROTOCOL_FAULT {
		h.log.Error("trajectory cannot be trained on", "trajectory", identity.TrajectoryID(t), "detail", t.GetEndDetail())
	}
}

// refused gives a record up if the server refuses the request itself. Anything else
// that fails is trouble that may pass.
func refused(err error) error {
	var status *inference.StatusError
	if errors.As(err, &status) && status.Refused() {
		return kafka.Reject(err, "refused")
	}
	return err
}

// pause keeps a rollout from asking in a loop while the policy's weights are being
// changed and every generation is aborted at once.
type pause struct{ next time.Duration }

const (
	pauseFirst = 50 * time.Millisecond
	pauseMost  = 2 * time.Second
)

func (p *pause) before(ctx context.Context, s rollout.Sample) error {
	if s.Resumed == 0 {
		p.next = 0
		return nil
	}
	p.next = min(max(pauseFirst, 2*p.next), pauseMost)
	select {
	case <-time.After(p.next):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
