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

// llamaCPP is llama-server's /completion. Its defaults bend the distribution, so every
// sampler is sent, and its answer says which were used.
type llamaCPP struct{}

func (llamaCPP) name() string { return DialectLlamaCPP }

func (d llamaCPP) check(ctx context.Context, t *transport, ep Endpoint) (Info, error) {
	m, err := models(ctx, t, ep)
	if err != nil {
		return Info{}, err
	}
	var props struct {
		Defaults struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if err := t.call(ctx, http.MethodGet, join(ep.URL, "/props"), nil, &props); err != nil {
		return Info{}, err
	}
	return Info{Model: m.ID, MaxModelLen: props.Defaults.Context, Vocabulary: m.Meta.Vocabulary, Dialect: d.name(), Logprobs: LogprobsRaw}, nil
}

// llamaSamplers is every option that changes what is sampled.
type llamaSamplers struct {
	Temperature      float64  `json:"temperature"`
	DynatempRange    float64  `json:"dynatemp_range"`
	TopK             int      `json:"top_k"`
	TopP             float64  `json:"top_p"`
	MinP             float64  `json:"min_p"`
	TypicalP         float64  `json:"typical_p"`
	TopNSigma        float64  `json:"top_n_sigma"`
	XTCProbability   float64  `json:"xtc_probability"`
	RepeatPenalty    float64  `json:"repeat_penalty"`
	RepeatLastN      int      `json:"repeat_last_n"`
	PresencePenalty  float64  `json:"presence_penalty"`
	FrequencyPenalty float64  `json:"frequency_penalty"`
	DryMultiplier    float64  `json:"dry_multiplier"`
	Mirostat         int      `json:"mirostat"`
	IgnoreEOS        bool     `json:"ignore_eos"`
	Samplers         []string `json:"samplers"`
}

func newLlamaSamplers(r Request) llamaSamplers {
	return llamaSamplers{
		Temperature: r.Temperature, TopK: r.TopK, TopP: r.TopP, TypicalP: 1, TopNSigma: -1, RepeatPenalty: 1,
		Samplers: []string{"top_k", "top_p", "temperature"},
	}
}

type llamaRequest struct {
	llamaSamplers
	Prompt            []uint32 `json:"prompt"`
	Predict           int      `json:"n_predict"`
	Seed              uint32   `json:"seed"`
	Probs             int      `json:"n_probs"`
	PostSamplingProbs bool     `json:"post_sampling_probs"`
	ReturnTokens      bool     `json:"return_tokens"`
	CachePrompt       bool     `json:"cache_prompt"`
	Stop              []string `json:"stop"`
	Grammar           string   `json:"grammar"`
	LogitBias         []string `json:"logit_bias"`
	Stream            bool     `json:"stream"`
}

type llamaResponse struct {
	Content         string   `json:"content"`
	Tokens          tokenIDs `json:"tokens"`
	StopType        string   `json:"stop_type"`
	Truncated       bool     `json:"truncated"`
	TokensPredicted *int     `json:"tokens_predicted"`
	TokensEvaluated *int     `json:"tokens_evaluated"`
	Probabilities   []struct {
		ID      uint32   `json:"id"`
		Logprob *float32 `json:"logprob"`
		Prob    *float32 `json:"prob"`
	} `json:"completion_probabilities"`
	Used *llamaSamplers `json:"generation_settings"`
	// Stop and Error matter in a stream: its last event, and what went wrong.
	Stop  bool         `json:"stop"`
	Error *serverError `json:"error"`
}

func (d llamaCPP) sample(ctx context.Context, t *transport, ep Endpoint, r Request) (Response, error) {
	return singles(ctx, r, func(ctx context.Context, one Request) (Response, error) { return d.one(ctx, t, ep, one) })
}

func (llamaCPP) one(ctx context.Context, t *transport, ep Endpoint, r Request) (Response, error) {
	if len(r.StopTokenIDs) > 0 {
		return Response{}, fmt.Errorf("%w: llama-server takes no stop token ids: leave --stop-token-ids out, a model's own end tokens stop it", ErrDialect)
	}
	in := llamaRequest{
		llamaSamplers: newLlamaSamplers(r), Prompt: r.Prompt, Predict: r.MaxTokens,
		// The greatest value stands for a seed of its own choice.
		Seed: uint32(r.Seed % math.MaxUint32), Probs: 1, ReturnTokens: true, Stop: []string{}, LogitBias: []string{},
	}
	if r.Progress != nil {
		in.Stream = true
		c := newCollector(r)
		out, err := c.end(ctx, t.stream(ctx, join(ep.URL, "/completion"), in, func(data []byte) error { return c.llama(data, in.llamaSamplers) }))
		if err == nil && constant(out.Choices[0].Logprobs) {
			return Response{}, errConstant(out.Choices[0].Logprobs)
		}
		return out, err
	}
	var answer llamaResponse
	if err := t.call(ctx, http.MethodPost, join(ep.URL, "/completion"), in, &answer); err != nil {
		return Response{}, err
	}
	choice := Choice{Tokens: answer.Tokens, Text: answer.Content, finish: answer.StopType, usage: orNone(answer.TokensPredicted)}
	if err := answer.usedAsAsked(in.llamaSamplers); err != nil {
		return Response{}, err
	}
	var err error
	if choice.Logprobs, choice.ids, err = answer.probabilities(); err != nil {
		return Response{}, err
	}
	if len(choice.ids) < len(choice.Tokens) {
		return Response{}, fmt.Errorf("%w: %d tokens, %d logprobs: llama-server gives none for a token that ends in the middle of a character", ErrAnswer, len(choice.Tokens), len(choice.ids))
	}
	if answer.Truncated {
		return Response{}, errShifted
	}
	if constant(choice.Logprobs) {
		return Response{}, errConstant(choice.Logprobs)
	}
	return Response{Choices: []Choice{choice}, promptTokens: orNone(answer.TokensEvaluated), completionTokens: choice.usage}, nil
}

var errShifted = fmt.Errorf("%w: the context was exceeded and its beginning dropped", ErrAnswer)

func errConstant(l []float32) error {
	return fmt.Errorf("%w: all %d logprobs are %v: not those of the model", ErrAnswer, len(l), l[0])
}

// probabilities are the logprobs and the ids that they are of.
func (a *llamaResponse) probabilities() (values []float32, ids []uint32, err error) {
	for _, p := range a.Probabilities {
		if p.Logprob == nil {
			return nil, nil, fmt.Errorf("%w: completion_probabilities without logprob: they are of after the samplers", ErrAnswer)
		}
		values, ids = append(values, *p.Logprob), append(ids, p.ID)
	}
	return values, ids, nil
}

// llama is one event of a stream; the last has stop set, and nothing says [DONE]. The
// first may be empty. A token that ends in the middle of a character is left out of a
// stream, which the server's count shows.
func (c *collector) llama(data []byte, asked llamaSamplers) error {
	var e llamaResponse
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: event of a stream: %w", ErrAnswer, err)
	}
	if e.Error != nil {
		return e.Error.err()
	}
	if err := e.usedAsAsked(asked); err != nil {
		return err
	}
	if e.Truncated {
		return errShifted
	}
	ch := &c.out.Choices[0]
	d := delta{tokens: e.Tokens, text: e.Content}
	var err error
	if d.logprobs, d.ids, err = e.probabilities(); err != nil {
		return err
	}
	if n := len(ch.Tokens) + len(d.tokens); e.TokensPredicted != nil {
		if *e.TokensPredicted != n {
			return fmt.Errorf("%w: %d tokens came of %d by its own count: llama-server streams none that ends in the middle of a character", ErrAnswer, n, *e.TokensPredicted)
		}
		ch.usage, c.out.completionTokens = n, n
	}
	if e.TokensEvaluated != nil {
		c.out.promptTokens = *e.TokensEvaluated
	}
	if e.Stop {
		d.finish = e.StopType
	}
	if err := c.add(0, d); err != nil {
		return err
	}
	if e.Stop {
		return errEnd
	}
	return nil
}

// usedAsAsked refuses an answer that was sampled otherwise than asked.
func (a *llamaResponse) usedAsAsked(asked llamaSamplers) error {
	if a.Used == nil {
		return nil
	}
	used := *a.Used
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-5 }
	switch {
	case !near(used.Temperature, asked.Temperature), used.TopK != asked.TopK && asked.TopK > 0, used.TopK > 0 && asked.TopK == 0, !near(used.TopP, asked.TopP), used.MinP > asked.MinP,
		!near(used.RepeatPenalty, asked.RepeatPenalty), !near(used.TypicalP, asked.TypicalP), used.Mirostat != 0, used.DryMultiplier != 0, used.XTCProbability != 0,
		len(used.Samplers) > 0 && !slices.Equal(used.Samplers, asked.Samplers):
		return fmt.Errorf("%w: sampled with %+v, asked for %+v", ErrAnswer, used, asked)
	}
	return nil
}

// constant says whether so many values that chance cannot make them equal are equal.
func constant(l []float32) bool {
	const many = 16
	if len(l) < many {
		return false
	}
	for _, v := range l {
		if v != l[0] {
			return false
		}
	}
	return true
}

// render has the server fill its template in, then tokenise the text.
func (llamaCPP) render(ctx context.Context, t *transport, ep Endpoint, c Conversation) ([]uint32, error) {
	in := struct {
		Messages  []rollout.Message `json:"messages"`
		Tools     json.RawMessage   `json:"tools,omitempty"`
		Generate  bool              `json:"add_generation_prompt"`
		Arguments map[string]bool   `json:"chat_template_kwargs"`
	}{c.Messages, c.Tools, c.Generate, map[string]bool{"enable_thinking": false}}
	var filled struct {
		Prompt string `json:"prompt"`
	}
	if err := t.call(ctx, http.MethodPost, join(ep.URL, "/apply-template"), in, &filled); err != nil {
		return nil, err
	}
	var answer struct {
		Tokens tokenIDs `json:"tokens"`
	}
	text := map[string]any{"content": filled.Prompt, "add_special": false, "parse_special": true}
	if err := t.call(ctx, http.MethodPost, join(ep.URL, "/tokenize"), text, &answer); err != nil {
		return nil, err
	}
	if len(answer.Tokens) == 0 {
		return nil, fmt.Errorf("%w: /tokenize gave no tokens for %d messages", ErrAnswer, len(c.Messages))
	}
	return answer.Tokens, nil
}
