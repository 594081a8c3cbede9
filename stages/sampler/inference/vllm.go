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

// Endpoint is where to ask, and for which model.
type Endpoint struct {
	URL   string
	Model string
}

// VLLM speaks vLLM's dialect. Safe for concurrent use.
type VLLM struct{ transport *transport }

// NewVLLM makes a client; it does not connect.
func NewVLLM(cfg Config) *VLLM { return &VLLM{transport: newTransport(cfg)} }

// Info is what Check learns of a server.
type Info struct {
	Model string
	// MaxModelLen is the longest prompt and completion together; 0 if not said.
	MaxModelLen int
}

// Check asks whether the server is fit for work and what it serves, waiting for it if
// it is away. An endpoint without
// a model gets the server's only one.
func (v *VLLM) Check(ctx context.Context, ep Endpoint) (Info, error) {
	if err := v.transport.call(ctx, http.MethodGet, join(ep.URL, "/health"), nil, nil); err != nil {
		return Info{}, err
	}
	var answer struct {
		Data []struct {
			ID          string `json:"id"`
			MaxModelLen int    `json:"max_model_len"`
		} `json:"data"`
	}
	if err := v.transport.call(ctx, http.MethodGet, join(ep.URL, "/v1/models"), nil, &answer); err != nil {
		return Info{}, err
	}
	names := make([]string, len(answer.Data))
	for i, m := range answer.Data {
		names[i] = m.ID
	}
	at := slices.Index(names, ep.Model)
	if ep.Model == "" && len(names) == 1 {
		at = 0
	}
	if at < 0 {
		return Info{}, fmt.Errorf("%w: %q: %s serves %q", ErrUnknownModel, ep.Model, ep.URL, names)
	}
	return Info{Model: names[at], MaxModelLen: answer.Data[at].MaxModelLen}, nil
}

// Request asks for completions of one prompt.
type Request struct {
	ID        string
	Prompt    []uint32
	N         int
	MaxTokens int
	// Seed is cut to the 63 bits that the server takes.
	Seed        uint64
	Temperature float64
	TopP        float64
	// TopK is 0 for no limit.
	TopK int
	// StopTokenIDs end a completion beside the model's own end tokens.
	StopTokenIDs []uint32
}

// Choice is one completion.
type Choice struct {
	Tokens []uint32
	// Logprobs are as the server gave them: their number is for the caller to check. A
	// missing value is NaN.
	Logprobs []float32
	Text     string
	// Finish is the server's own word: stop, length, abort.
	Finish string
}

// Response holds the choices in order, as many as were asked for.
type Response struct {
	Choices []Choice
	// Prompt is what the server says it sampled on; nil where it does not say.
	Prompt []uint32
	// PolicyVersion is the version that the server says it sampled with; known only
	// where HasVersion.
	PolicyVersion uint32
	HasVersion    bool
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
}

// Sample asks for completions.
func (v *VLLM) Sample(ctx context.Context, ep Endpoint, r Request) (Response, error) {
	topK := -1
	if r.TopK > 0 {
		topK = r.TopK
	}
	ask := completionRequest{
		Model: ep.Model, RequestID: r.ID, Prompt: r.Prompt, N: r.N, MaxTokens: r.MaxTokens,
		Seed: r.Seed & math.MaxInt64, ReturnTokenIDs: true, SkipSpecialTokens: true, StopTokenIDs: r.StopTokenIDs,
		Temperature: r.Temperature, TopP: r.TopP, TopK: topK, RepetitionPenalty: 1,
	}
	var answer completionResponse
	if err := v.transport.call(ctx, http.MethodPost, join(ep.URL, "/v1/completions"), ask, &answer); err != nil {
		return Response{}, err
	}
	return answer.read(r.N)
}

func (a *completionResponse) read(n int) (Response, error) {
	if len(a.Choices) != n {
		return Response{}, fmt.Errorf("%w: %d choices, asked for %d", ErrAnswer, len(a.Choices), n)
	}
	r := Response{Choices: make([]Choice, n), Prompt: a.PromptTokenIDs}
	if a.PolicyVersion != nil {
		r.PolicyVersion, r.HasVersion = *a.PolicyVersion, true
	}
	seen := make([]bool, n)
	for _, c := range a.Choices {
		if c.Index < 0 || c.Index >= n || seen[c.Index] {
			return Response{}, fmt.Errorf("%w: choice of index %d, want each of 0 to %d once", ErrAnswer, c.Index, n-1)
		}
		seen[c.Index] = true
		choice := Choice{Tokens: c.TokenIDs, Text: c.Text, Finish: c.FinishReason}
		if c.Logprobs != nil {
			choice.Logprobs = c.Logprobs.TokenLogprobs
		}
		if len(choice.Tokens) == 0 && (choice.Text != "" || len(choice.Logprobs) > 0) {
			return Response{}, fmt.Errorf("%w: choice %d has %d characters of text and %d logprobs: does it know return_token_ids?",
				ErrNoTokenIDs, c.Index, len(choice.Text), len(choice.Logprobs))
		}
		r.Choices[c.Index] = choice
		if c.PromptTokenIDs != nil {
			r.Prompt = c.PromptTokenIDs
		}
	}
	return r, nil
}

// Conversation is what Render makes tokens of.
type Conversation struct {
	Messages []rollout.Message
	// Tools is a JSON list of definitions; nil for none.
	Tools json.RawMessage
	// Generate puts the beginning of an assistant's message at the end.
	Generate bool
}

// Render applies the server's chat template, thinking off, and tokenises.
func (v *VLLM) Render(ctx context.Context, ep Endpoint, c Conversation) ([]uint32, error) {
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
	if err := v.transport.call(ctx, http.MethodPost, join(ep.URL, "/tokenize"), ask, &answer); err != nil {
		return nil, err
	}
	if len(answer.Tokens) == 0 {
		return nil, fmt.Errorf("%w: /tokenize gave no tokens for %d messages", ErrAnswer, len(c.Messages))
	}
	return answer.Tokens, nil
}
