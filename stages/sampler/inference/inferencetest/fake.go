// Package inferencetest is a fake inference server for tests, in the dialects of vLLM,
// SGLang, llama-server and an OpenAI endpoint: its tokens are bytes, its template is a
// function and its policy is a script. It serves without sockets, so that it works in
// virtual time too, and does on demand what servers are known to get wrong.
package inferencetest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

var (
	// ErrRefused is what a client gets while the fake is away.
	ErrRefused = errors.New("connection refused")
	// ErrCut is what a client gets whose connection was cut after the fake had the
	// request.
	ErrCut = errors.New("connection reset by peer")
)

// Ask is one request for completions as the fake policy sees it.
type Ask struct {
	Prompt                            string
	N, MaxTokens, TopK                int
	Seed                              uint64
	Temperature, TopP                 float64
	RequestID, Model                  string
	ReturnTokenIDs, SkipSpecial       bool
	Stream                            bool
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
	// Finish is the server's word, stop where empty; "null" is JSON's null.
	Finish string
	// LogprobsMissing drops that many logprobs off the end.
	LogprobsMissing int
	// Logprob stands for every logprob, as JSON writes it, where not empty.
	Logprob string
	// WithoutTokenIDs leaves the ids out, as an old server does.
	WithoutTokenIDs bool
	// IDsMissing drops that many token ids off the end, as a parser of tool calls does;
	// text, logprobs and usage keep them.
	IDsMissing int
	// LastToken is the id of the last token, where not 0.
	LastToken int64
	// Versions are of the tokens, in order; the last goes on to the end.
	Versions []Version
}

// Version says which weights sampled the next Count tokens.
type Version struct {
	Word  any
	Count int
}

// Fake is the server. Set its fields before use; those behind mu may be changed while it
// runs, with Set.
type Fake struct {
	// Policy answers with n completions.
	Policy func(Ask) []Answer
	// Template renders; nil: Plain.
	Template func(messages []rollout.Message, tools json.RawMessage, generate bool) string
	// Dialect is vllm where empty: vllm-generate, sglang, llamacpp, openai.
	Dialect string
	// Models are served; nil: "fake".
	Models []string
	// Owner is what the list of models names; "": what the dialect's server does.
	Owner string
	// MaxModelLen is what /v1/models says; 0 means 32768.
	MaxModelLen int
	// Latency is how long a request for completions takes.
	Latency time.Duration
	// RunsOn keeps the id of a request that was cut for so long: the same id gets 400
	// 'already running'.
	RunsOn time.Duration
	// BOS is put before every prompt; TruncateTo keeps that many tokens of a prompt's
	// end; WithoutPrompt keeps back what was sampled on.
	BOS           bool
	TruncateTo    int
	WithoutPrompt bool
	// Extra is added to the count of sampled tokens that the server states.
	Extra int
	// WeightVersion is SGLang's word for its weights.
	WeightVersion any
	// Chunk is how many tokens an event of a stream brings; 0 means 1. PerToken is how
	// long each takes, streamed or not.
	Chunk    int
	PerToken time.Duration
	// Repeat is what SGLang's events repeat: "all" by default, "ids" as with its option of
	// old, where logprobs and text repeat and ids do not, "nothing" with the one of today.
	Repeat string
	// Whole answers in one piece where a stream was asked for.
	Whole bool

	mu sync.Mutex
	// Away refuses connections. Status answers everything with it, where not 0; Sampling
	// only what asks for completions, with Message. Cut cuts the next connections after
	// the request was read; Hang never answers anything.
	Away     bool
	Status   int
	Sampling int
	Message  string
	Cut      int
	Hang     bool
	Version  *uint32
	// CutAfter breaks the next CutTimes streams off after that many tokens; with
	// CutClean without an error, with CutMessage by an event that holds it as an error.
	CutAfter, CutTimes int
	CutClean           bool
	CutMessage         string
	asks               []Ask
	running            map[string]time.Time
	paths              map[string]int
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
	away, status, hang := f.Away, f.Status, f.Hang
	if f.paths == nil {
		f.paths, f.running = map[string]int{}, map[string]time.Time{}
	}
	f.paths[req.URL.Path]++
	f.mu.Unlock()
	if away {
		return nil, ErrRefused
	}
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.WroteRequest != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
	if hang {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	w := &writer{ResponseRecorder: httptest.NewRecorder()}
	if status != 0 {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"message":"the fake was told to"}}`)
	} else if err := f.serve(w, req); err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	resp := w.Result()
	if len(w.events) > 0 {
		resp.Body = f.stream(req.Context(), w.events)
	}
	return resp, nil
}

func (f *Fake) serve(w http.ResponseWriter, req *http.Request) error {
	front := fronts[f.Dialect]
	switch req.URL.Path {
	case "/v1/models":
		f.models(w, front.owner)
	case "/health":
	case front.path:
		return front.complete(f, w, req)
	default:
		if serve := front.more[req.URL.Path]; serve != nil {
			serve(f, w, req)
			return nil
		}
		http.Error(w, "no such path", http.StatusNotFound)
	}
	return nil
}

func (f *Fake) models(w http.ResponseWriter, owner string) {
	type model struct {
		ID          string         `json:"id"`
		OwnedBy     string         `json:"owned_by"`
		MaxModelLen int            `json:"max_model_len"`
		Meta        map[string]int `json:"meta,omitempty"`
	}
	if f.Owner != "" {
		owner = f.Owner
	}
	models := []model{}
	length := f.MaxModelLen
	if length == 0 {
		length = 32768
	}
	names := f.Models
	if names == nil {
		names = []string{"fake"}
	}
	for _, name := range names {
		models = append(models, model{ID: name, OwnedBy: owner, MaxModelLen: length})
	}
	reply(w, map[string]any{"object": "list", "data": models})
}

// render fills the template in.
func (f *Fake) render(messages []rollout.Message, tools json.RawMessage, generate bool) string {
	if f.Template == nil {
		return Plain(messages, tools, generate)
	}
	return f.Template(messages, tools, generate)
}

// policy has a request sampled. A status that is not 0 has been answered.
func (f *Fake) policy(w http.ResponseWriter, req *http.Request, ask Ask) ([]Answer, bool, error) {
	ask.Stream = ask.Stream && !f.Whole
	f.mu.Lock()
	status, message := f.Sampling, f.Message
	if until, ok := f.running[ask.RequestID]; ok && time.Now().Before(until) {
		status, message = http.StatusBadRequest, "Request id "+ask.RequestID+" already running"
	}
	f.asks = append(f.asks, ask)
	cut := f.Cut > 0
	if cut {
		f.Cut--
		f.running[ask.RequestID] = time.Now().Add(f.RunsOn)
	}
	f.mu.Unlock()
	if status != 0 {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message}})
		return nil, false, nil
	}
	if f.Latency > 0 {
		select {
		case <-time.After(f.Latency):
		case <-req.Context().Done():
			return nil, false, req.Context().Err()
		}
	}
	if cut {
		return nil, false, ErrCut
	}
	answers := f.Policy(ask)
	if err := f.took(req, ask.Stream, answers); err != nil {
		return nil, false, err
	}
	return answers, true, nil
}

// prompt is what the server says, or does not say, that it sampled on.
func (f *Fake) prompt(sent []uint32) []uint32 {
	if f.TruncateTo > 0 && len(sent) > f.TruncateTo {
		sent = sent[len(sent)-f.TruncateTo:]
	}
	if f.BOS {
		sent = append([]uint32{1}, sent...)
	}
	return sent
}

// sampled is an answer as a server has it: cut to the tokens asked for.
type sampled struct {
	raw, text, finish string
	tokens            []int64
	ids               []int64 // those that are stated
	logprobs          []json.RawMessage
	usage             int
}

func (f *Fake) sampled(a Answer, maxTokens int) sampled {
	raw, finish := a.Raw, a.Finish
	if len(raw) > maxTokens {
		raw, finish = raw[:maxTokens], "length"
	}
	if finish == "" {
		finish = "stop"
	}
	s := sampled{raw: raw, text: rollouttest.WithoutSpecial(raw), finish: finish, usage: len(raw) + f.Extra}
	for i := range len(raw) {
		s.tokens = append(s.tokens, int64(raw[i]))
	}
	if a.LastToken != 0 {
		s.tokens[len(s.tokens)-1] = a.LastToken
	}
	s.ids = s.tokens[:len(s.tokens)-a.IDsMissing]
	if a.WithoutTokenIDs {
		s.ids = nil
	}
	for i := range max(0, len(raw)-a.LogprobsMissing) {
		value := json.RawMessage(strings.TrimRight(strings.TrimRight(fixed(-0.125*float64(i%7)), "0"), "."))
		if a.Logprob != "" {
			value = json.RawMessage(a.Logprob)
		}
		s.logprobs = append(s.logprobs, value)
	}
	return s
}

// word is a finish reason as JSON has it.
func (s sampled) word() any {
	if s.finish == "null" {
		return nil
	}
	return s.finish
}

// spans are the versions as servers state them: half open ranges.
func (a Answer) spans(n int) []map[string]any {
	var out []map[string]any
	at := 0
	for i, v := range a.Versions {
		end := min(at+v.Count, n)
		if i == len(a.Versions)-1 {
			end = n
		}
		out = append(out, map[string]any{"version": v.Word, "start": at, "end": end})
		at = end
	}
	return out
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

// took is how long sampling so many tokens takes, where they are not streamed.
func (f *Fake) took(req *http.Request, streamed bool, answers []Answer) error {
	longest := 0
	for _, a := range answers {
		longest = max(longest, len(a.Raw))
	}
	if streamed || f.PerToken == 0 {
		return nil
	}
	select {
	case <-time.After(time.Duration(longest) * f.PerToken):
		return nil
	case <-req.Context().Done():
		return req.Context().Err()
	}
}
