package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/observation"
	"github.com/sluice-rl/sluice/stages/sampler/toolcall"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `sampler drives trajectories: it asks the policy for every turn.

Reads   code-results before prompts; policy-updates (every instance reads all)
Writes  code-calls, trajectories

The policy is one or more inference servers at --inference-url, until a policy
update names another for its run: vLLM (completions with token ids, or
/inference/v1/generate), SGLang, llama-server, an OpenAI endpoint that returns
token ids, or simpolicy. While they are away the sampler waits. An answer that
cannot be used is asked for again within --turn-attempts and --turn-time; then
the trajectory ends, ungraded. If the servers refuse everybody, the sampler
stops with their words and exit status 3.

Sample with raw logprobs at temperature 1, or with processed logprobs (vllm
serve --logprobs-mode processed_logprobs, and --logprobs-mode processed here):
otherwise the behaviour logprobs are not those of the distribution that was
sampled.`

const (
	// readyPart is what the sampler calls the inference servers in its readiness: not
	// ready means that none takes requests on.
	readyPart = "inference server"
	// turnsPart is not ready while one of several is away, or a turn has waited for long.
	turnsPart = "turns of the policy"
)

// sampler is the wiring: flags, clients, the handler, its life.
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
	env.Status.Backend(readyPart, s.where())
	env.Health.Ready(readyPart, errors.New("not asked yet"))
	g, ctx := errgroup.WithContext(ctx)
	// refused is what ends the stage when the servers refuse everybody.
	refused := make(chan error, 1)
	h, err := s.handler(ctx, env, func(err error) { refused <- err })
	if err != nil {
		return process.Usage(err)
	}
	g.Go(func() error {
		select {
		case err := <-refused:
			return process.Unusable(fmt.Errorf("the inference server refuses everybody, so the sampler stops before more prompts are lost: %w (%s)", err, hint(err)))
		case <-ctx.Done():
			return nil
		}
	})
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
		return s.work(ctx, env, h)
	})
	return g.Wait()
}

// work checks the servers that the flags name and works on records as soon as one of them
// is found, or at once where a run is sampled elsewhere. What runs left behind decides
// nothing else: only a record of a run has its server asked.
func (s *sampler) work(ctx context.Context, env *stage.Env, h *handler) error {
	g, ctx := errgroup.WithContext(ctx)
	var once sync.Once
	found := make(chan struct{})
	begin := func() { once.Do(func() { close(found) }) }
	if h.policies.elsewhere() {
		begin()
	}
	for _, ep := range s.cfg.endpoints() {
		g.Go(func() error {
			if err := s.check(ctx, env, h, ep); err != nil {
				return err
			}
			env.Health.Ready(readyPart, nil)
			begin()
			return nil
		})
	}
	g.Go(func() error {
		select {
		case <-found:
		case <-ctx.Done():
			return ctx.Err()
		}
		return kafka.RunClassic(ctx, kafka.ClassicConfig{
			Cluster: env.Kafka, Stage: name, Concurrency: s.cfg.concurrency, Priority: []string{"code-results", "prompts"},
		}, h)
	})
	return g.Wait()
}

func (s *sampler) handler(ctx context.Context, env *stage.Env, fatal func(error)) (*handler, error) {
	protocol, err := toolcall.ByName(s.cfg.protocol)
	if err != nil {
		return nil, err
	}
	systemPrompt, err := s.cfg.systemPrompt()
	if err != nil {
		return nil, err
	}
	local, err := s.cfg.local()
	if err != nil {
		return nil, err
	}
	defuser, err := s.cfg.defuser(local)
	if err != nil {
		return nil, err
	}
	clientConfig := s.clientConfig(env, fatal)
	if local != nil {
		// What cannot be worked with is refused before anything is read.
		if _, err := inference.NewTemplate(ctx, local, systemPrompt, protocol.Tools()); err != nil {
			return nil, fmt.Errorf("--tokenizer %s: %w", s.cfg.tokenizer, err)
		}
		clientConfig.Renderer = local
	}
	metrics := newMetrics(env.Metrics)
	clientConfig.Attempt = func(c inference.Class) { metrics.attempts.WithLabelValues(c.String()).Inc() }
	client, err := inference.New(ctx, clientConfig)
	if err != nil {
		return nil, err
	}
	return &handler{
		client: client, policies: newPolicies(s.cfg.endpoints()), templates: newTemplates(client, systemPrompt, protocol.Tools()),
		protocol: protocol, defuser: defuser, timeout: observation.Timeout(s.cfg.timeout), systemPrompt: systemPrompt,
		logprobsMode: s.cfg.logprobsMode, stopTokens: s.cfg.stopTokenIDs(),
		warnings: newWarnings(env.Log), metrics: metrics, log: env.Log, stopping: ctx.Done(),
	}, nil
}

// clientConfig is how servers are asked.
func (s *sampler) clientConfig(env *stage.Env, fatal func(error)) inference.Config {
	return inference.Config{
		HTTP: s.http, MaxConnections: 2 * s.cfg.concurrency, RequestTimeout: s.cfg.requestTimeout, APIKey: s.cfg.apiKey,
		Budget:  inference.Budget{Attempts: s.cfg.turnAttempts, Time: s.cfg.turnTime},
		Dialect: s.cfg.dialect, TokensInFlight: s.cfg.tokensInFlight, Vocabulary: s.cfg.vocabulary, RefusalsInARow: s.cfg.refusals,
		Log:      env.Log,
		Away:     func(err error) { env.Health.Ready(readyPart, err) },
		Degraded: func(err error) { env.Health.Ready(turnsPart, err) },
		Fatal:    fatal,
	}
}

// check waits for an inference server and refuses one that cannot be worked with.
func (s *sampler) check(ctx context.Context, env *stage.Env, h *handler, ep inference.Endpoint) error {
	var spent *inference.SpentError
	err := s.checkOnce(ctx, env, h, ep)
	for ctx.Err() == nil && errors.As(err, &spent) && !errors.Is(err, inference.ErrAnswer) {
		env.Log.Error("the inference server is there and does not work: trying again", "url", ep.URL, "error", err)
		err = s.checkOnce(ctx, env, h, ep)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, inference.ErrStopping):
		return nil
	case errors.Is(err, inference.ErrUnknownModel) && ep.Model == "" && h.policies.elsewhere():
		// Trainers may have it serve a model per step, which their updates name.
		env.Log.Warn("the inference server serves several models and --model names none: only runs whose policy updates name one can be sampled", "url", ep.URL, "error", err)
		return nil
	}
	return process.Unusable(fmt.Errorf("inference server %s: %w (%s)", ep.URL, err, hint(err)))
}

func (s *sampler) checkOnce(ctx context.Context, env *stage.Env, h *handler, ep inference.Endpoint) error {
	info, err := h.client.Check(ctx, ep)
	if err != nil {
		return err
	}
	account := &inference.Turn{ID: "the chat template"}
	defer h.client.Begin(account)()
	tmpl, err := h.templates.of(ctx, []inference.Endpoint{ep}, account)
	if err != nil {
		return err
	}
	env.Log.Info("inference server found", "url", ep.URL, "dialect", info.Dialect, "model", info.Model, "max_model_len", info.MaxModelLen,
		"logprobs_mode", h.logprobs([]inference.Endpoint{ep}), "tool_protocol", s.cfg.protocol,
		"closing_tokens", tmpl.Glue().Closing, "observation_overhead_tokens", tmpl.Glue().Overhead)
	return nil
}

// where names the servers of the flags, without secrets.
func (s *sampler) where() string {
	all := make([]string, len(s.cfg.urls))
	for i, raw := range s.cfg.urls {
		all[i] = raw
		if u, err := url.Parse(raw); err == nil {
			all[i] = u.Redacted()
		}
	}
	return strings.Join(all, ", ")
}

// hint says what to do about a server that cannot be worked with.
func hint(err error) string {
	var status *inference.StatusError
	switch {
	case errors.Is(err, inference.ErrNoTokenIDs), errors.Is(err, inference.ErrDialect):
		return "use a server that returns token ids: vLLM, SGLang or llama-server; --dialect names how it is asked"
	case errors.Is(err, inference.ErrUnknownModel):
		return "--model names the one to ask for"
	case errors.Is(err, inference.ErrTemplate), errors.Is(err, inference.ErrNoTemplate):
		return "use a model whose chat template keeps the conversation as it was"
	case errors.As(err, &status) && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden):
		return "the key is --inference-api-key's"
	case errors.As(err, &status) && status.Status == http.StatusNotFound:
		return "is --inference-url an inference server's, and --model served there?"
	}
	return "the words are the server's: start it with what it asks for"
}
