package inference

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
)

const generatePath = "/inference/v1/generate"

// vllmGenerate is vLLM's tokens in, tokens out: like its completions, but with the
// weights that sampled each token. It must be asked for max_tokens, since older releases
// otherwise stop after 16, and for text, which older releases do not give: those are
// asked for completions instead.
type vllmGenerate struct{}

func (vllmGenerate) name() string { return DialectVLLMGenerate }

func (d vllmGenerate) check(ctx context.Context, t *transport, ep Endpoint) (Info, error) {
	info, err := vllmCompletions{}.check(ctx, t, ep)
	info.Dialect = d.name()
	return info, err
}

type generateRequest struct {
	Model          string         `json:"model"`
	RequestID      string         `json:"request_id,omitempty"`
	TokenIDs       []uint32       `json:"token_ids"`
	OutputMode     string         `json:"output_mode"`
	ReturnTokenIDs bool           `json:"return_token_ids"`
	Sampling       samplingParams `json:"sampling_params"`
	streaming
}

type samplingParams struct {
	N                 int      `json:"n"`
	MaxTokens         int      `json:"max_tokens"`
	Seed              uint64   `json:"seed"`
	Logprobs          int      `json:"logprobs"`
	Detokenize        bool     `json:"detokenize"`
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

type generateResponse struct {
	Choices []struct {
		Index        int      `json:"index"`
		Text         *string  `json:"text"`
		TokenIDs     tokenIDs `json:"token_ids"`
		FinishReason string   `json:"finish_reason"`
		Logprobs     *struct {
			Content []generateLogprob `json:"content"`
		} `json:"logprobs"`
		WeightVersions []weightSpan `json:"weight_versions"`
	} `json:"choices"`
	PromptTokenIDs tokenIDs     `json:"prompt_token_ids"`
	Usage          *usage       `json:"usage"`
	Error          *serverError `json:"error"`
}

// generateLogprob is of the sampled token. Its id is token_id, or token_id:N in token,
// or not there where tokens are shown as text.
type generateLogprob struct {
	TokenID *uint32  `json:"token_id"`
	Token   string   `json:"token"`
	Logprob *float32 `json:"logprob"`
}

func (l generateLogprob) id() (uint32, bool) {
	if l.TokenID != nil {
		return *l.TokenID, true
	}
	return tokenIDOf(l.Token)
}

// tokenIDOf reads a token as vLLM writes it with return_tokens_as_token_ids.
func tokenIDOf(s string) (uint32, bool) {
	digits, ok := strings.CutPrefix(s, "token_id:")
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 10, 32)
	return uint32(id), err == nil
}

// weightSpan says which weights sampled tokens start to end, end excluded. The word is
// whatever who loaded them called them: a string, a number or null.
type weightSpan struct {
	Version json.RawMessage `json:"version"`
	Start   int             `json:"start"`
	End     int             `json:"end"`
}

// word is a version as a comparable word; "" for null.
func word(raw json.RawMessage) string {
	var s string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &s) == nil:
		return s
	}
	return string(raw)
}

func readSpans(in []weightSpan) ([]Span, error) {
	words, starts, ends := make([]string, len(in)), make([]int, len(in)), make([]int, len(in))
	for i, s := range in {
		words[i], starts[i], ends[i] = word(s.Version), s.Start, s.End
	}
	return spans(words, starts, ends)
}

func (vllmGenerate) sample(ctx context.Context, t *transport, ep Endpoint, r Request) (Response, error) {
	in := generateRequest{
		Model: ep.Model, RequestID: r.ID, TokenIDs: r.Prompt, OutputMode: "text", ReturnTokenIDs: true,
		Sampling: samplingParams{
			N: r.N, MaxTokens: r.MaxTokens, Seed: r.Seed & math.MaxInt64, Detokenize: true, SkipSpecialTokens: true,
			StopTokenIDs: r.StopTokenIDs, Temperature: r.Temperature, TopP: r.TopP, TopK: topKOrAll(r.TopK), RepetitionPenalty: 1,
		},
		streaming: newStreaming(r),
	}
	if r.Progress != nil {
		c := newCollector(r)
		return c.end(ctx, t.stream(ctx, join(ep.URL, generatePath), in, c.generate))
	}
	var answer generateResponse
	if err := t.call(ctx, http.MethodPost, join(ep.URL, generatePath), in, &answer); err != nil {
		return Response{}, err
	}
	out := Response{Prompt: answer.PromptTokenIDs}
	out.promptTokens, out.completionTokens = answer.Usage.counts()
	place, err := newPlacer(len(answer.Choices), r.N)
	if err != nil {
		return Response{}, err
	}
	for _, c := range answer.Choices {
		choice := Choice{Tokens: c.TokenIDs, finish: c.FinishReason, usage: -1}
		if c.Logprobs != nil {
			choice.Logprobs, choice.ids = sampledLogprobs(c.Logprobs.Content)
		}
		if choice.Versions, err = readSpans(c.WeightVersions); err != nil {
			return Response{}, err
		}
		if c.Text == nil {
			return Response{}, errWithoutText
		}
		choice.Text = *c.Text
		if err := place.put(c.Index, choice); err != nil {
			return Response{}, err
		}
	}
	out.Choices = place.choices
	return out, nil
}

// errWithoutText occurs where a release does not know output_mode.
var errWithoutText = fmt.Errorf("%w: %s gives no text in this release (output_mode): use --dialect %s", ErrDialect, generatePath, DialectVLLM)

// generate is one event of a stream. The versions stand in a choice's last event, for all
// of its tokens.
func (c *collector) generate(data []byte) error {
	if done(data) {
		return errEnd
	}
	var e generateResponse
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: event of a stream: %w", ErrAnswer, err)
	}
	if e.Error != nil {
		return e.Error.err()
	}
	c.header(e.PromptTokenIDs, nil, e.Usage)
	for _, ch := range e.Choices {
		d := delta{tokens: ch.TokenIDs, finish: ch.FinishReason}
		if ch.Logprobs != nil {
			d.logprobs, d.ids = sampledLogprobs(ch.Logprobs.Content)
		}
		if ch.Text == nil && len(d.tokens) > 0 {
			return errWithoutText
		}
		if ch.Text != nil {
			d.text = *ch.Text
		}
		if len(ch.WeightVersions) > 0 && ch.Index >= 0 && ch.Index < len(c.out.Choices) {
			var err error
			if c.out.Choices[ch.Index].Versions, err = readSpans(ch.WeightVersions); err != nil {
				return err
			}
		}
		if err := c.add(ch.Index, d); err != nil {
			return err
		}
	}
	return nil
}

// sampledLogprobs are the logprobs in order, NaN where one is missing, and the ids that
// they are of; nil where they do not say.
func sampledLogprobs(content []generateLogprob) ([]float32, []uint32) {
	values, ids := make([]float32, len(content)), make([]uint32, 0, len(content))
	for i, l := range content {
		values[i] = float32(math.NaN())
		if l.Logprob != nil {
			values[i] = *l.Logprob
		}
		if id, ok := l.id(); ok {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return values, nil
	}
	return values, ids
}

func (vllmGenerate) render(ctx context.Context, t *transport, ep Endpoint, c Conversation) ([]uint32, error) {
	return renderByTokenize(ctx, t, ep, c)
}
