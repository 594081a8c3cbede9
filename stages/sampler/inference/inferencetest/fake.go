// Package inferencetest is a fake inference server in vLLM's dialect, for tests: its
// tokens are bytes, its template is a function and its policy is a script. It serves
// without sockets, so that it works in virtual time too.
package inferencetest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

// ErrRefused is what a client gets while the fake is away.
var ErrRefused = errors.New("connection refused")

// Ask is one request for completions as the fake policy sees it.
type Ask struct {
	Prompt                            string
	N, MaxTokens, TopK                int
	Seed                              uint64
	Temperature, TopP                 float64
	RequestID, Model                  string
	ReturnTokenIDs, SkipSpecial       bool
	Logprobs                          *int
	MinP, RepetitionPenalty           *float64
	StopTokenIDs                      []uint32
	PresencePenalty, FrequencyPenalty *float64
}

// Answer is one completion of the fake policy.
type Answer struct {
	// Raw is the text with special tokens; its bytes are the tokens, the end token
	// <|im_end|> included.
	Raw string
	// Finish is stop where empty.
	Finish string
	// LogprobsMissing drops that many logprobs off the end.
	LogprobsMissing int
	// WithoutTokenIDs leaves the ids out, as an old server does.
	WithoutTokenIDs bool
}

// Fake is the server. Set its fields before use; Away, Status and Version may be
// changed while it runs, with Set.
type Fake struct {
	// Policy answers with n completions.
	Policy func(Ask) []Answer
	// Template renders; nil: Plain.
	Template func(messages []rollout.Message, tools json.RawMessage, generate bool) string
	// Models are served; nil: "fake".
	Models []string
	// MaxModelLen is what /v1/models says; 0 means 32768.
	MaxModelLen int
	// Latency is how long a request for completions takes.
	Latency time.Duration

	mu sync.Mutex
	// Away refuses connections. Status answers everything with it, where not 0.
	Away    bool
	Status  int
	Version *uint32
	asks    []Ask
	paths   map[string]int
}

// Set changes the fake while it runs.
func (f *Fake) Set(change func(*Fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// Asks are the requests for completions so far.
func (f *Fake) Asks() []Ask {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Ask(nil), f.asks...)
}

// Count is the number of requests to a path.
func (f *Fake) Count(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paths[path]
}

// Client calls the fake directly.
func (f *Fake) Client() *http.Client { return &http.Client{Transport: f} }

// RoundTrip serves one request.
func (f *Fake) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	away, status := f.Away, f.Status
	if f.paths == nil {
		f.paths = map[string]int{}
	}
	f.paths[req.URL.Path]++
	f.mu.Unlock()
	if away {
		return nil, ErrRefused
	}
	w := httptest.NewRecorder()
	if status != 0 {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"message":"the fake was told to"}}`)
	} else {
		f.serve(w, req)
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func (f *Fake) serve(w http.ResponseWriter, req *http.Request) {
	switch req.URL.Path {
	case "/v1/models":
		f.models(w)
	case "/health":
	case "/tokenize":
		f.tokenize(w, req)
	case "/v1/completions":
		f.complete(w, req)
	default:
		http.Error(w, "no such path", http.StatusNotFound)
	}
}

func (f *Fake) models(w http.ResponseWriter) {
	type model struct {
		ID          string `json:"id"`
		MaxModelLen int    `json:"max_model_len"`
	}
	models := []model{}
	length := f.MaxModelLen
	if length == 0 {
		length = 32768
	}
	for _, name := range f.Models {
		models = append(models, model{name, length})
	}
	if f.Models == nil {
		models = append(models, model{"fake", length})
	}
	reply(w, map[string]any{"object": "list", "data": models})
}

func (f *Fake) tokenize(w http.ResponseWriter, req *http.Request) {
	var ask struct {
		Messages            []rollout.Message `json:"messages"`
		Tools               json.RawMessage   `json:"tools"`
		AddGenerationPrompt bool              `json:"add_generation_prompt"`
		Arguments           map[string]bool   `json:"chat_template_kwargs"`
	}
	if !read(w, req, &ask) {
		return
	}
	if ask.Arguments["enable_thinking"] {
		http.Error(w, "thinking is on", http.StatusBadRequest)
		return
	}
	render := f.Template
	if render == nil {
		render = Plain
	}
	tokens := rollouttest.Tokens(render(ask.Messages, ask.Tools, ask.AddGenerationPrompt))
	reply(w, map[string]any{"count": len(tokens), "tokens": tokens, "max_model_len": 32768})
}

func (f *Fake) complete(w http.ResponseWriter, req *http.Request) {
	var in struct {
		Model             string   `json:"model"`
		RequestID         string   `json:"request_id"`
		Prompt            []uint32 `json:"prompt"`
		N                 int      `json:"n"`
		MaxTokens         int      `json:"max_tokens"`
		Seed              uint64   `json:"seed"`
		Logprobs          *int     `json:"logprobs"`
		ReturnTokenIDs    bool     `json:"return_token_ids"`
		SkipSpecial       bool     `json:"skip_special_tokens"`
		StopTokenIDs      []uint32 `json:"stop_token_ids"`
		Temperature       float64  `json:"temperature"`
		TopP              float64  `json:"top_p"`
		TopK              int      `json:"top_k"`
		MinP              *float64 `json:"min_p"`
		RepetitionPenalty *float64 `json:"repetition_penalty"`
		Presence          *float64 `json:"presence_penalty"`
		Frequency         *float64 `json:"frequency_penalty"`
	}
	if !read(w, req, &in) {
		return
	}
	ask := Ask{
		Prompt: rollouttest.Text(in.Prompt), N: in.N, MaxTokens: in.MaxTokens, TopK: in.TopK, Seed: in.Seed,
		Temperature: in.Temperature, TopP: in.TopP, RequestID: in.RequestID, Model: in.Model, ReturnTokenIDs: in.ReturnTokenIDs,
		SkipSpecial: in.SkipSpecial, Logprobs: in.Logprobs, MinP: in.MinP, RepetitionPenalty: in.RepetitionPenalty,
		StopTokenIDs: in.StopTokenIDs, PresencePenalty: in.Presence, FrequencyPenalty: in.Frequency,
	}
	f.mu.Lock()
	f.asks = append(f.asks, ask)
	version := f.Version
	f.mu.Unlock()
	if f.Latency > 0 {
		select {
		case <-time.After(f.Latency):
		case <-req.Context().Done():
			return
		}
	}
	choices := []map[string]any{}
	for i, a := range f.Policy(ask) {
		choices = append(choices, a.choice(i, in.Prompt, in.MaxTokens))
	}
	out := map[string]any{"object": "text_completion", "model": in.Model, "choices": choices}
	if version != nil {
		out["policy_version"] = *version
	}
	reply(w, out)
}

func (a Answer) choice(index int, prompt []uint32, maxTokens int) map[string]any {
	finish := a.Finish
	raw := a.Raw
	if len(raw) > maxTokens {
		raw, finish = raw[:maxTokens], "length"
	}
	if finish == "" {
		finish = "stop"
	}
	logprobs := make([]float64, max(0, len(raw)-a.LogprobsMissing))
	for i := range logprobs {
		logprobs[i] = -0.125 * float64(i%7)
	}
	c := map[string]any{
		"index": index, "text": rollouttest.WithoutSpecial(raw), "finish_reason": finish,
		"logprobs": map[string]any{"token_logprobs": logprobs}, "prompt_token_ids": prompt, "token_ids": rollouttest.Tokens(raw),
	}
	if a.WithoutTokenIDs {
		delete(c, "token_ids")
	}
	return c
}

// Plain is the template of package rollouttest; tools do not show in it.
func Plain(messages []rollout.Message, _ json.RawMessage, generate bool) string {
	var s string
	for _, m := range messages {
		s += "<|im_start|>" + m.Role + "\n" + m.Content + "<|im_end|>\n"
	}
	if generate {
		s += "<|im_start|>assistant\n"
	}
	return s
}

// Thinking renders as templates of thinking models do with thinking off: an empty
// think block stands before the last message of the assistant, if it is the very last,
// and at the beginning of the next. Tools stand in the first message.
func Thinking(messages []rollout.Message, tools json.RawMessage, generate bool) string {
	const empty = "<think>\n\n</think>\n\n"
	s := "<|im_start|>system\n# Tools\n" + string(tools) + "<|im_end|>\n"
	for i, m := range messages {
		switch {
		case m.Role == "assistant" && i == len(messages)-1:
			s += "<|im_start|>assistant\n" + empty + m.Content + "<|im_end|>\n"
		case m.Role == "tool":
			s += "<|im_start|>user\n<tool_response>\n" + m.Content + "\n</tool_response><|im_end|>\n"
		default:
			s += "<|im_start|>" + m.Role + "\n" + m.Content + "<|im_end|>\n"
		}
	}
	if generate {
		s += "<|im_start|>assistant\n" + empty
	}
	return s
}

func read(w http.ResponseWriter, req *http.Request, into any) bool {
	if err := json.NewDecoder(req.Body).Decode(into); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
