package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/toolcall"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `sampler drives trajectories: it asks the policy for every turn.

Reads   code-results before prompts; policy-updates (every instance reads all)
Writes  code-calls, trajectories

The policy is an inference server in vLLM's dialect (vLLM, simpolicy) at
--inference-url, until a policy update names another. While it is away the
sampler waits. Start it with raw logprobs and temperature 1, or with processed
logprobs (vllm serve --logprobs-mode processed_logprobs, and
--logprobs-mode processed here): otherwise the behaviour logprobs are not those
of the distribution that was sampled.`

// readyPart is what the sampler calls the inference server in its readiness.
const readyPart = "inference server"

// sampler is the wiring: flags, clients, the handler, the runner.
type sampler struct {
	cfg config
	// http is nil but in tests, which have a fake server.
	http *http.Client
}

func newSampler() *sampler { return &sampler{} }

func (s *sampler) spec() stage.Spec {
	return stage.Spec{
		Name: name, About: about,
		Flags:    func(f *process.Flags) { s.cfg.register(f.Group("Sampling")) },
		Validate: s.cfg.validate,
		Run:      s.run,
	}
}

func (s *sampler) run(ctx context.Context, env *stage.Env) error {
	env.Status.Backend(readyPart, s.cfg.url)
	env.Health.Ready(readyPart, errors.New("not asked yet"))
	h, err := s.handler(env)
	if err != nil {
		return process.Usage(err)
	}
	g, ctx := errgroup.WithContext(ctx)
	caughtUp := make(chan struct{})
	g.Go(func() error {
		return kafka.RunBroadcast(ctx, env.Kafka, env.Stage.Broadcast, func() { close(caughtUp) }, func(m kafka.Message) error {
			if u, ok := m.Body.(*sluicev1.PolicyUpdate); ok {
				h.policies.update(u)
			}
			return nil
		})
	})
	g.Go(func() error {
		// A sampler that has not read all policy updates would sample an old policy, at
		// an old address, and call its tokens by an old version.
		select {
		case <-caughtUp:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := s.check(ctx, env, h); err != nil {
			return err
		}
		return kafka.RunClassic(ctx, kafka.ClassicConfig{
			Cluster: env.Kafka, Stage: name, Concurrency: s.cfg.concurrency, Priority: []string{"code-results", "prompts"},
		}, h)
	})
	return g.Wait()
}

func (s *sampler) handler(env *stage.Env) (*handler, error) {
	protocol, err := toolcall.ByName(s.cfg.protocol)
	if err != nil {
		return nil, err
	}
	systemPrompt, err := s.cfg.systemPrompt()
	if err != nil {
		return nil, err
	}
	defuser, err := s.cfg.defuser()
	if err != nil {
		return nil, err
	}
	client := inference.NewVLLM(inference.Config{
		HTTP: s.http, MaxConnections: 2 * s.cfg.concurrency, RequestTimeout: s.cfg.requestTimeout, APIKey: s.cfg.apiKey,
		Log: env.Log, Ready: func(err error) { env.Health.Ready(readyPart, err) },
	})
	return &handler{
		policy: client, policies: newPolicies(inference.Endpoint{URL: s.cfg.url, Model: s.cfg.model}),
		templates: newTemplates(client, systemPrompt, protocol.Tools()),
		protocol:  protocol, defuser: defuser, systemPrompt: systemPrompt,
		logprobsMode: s.cfg.logprobsMode, stopTokens: s.cfg.stopTokenIDs(),
		warnings: newWarnings(env.Log), metrics: newMetrics(env.Metrics), log: env.Log,
	}, nil
}

// check waits for the inference server and refuses one that cannot be worked with.
func (s *sampler) check(ctx context.Context, env *stage.Env, h *handler) error {
	for {
		ep := h.policies.current()
		err := s.checkOnce(ctx, env, h, ep)
		var status *inference.StatusError
		switch {
		case err == nil:
			env.Health.Ready(readyPart, nil)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, inference.ErrUnknownModel), errors.Is(err, inference.ErrTemplate), errors.Is(err, inference.ErrAnswer),
			errors.As(err, &status) && status.Status < 500:
			return process.Unusable(fmt.Errorf("inference server %s: %w", ep.URL, err))
		}
		env.Log.Error("inference server still away", "url", ep.URL, "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (s *sampler) checkOnce(ctx context.Context, env *stage.Env, h *handler, ep inference.Endpoint) error {
	info, err := h.policy.Check(ctx, ep)
	if err != nil {
		return err
	}
	h.policies.named(info.Model)
	h.context.Store(int64(info.MaxModelLen))
	ep.Model = info.Model
	tmpl, err := h.templates.of(ctx, ep)
	if err != nil {
		return err
	}
	env.Log.Info("inference server found", "url", ep.URL, "model", info.Model, "max_model_len", info.MaxModelLen,
		"logprobs_mode", s.cfg.logprobsMode, "tool_protocol", s.cfg.protocol,
		"closing_tokens", tmpl.Glue().Closing, "observation_overhead_tokens", tmpl.Glue().Overhead)
	return nil
}
