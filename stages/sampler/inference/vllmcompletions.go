package inference

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

// vllmCompletions is vLLM's /v1/completions with return_token_ids, which simpolicy
// speaks too.
type vllmCompletions struct{}

func (vllmCompletions) name() string { return DialectVLLM }

// model is an entry of /v1/models.
type model struct {
	ID          string `json:"id"`
	Parent      string `json:"parent"`
	MaxModelLen int    `json:"max_model_len"`
	Meta        struct {
		Vocabulary int `json:"n_vocab"`
	} `json:"meta"`
}

// models asks what is served, and picks the model asked for: where none is, the only
// one that is no adapter of another.
func models(ctx context.Context, t *transport, ep Endpoint) (model, error) {
	var answer struct {
		Data []model `json:"data"`
	}
	if err := t.call(ctx, http.MethodGet, join(ep.URL, "/v1/models"), nil, &answer); err != nil {
		return model{}, err
	}
	names := make([]string, len(answer.Data))
	var bases []model
	for i, m := range answer.Data {
		names[i] = m.ID
		if m.Parent == "" {
			bases = append(bases, m)
		}
	}
	if at := slices.Index(names, ep.Model); at >= 0 {
		return answer.Data[at], nil
	}
	if ep.Model == "" && len(bases) == 1 {
		return bases[0], nil
	}
	return model{}, fmt.Errorf("%w: %q: %s serves %q", ErrUnknownModel, ep.Model, ep.URL, names)
}

func (d vllmCompletions) check(ctx context.Context, t *transport, ep Endpoint) (Info, error) {
	m, err := models(ctx, t, ep)
	if err != nil {
		return Info{}, err
	}
	return Info{Model: m.ID, MaxModelLen: m.MaxModelLen, Vocabulary: m.Meta.Vocabulary, Dialect: d.name(), Logprobs: LogprobsRaw}, nil
}

type completionRequest struct {
	Model             string   `json:"model"`
	RequestID         string   `json:"request_id,omitempty"`
	Prompt            []uint32 `json:"prompt"`
	N                 int      `json:"n"`
	MaxTokens         int      `json:"max_tokens"`
	Seed              uint64   `json:"seed"`
	Logprobs          int      `json:"logprobs"`
	ReturnTokenIDs    bool     `json:"return_token_ids"`
	SkipSpecialTokens bool     `json:"skip_special_tokens"`
	StopTokenIDs      []uint32 `json:"stop_token_ids,omitempty"`
	Temperature       float64  `json:"temperature"`
	TopP              float64  `json:"top_p"`
	TopK              int      `json:"top_k"`
	MinP              float64  `json:"min_p"`
	RepetitionPenalty float64  `json:"repetition_penalty"`
	PresencePenalty   float64  `json:"presence_penalty"`
	FrequencyPenalty  float64  `json:"frequency_penalty"`
	streaming
}

func newCompletionRequest(ep Endpoint, r Request) completionRequest {
	return completionRequest{
		Model: ep.Model, RequestID: r.ID, Prompt: r.Prompt, N: r.N, MaxTokens: r.MaxTokens,
		Seed: r.Seed & math.MaxInt64, ReturnTokenIDs: true, SkipSpecialTokens: true, StopTokenIDs: r.StopTokenIDs,
		Temperature: r.Temperature, TopP: r.TopP, TopK: topKOrAll(r.TopK), RepetitionPenalty: 1,
		streaming: newStreaming(r),
	}
}

// topKOrAll is a limit as vLLM and SGLang take it: -1 for none.
func topKOrAll(k int) int {
	if k > 0 {
		return k
	}
	return -1
}

// usage is the server's own count.
type usage struct {
	Prompt     *int `json:"prompt_tokens"`
	Completion *int `json:"completion_tokens"`
}

func (u *usage) counts() (prompt, completion int) {
	if u == nil {
		return -1, -1
	}
	return orNone(u.Prompt), orNone(u.Completion)
}

func orNone(n *int) int {
	if n == nil {
		return -1
	}
	return *n
}

type completionResponse struct {
	Choices []struct {
		Index        int      `json:"index"`
		Text         string   `json:"text"`
		TokenIDs     tokenIDs `json:"token_ids"`
		FinishReason string   `json:"finish_reason"`
		Logprobs     *struct {
			TokenLogprobs logprobs `json:"token_logprobs"`
		} `json:"logprobs"`
		PromptTokenIDs tokenIDs `json:"prompt_token_ids"`
	} `json:"choices"`
	PromptTokenIDs tokenIDs `json:"prompt_token_ids"`
	PolicyVersion  *uint32  `json:"policy_version"`
	Usage          *usage   `json:"usage"`
	// Error stands in a stream alone.
	Error *serverError `json:"error"`
}

func (vllmCompletions) sample(ctx context.Context, t *transport, ep Endpoint, r Request) (Response, error) {
	if r.Progress != nil {
		c := newCollector(r)
		return c.end(ctx, t.stream(ctx, join(ep.URL, "/v1/completions"), newCompletionRequest(ep, r), c.completion))
	}
	var answer completionResponse
	if err := t.call(ctx, http.MethodPost, join(ep.URL, "/v1/completions"), newCompletionRequest(ep, r), &answer); err != nil {
		return Response{}, err
	}
	return answer.read(r.N)
}

// completion is one event of a stream.
func (c *collector) completion(data []byte) error {
	if done(data) {
		return errEnd
	}
	var e completionResponse
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: event of a stream: %w", ErrAnswer, err)
	}
	if e.Error != nil {
		return e.Error.err()
	}
	c.header(e.PromptTokenIDs, e.PolicyVersion, e.Usage)
	for _, ch := range e.Choices {
		c.prompt(ch.PromptTokenIDs)
		d := delta{tokens: ch.TokenIDs, text: ch.Text, finish: ch.FinishReason}
		if ch.Logprobs != nil {
			d.logprobs = ch.Logprobs.TokenLogprobs
		}
		if ch.TokenIDs == nil && len(d.logprobs) > 0 {
			return fmt.Errorf("%w: a stream of %d logprobs without ids: does it know return_token_ids?", ErrNoTokenIDs, len(d.logprobs))
		}
		if err := c.add(ch.Index, d); err != nil {
			return err
		}
	}
	return nil
}

// header takes what an event says of the whole answer.
func (c *collector) header(prompt []uint32, version *uint32, u *usage) {
	c.prompt(prompt)
	if version != nil {
		c.out.PolicyVersion, c.out.HasVersion = *version, true
	}
	if u != nil {
		c.out.promptTokens, c.out.completionTokens = u.counts()
	}
}

// prompt takes what the server says that it sampled on: mostly the first event alone does.
func (c *collector) prompt(ids []uint32) {
	if ids != nil {
		c.out.Prompt = ids
	}
}

func (a *completionResponse) read(n int) (Response, error) {
	r := Response{Prompt: a.PromptTokenIDs}
	if a.PolicyVersion != nil {
		r.PolicyVersion, r.HasVersion = *a.PolicyVersion, true
	}
	r.promptTokens, r.completionTokens = a.Usage.counts()
	place, err := newPlacer(len(a.Choices), n)
	if err != nil {
		return Response{}, err
	}
	for _, c := range a.Choices {
		choice := Choice{Tokens: c.TokenIDs, Text: c.Text, finish: c.FinishReason, usage: -1, prompt: c.PromptTokenIDs}
		if c.Logprobs != nil {
			choice.Logprobs = c.Logprobs.TokenLogprobs
		}
		if err := place.put(c.Index, choice); err != nil {
			return Response{}, err
		}
	}
	r.Choices = place.choices
	return r, nil
}

// placer puts choices in the order of their indices.
type placer struct {
	choices []Choice
	seen    []bool
}

func newPlacer(got, n int) (*placer, error) {
	if got != n {
		return nil, fmt.Errorf("%w: %d choices, asked for %d", ErrAnswer, got, n)
	}
	return &placer{make([]Choice, n), make([]bool, n)}, nil
}

func (p *placer) put(index int, c Choice) error {
	if index < 0 || index >= len(p.seen) || p.seen[index] {
		return fmt.Errorf("%w: choice of index %d, want each of 0 to %d once", ErrAnswer, index, len(p.seen)-1)
	}
	p.seen[index] = true
	p.choices[index] = c
	return nil
}

func (vllmCompletions) render(ctx context.Context, t *transport, ep Endpoint, c Conversation) ([]uint32, error) {
	return renderByTokenize(ctx, t, ep, c)
}

// renderByTokenize has /tokenize apply the chat template, as vLLM does.
func renderByTokenize(ctx context.Context, t *transport, ep Endpoint, c Conversation) ([]uint32, error) {
	ask := struct {
		Model               string            `json:"model"`
		Messages            []rollout.Message `json:"messages"`
		Tools               json.RawMessage   `json:"tools,omitempty"`
		AddGenerationPrompt bool              `json:"add_generation_prompt"`
		AddSpecialTokens    bool              `json:"add_special_tokens"`
		TemplateArguments   map[string]bool   `json:"chat_template_kwargs"`
	}{
		Model: ep.Model, Messages: c.Messages, Tools: c.Tools, AddGenerationPrompt: c.Generate,
		TemplateArguments: map[string]bool{"enable_thinking": false},
	}
	var answer struct {
		Tokens tokenIDs `json:"tokens"`
	}
	if err := t.call(ctx, http.MethodPost, join(ep.URL, "/tokenize"), ask, &answer); err != nil {
		return nil, err
	}
	if len(answer.Tokens) == 0 {
		return nil, fmt.Errorf("%w: /tokenize gave no tokens for %d messages", ErrAnswer, len(c.Messages))
	}
	return answer.Tokens, nil
}
