package inference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"
)

// sglang is SGLang's own /generate. A group is asked for in single requests with seeds
// of their own, since n of them in one would share the seed.
type sglang struct{}

func (sglang) name() string { return DialectSGLang }

func (d sglang) check(ctx context.Context, t *transport, ep Endpoint) (Info, error) {
	m, err := models(ctx, t, ep)
	if err != nil {
		return Info{}, err
	}
	// Its logprobs are of the distribution after temperature, before top-p and top-k.
	return Info{Model: m.ID, MaxModelLen: m.MaxModelLen, Vocabulary: m.Meta.Vocabulary, Dialect: d.name(), Logprobs: LogprobsProcessed}, nil
}

type sglangRequest struct {
	RequestID       string         `json:"rid"`
	InputIDs        []uint32       `json:"input_ids"`
	Sampling        sglangSampling `json:"sampling_params"`
	ReturnLogprob   bool           `json:"return_logprob"`
	LogprobStartLen int            `json:"logprob_start_len"`
	ReturnPrompt    bool           `json:"return_prompt_token_ids"`
	Stream          bool           `json:"stream,omitempty"`
}

type sglangSampling struct {
	MaxNewTokens      int      `json:"max_new_tokens"`
	N                 int      `json:"n"`
	Seed              uint64   `json:"sampling_seed"`
	StopTokenIDs      []uint32 `json:"stop_token_ids,omitempty"`
	SkipSpecialTokens bool     `json:"skip_special_tokens"`
	Temperature       float64  `json:"temperature"`
	TopP              float64  `json:"top_p"`
	TopK              int      `json:"top_k"`
	MinP              float64  `json:"min_p"`
	RepetitionPenalty float64  `json:"repetition_penalty"`
	PresencePenalty   float64  `json:"presence_penalty"`
	FrequencyPenalty  float64  `json:"frequency_penalty"`
	StreamInterval    int      `json:"stream_interval,omitempty"`
}

// sglangInterval is how many tokens an event of a stream is to bring: most releases repeat
// in each event all that was sampled before.
const sglangInterval = 16

type sglangResponse struct {
	Text      string   `json:"text"`
	OutputIDs tokenIDs `json:"output_ids"`
	PromptIDs tokenIDs `json:"prompt_token_ids"`
	Meta      struct {
		Finish           json.RawMessage `json:"finish_reason"`
		PromptTokens     *int            `json:"prompt_tokens"`
		CompletionTokens *int            `json:"completion_tokens"`
		Logprobs         []sglangLogprob `json:"output_token_logprobs"`
		WeightVersion    json.RawMessage `json:"weight_version"`
		WeightVersions   []weightSpan    `json:"weight_versions"`
	} `json:"meta_info"`
	Error *serverError `json:"error"`
}

// sglangLogprob is [logprob, id, text or null].
type sglangLogprob struct {
	value float32
	id    uint32
}

// UnmarshalJSON reads the triple.
func (l *sglangLogprob) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil || len(parts) < 2 {
		return fmt.Errorf("output_token_logprobs: %.60q: want [logprob, id, text]", b)
	}
	l.value = float32(math.NaN())
	if string(parts[0]) != "null" {
		if err := json.Unmarshal(parts[0], &l.value); err != nil {
			return fmt.Errorf("output_token_logprobs: logprob %.40q: want a number", parts[0])
		}
	}
	if err := json.Unmarshal(parts[1], &l.id); err != nil {
		return fmt.Errorf("output_token_logprobs: id %.40q: want a token id", parts[1])
	}
	return nil
}

// sglangFinish is {"type": "stop", "matched": 7}; an abort that is an error has a
// status and a message.
type sglangFinish struct {
	Type    string `json:"type"`
	Status  *int   `json:"status_code"`
	Message string `json:"message"`
}

// read gives the word for the end, or the refusal that an abort stands for.
func (a *sglangResponse) finish() (string, error) {
	var f sglangFinish
	if json.Unmarshal(a.Meta.Finish, &f) != nil {
		var word string
		_ = json.Unmarshal(a.Meta.Finish, &word)
		return word, nil
	}
	if f.Type == "abort" && f.Status != nil && *f.Status != http.StatusOK {
		return "", statusError("/generate", *f.Status, []byte(f.Message))
	}
	return f.Type, nil
}

func (d sglang) sample(ctx context.Context, t *transport, ep Endpoint, r Request) (Response, error) {
	return singles(ctx, r, func(ctx context.Context, one Request) (Response, error) { return d.one(ctx, t, ep, one) })
}

func (sglang) one(ctx context.Context, t *transport, ep Endpoint, r Request) (Response, error) {
	in := sglangRequest{
		RequestID: r.ID, InputIDs: r.Prompt, ReturnLogprob: true, LogprobStartLen: -1, ReturnPrompt: true,
		Sampling: sglangSampling{
			MaxNewTokens: r.MaxTokens, N: 1, Seed: r.Seed & math.MaxInt32, StopTokenIDs: r.StopTokenIDs, SkipSpecialTokens: true,
			Temperature: r.Temperature, TopP: r.TopP, TopK: topKOrAll(r.TopK), RepetitionPenalty: 1,
		},
	}
	if r.Progress != nil {
		in.Stream, in.Sampling.StreamInterval = true, sglangInterval
		c := newCollector(r)
		return c.end(ctx, t.stream(ctx, join(ep.URL, "/generate"), in, c.sglang))
	}
	var answer sglangResponse
	if err := t.call(ctx, http.MethodPost, join(ep.URL, "/generate"), in, &answer); err != nil {
		return Response{}, err
	}
	finish, err := answer.finish()
	if err != nil {
		return Response{}, err
	}
	choice := Choice{Text: answer.Text, Tokens: answer.OutputIDs, finish: finish, usage: orNone(answer.Meta.CompletionTokens), prompt: answer.PromptIDs}
	for _, l := range answer.Meta.Logprobs {
		choice.Logprobs = append(choice.Logprobs, l.value)
		choice.ids = append(choice.ids, l.id)
	}
	if choice.Tokens == nil { // older releases say the ids with the logprobs alone
		choice.Tokens = choice.ids
	}
	if choice.Versions, err = readSpans(answer.Meta.WeightVersions); err != nil {
		return Response{}, err
	}
	return Response{
		Choices: []Choice{choice}, Prompt: answer.PromptIDs, Version: word(answer.Meta.WeightVersion),
		promptTokens: orNone(answer.Meta.PromptTokens), completionTokens: choice.usage,
	}, nil
}

// sglang is one event of a stream. Depending on release and options its ids, its logprobs
// and its text repeat all so far or are the new ones alone, each by itself; the server's
// count is always of all.
func (c *collector) sglang(data []byte) error {
	if done(data) {
		return errEnd
	}
	var e sglangResponse
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: event of a stream: %w", ErrAnswer, err)
	}
	if e.Error != nil {
		return e.Error.err()
	}
	finish, err := e.finish()
	if err != nil {
		return err
	}
	c.header(e.PromptIDs, nil, nil)
	c.out.Version, c.out.promptTokens = word(e.Meta.WeightVersion), orNone(e.Meta.PromptTokens)
	ch := &c.out.Choices[0]
	if e.Meta.CompletionTokens == nil {
		return fmt.Errorf("%w: an event of a stream without completion_tokens", ErrAnswer)
	}
	have, total := len(ch.Tokens), *e.Meta.CompletionTokens
	if total < have {
		return fmt.Errorf("%w: %d completion_tokens in a stream that has brought %d", ErrAnswer, total, have)
	}
	ch.usage = total
	d := delta{finish: finish}
	news, err := appended(have, total, e.Meta.Logprobs)
	if err != nil {
		return err
	}
	for _, l := range news {
		d.logprobs, d.ids = append(d.logprobs, l.value), append(d.ids, l.id)
	}
	if d.tokens = d.ids; e.OutputIDs != nil {
		if d.tokens, err = appended(have, total, e.OutputIDs); err != nil {
			return err
		}
	}
	// The text repeats where the logprobs do.
	if d.text = e.Text; len(e.Meta.Logprobs) == total && have > 0 {
		text, ok := strings.CutPrefix(e.Text, ch.Text)
		if !ok {
			return fmt.Errorf("%w: an event of a stream changes the text that came before", ErrAnswer)
		}
		d.text = text
	}
	if ch.Versions, err = readSpans(e.Meta.WeightVersions); err != nil {
		return err
	}
	return c.add(0, d)
}

// singles asks for each completion of a group in a request of its own. Where some fail,
// their choices bear the error; where all do, the first error is returned.
func singles(ctx context.Context, r Request, one func(context.Context, Request) (Response, error)) (Response, error) {
	answers, errs := make([]Response, r.N), make([]error, r.N)
	var g errgroup.Group
	for i := range r.N {
		single := r
		single.N = 1
		if r.N > 1 {
			single.ID = fmt.Sprintf("%s.%d", r.ID, i)
			single.Seed = r.Seed + uint64(i)*0x9e3779b97f4a7c15
		}
		if tell := r.Progress; tell != nil {
			single.Progress = func(_ int, head Response, c Choice) { tell(i, head, c) }
		}
		g.Go(func() error {
			answers[i], errs[i] = one(ctx, single)
			return nil
		})
	}
	_ = g.Wait()
	out := Response{promptTokens: -1, completionTokens: -1}
	usable := false
	for i, a := range answers {
		if errs[i] != nil {
			out.Choices = append(out.Choices, Choice{Err: errs[i]})
			continue
		}
		choices := out.Choices
		if !usable {
			out = a
			out.completionTokens = -1
		}
		usable = true
		out.Version = older(out.Version, a.Version)
		out.Choices = append(choices, a.Choices...)
	}
	if !usable {
		return Response{}, errs[0]
	}
	return out, nil
}

// older is the word that a group's answers share; where they differ, nobody can say
// which is the older one, and it is unknown.
func older(a, b string) string {
	if a != b {
		return ""
	}
	return a
}

// render works where the server's /tokenize takes messages, which few releases do.
func (sglang) render(ctx context.Context, t *transport, ep Endpoint, c Conversation) ([]uint32, error) {
	tokens, err := renderByTokenize(ctx, t, ep, c)
	var status *StatusError
	if errors.As(err, &status) && (statuses[status.Status] == Refusal || absent(err)) {
		return nil, fmt.Errorf("%w: SGLang's /tokenize takes no messages in this release: %w", ErrNoTemplate, err)
	}
	return tokens, err
}
