package server

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
)

// completionRequest is the part of the dialect that is read. A pointer tells a field
// that is absent from one that is 0.
type completionRequest struct {
	Model          string          `json:"model"`
	Prompt         json.RawMessage `json:"prompt"`
	N              *int            `json:"n"`
	Seed           *int64Seed      `json:"seed"`
	MaxTokens      *int            `json:"max_tokens"`
	Temperature    *float64        `json:"temperature"`
	TopP           *float64        `json:"top_p"`
	TopK           *int            `json:"top_k"`
	Logprobs       *int            `json:"logprobs"`
	ReturnTokenIDs bool            `json:"return_token_ids"`
	StopTokenIDs   []uint32        `json:"stop_token_ids"`
	RequestID      string          `json:"request_id"`
	Stream         bool            `json:"stream"`
	StreamOptions  struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	// What is refused unless it asks for nothing.
	Stop              json.RawMessage `json:"stop"`
	Echo              bool            `json:"echo"`
	BestOf            *int            `json:"best_of"`
	Suffix            *string         `json:"suffix"`
	MinTokens         int             `json:"min_tokens"`
	MinP              float64         `json:"min_p"`
	IgnoreEOS         bool            `json:"ignore_eos"`
	PromptLogprobs    *int            `json:"prompt_logprobs"`
	PresencePenalty   float64         `json:"presence_penalty"`
	FrequencyPenalty  float64         `json:"frequency_penalty"`
	RepetitionPenalty *float64        `json:"repetition_penalty"`
	LogitBias         map[string]any  `json:"logit_bias"`
	SkipSpecialTokens *bool           `json:"skip_special_tokens"`
}

// int64Seed takes the whole range of 64 bits, signed or unsigned: clients differ.
type int64Seed uint64

// UnmarshalJSON reads either.
func (s *int64Seed) UnmarshalJSON(b []byte) error {
	var u uint64
	if json.Unmarshal(b, &u) == nil {
		*s = int64Seed(u)
		return nil
	}
	var i int64
	if err := json.Unmarshal(b, &i); err != nil {
		return bad("seed", "seed is %s, want an integer of 64 bits", clip(string(b)))
	}
	*s = int64Seed(i)
	return nil
}

type completionResponse struct {
	ID             string             `json:"id"`
	Object         string             `json:"object"`
	Created        int64              `json:"created"`
	Model          string             `json:"model"`
	Choices        []completionChoice `json:"choices"`
	PromptTokenIDs []uint32           `json:"prompt_token_ids,omitzero"`
	Usage          usage              `json:"usage"`
	PolicyVersion  uint32             `json:"policy_version"`
}

type completionChoice struct {
	Index          int       `json:"index"`
	Text           string    `json:"text"`
	Logprobs       *logprobs `json:"logprobs"`
	FinishReason   string    `json:"finish_reason"`
	StopReason     *uint32   `json:"stop_reason"`
	TokenIDs       []uint32  `json:"token_ids,omitzero"`
	PromptTokenIDs []uint32  `json:"prompt_token_ids,omitzero"`
}

type logprobs struct {
	TextOffset    []int                `json:"text_offset"`
	TokenLogprobs []float32            `json:"token_logprobs"`
	Tokens        []string             `json:"tokens"`
	TopLogprobs   []map[string]float32 `json:"top_logprobs"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func (s *Server) completions(r *http.Request) (any, error) {
	var req completionRequest
	if err := decode(r, &req); err != nil {
		return nil, err
	}
	if err := req.refuse(); err != nil {
		return nil, err
	}
	if err := s.checkModel(req.Model); err != nil {
		return nil, err
	}
	prompt, err := s.promptTokens(req.Prompt)
	if err != nil {
		return nil, err
	}
	ask, n, err := s.request(&req, prompt)
	if err != nil {
		return nil, err
	}
	snapshot := s.current()
	resp := completionResponse{
		ID: "cmpl-" + req.id(ask.Seed), Object: "text_completion", Created: time.Now().Unix(),
		Model: s.cfg.Model, PolicyVersion: snapshot.Version, Usage: usage{PromptTokens: len(prompt)},
	}
	if req.ReturnTokenIDs {
		resp.PromptTokenIDs = prompt
	}
	for i := range n {
		ask.Index = i
		g, err := s.policy.Sample(snapshot.Parameters, ask)
		if err != nil {
			return nil, err
		}
		choice, err := s.choice(&req, i, g)
		if err != nil {
			return nil, err
		}
		if req.ReturnTokenIDs {
			choice.PromptTokenIDs = prompt
		}
		resp.Usage.CompletionTokens += len(choice.ids)
		s.metrics.sampled(choice.FinishReason, len(choice.ids))
		resp.Choices = append(resp.Choices, choice.completionChoice)
	}
	resp.Usage.TotalTokens = resp.Usage.PromptTokens + resp.Usage.CompletionTokens
	if req.Stream {
		return &stream{server: s, whole: resp, withUsage: req.StreamOptions.IncludeUsage, takes: s.latency(n)}, nil
	}
	return resp, sleep(r.Context(), s.latency(n))
}

// refuse names a field that asks for something this server cannot do.
func (r *completionRequest) refuse() error {
	var stop any
	if len(r.Stop) > 0 {
		if err := json.Unmarshal(r.Stop, &stop); err != nil {
			return bad("stop", "stop is no JSON")
		}
	}
	list, isList := stop.([]any)
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"stop", stop != nil && (!isList || len(list) > 0)},
		{"echo", r.Echo},
		{"best_of", r.BestOf != nil && *r.BestOf != 1 && (r.N == nil || *r.BestOf != *r.N)},
		{"suffix", r.Suffix != nil && *r.Suffix != ""},
		{"min_tokens", r.MinTokens != 0},
		{"min_p", r.MinP != 0},
		{"ignore_eos", r.IgnoreEOS},
		{"prompt_logprobs", r.PromptLogprobs != nil},
		{"presence_penalty", r.PresencePenalty != 0},
		{"frequency_penalty", r.FrequencyPenalty != 0},
		{"repetition_penalty", r.RepetitionPenalty != nil && *r.RepetitionPenalty != 1},
		{"logit_bias", len(r.LogitBias) > 0},
		{"skip_special_tokens", r.SkipSpecialTokens != nil && !*r.SkipSpecialTokens},
	} {
		if f.set {
			return bad(f.name, "simpolicy, a stand-in for an inference server, does not do %s: leave it out", f.name)
		}
	}
	if r.Logprobs != nil && *r.Logprobs != 0 {
		return bad("logprobs", "logprobs is %d: simpolicy gives those of the sampled tokens only, ask for 0", *r.Logprobs)
	}
	return nil
}

// promptTokens reads the prompt's two forms.
func (s *Server) promptTokens(raw json.RawMessage) ([]uint32, error) {
	trimmed := strings.TrimSpace(string(raw))
	var prompt []uint32
	switch {
	case trimmed == "" || trimmed == "null":
		return nil, bad("prompt", "prompt is missing: give a text or a list of token ids")
	case trimmed[0] == '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, bad("prompt", "prompt: %v", err)
		}
		prompt = s.tok.Encode(text)
	default:
		if err := json.Unmarshal(raw, &prompt); err != nil {
			return nil, bad("prompt", "prompt is neither a text nor one list of token ids: one prompt a request")
		}
		for i, id := range prompt {
			if !s.tok.Known(id) {
				return nil, bad("prompt", "prompt token %d is %d: the vocabulary has no such id (it ends at %d)", i, id, s.tok.Size()-1)
			}
		}
	}
	if len(prompt) == 0 {
		return nil, bad("prompt", "prompt is empty")
	}
	return prompt, nil
}

// request checks the sampling fields and fills in what is absent as vLLM does.
func (s *Server) request(r *completionRequest, prompt []uint32) (policy.Request, int, error) {
	ask := policy.Request{Prompt: prompt, MaxTokens: 16, Sampling: policy.Plain, StopTokens: r.StopTokenIDs}
	n := 1
	if r.N != nil {
		n = *r.N
	}
	if n < 1 || n > maxSamples {
		return ask, 0, bad("n", "n is %d, want 1 to %d", n, maxSamples)
	}
	if r.MaxTokens != nil {
		ask.MaxTokens = *r.MaxTokens
	}
	if ask.MaxTokens < 1 {
		return ask, 0, bad("max_tokens", "max_tokens is %d, want at least 1", ask.MaxTokens)
	}
	if got := len(prompt) + ask.MaxTokens; got > s.cfg.MaxModelLen {
		return ask, 0, bad("max_tokens", "the maximum context length is %d tokens, the request asks for %d: %d of prompt and %d of completion", s.cfg.MaxModelLen, got, len(prompt), ask.MaxTokens)
	}
	if r.Temperature != nil {
		ask.Sampling.Temperature = *r.Temperature
	}
	if t := ask.Sampling.Temperature; !(t >= 0 && t <= 100) || t > 0 && t < 0.01 {
		return ask, 0, bad("temperature", "temperature is %v, want 0 or 0.01 to 100", t)
	}
	if r.TopP != nil {
		ask.Sampling.TopP = *r.TopP
	}
	if p := ask.Sampling.TopP; !(p > 0 && p <= 1) {
		return ask, 0, bad("top_p", "top_p is %v, want above 0 and at most 1", p)
	}
	if r.TopK != nil {
		ask.Sampling.TopK = max(*r.TopK, 0)
		if *r.TopK < -1 {
			return ask, 0, bad("top_k", "top_k is %d, want -1 or 0 (all) or more", *r.TopK)
		}
	}
	ask.Seed = s.ownSeed()
	if r.Seed != nil {
		ask.Seed = uint64(*r.Seed)
	}
	return ask, n, nil
}

func (r *completionRequest) id(seed uint64) string {
	if r.RequestID != "" {
		return clip(r.RequestID)
	}
	return fmt.Sprintf("%016x", seed)
}

type sampledChoice struct {
	completionChoice
	ids []uint32
}

func (s *Server) choice(r *completionRequest, index int, g policy.Generation) (sampledChoice, error) {
	c := sampledChoice{completionChoice: completionChoice{Index: index, FinishReason: "stop"}}
	if g.Finish == policy.Length {
		c.FinishReason = "length"
	}
	if g.StopToken != 0 {
		c.StopReason = &g.StopToken
	}
	tokens := g.Tokens
	if s.cfg.AbortRate > 0 && s.ownFloat() < s.cfg.AbortRate {
		tokens = tokens[:int(s.ownFloat()*float64(len(tokens)))]
		c.FinishReason, c.StopReason = "abort", nil
	}
	c.ids = make([]uint32, len(tokens))
	for i, t := range tokens {
		c.ids[i] = t.ID
	}
	var err error
	if c.Text, err = s.tok.Text(c.ids); err != nil {
		return c, err
	}
	if r.ReturnTokenIDs {
		c.TokenIDs = c.ids
	}
	if r.Logprobs != nil {
		c.Logprobs, err = s.logprobs(tokens)
	}
	return c, err
}

func (s *Server) logprobs(tokens []policy.Token) (*logprobs, error) {
	l := &logprobs{
		TextOffset: make([]int, len(tokens)), TokenLogprobs: make([]float32, len(tokens)),
		Tokens: make([]string, len(tokens)), TopLogprobs: make([]map[string]float32, len(tokens)),
	}
	offset := 0
	for i, t := range tokens {
		text, err := s.tok.Content(t.ID)
		if err != nil {
			return nil, err
		}
		lp := float32(t.Logprob)
		if math.IsInf(t.Logprob, 0) || math.IsNaN(t.Logprob) {
			return nil, fmt.Errorf("token %d (%q) has logprob %v", i, text, t.Logprob)
		}
		l.TextOffset[i], l.TokenLogprobs[i], l.Tokens[i] = offset, lp, text
		l.TopLogprobs[i] = map[string]float32{text: lp}
		offset += len(text)
	}
	return l, nil
}

// latency is what was asked for: that of the slowest of n samples made side by side.
func (s *Server) latency(n int) time.Duration {
	var longest time.Duration
	for range n {
		d := s.cfg.Latency
		if s.cfg.Jitter > 0 {
			d += time.Duration((2*s.ownFloat() - 1) * float64(s.cfg.Jitter))
		}
		longest = max(longest, d)
	}
	return longest
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
