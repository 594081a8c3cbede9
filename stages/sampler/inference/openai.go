package inference

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// openAI is an OpenAI-compatible /v1/completions that writes tokens as ids where it is
// asked with return_tokens_as_token_ids. Without that there are no ids, and it is of no
// use.
type openAI struct{}

func (openAI) name() string { return DialectOpenAI }

func (d openAI) check(ctx context.Context, t *transport, ep Endpoint) (Info, error) {
	info, err := vllmCompletions{}.check(ctx, t, ep)
	info.Dialect = d.name()
	return info, err
}

type openAIRequest struct {
	completionRequest
	ReturnTokensAsTokenIDs bool `json:"return_tokens_as_token_ids"`
}

type openAIResponse struct {
	Choices []struct {
		Index        int    `json:"index"`
		Text         string `json:"text"`
		FinishReason string `json:"finish_reason"`
		Logprobs     *struct {
			Tokens        []string `json:"tokens"`
			TokenLogprobs logprobs `json:"token_logprobs"`
		} `json:"logprobs"`
	} `json:"choices"`
	Usage *usage       `json:"usage"`
	Error *serverError `json:"error"`
}

func (openAI) sample(ctx context.Context, t *transport, ep Endpoint, r Request) (Response, error) {
	in := openAIRequest{newCompletionRequest(ep, r), true}
	if r.Progress != nil {
		c := newCollector(r)
		return c.end(ctx, t.stream(ctx, join(ep.URL, "/v1/completions"), in, c.openAI))
	}
	var answer openAIResponse
	if err := t.call(ctx, http.MethodPost, join(ep.URL, "/v1/completions"), in, &answer); err != nil {
		return Response{}, err
	}
	var out Response
	out.promptTokens, out.completionTokens = answer.Usage.counts()
	place, err := newPlacer(len(answer.Choices), r.N)
	if err != nil {
		return Response{}, err
	}
	for _, c := range answer.Choices {
		choice := Choice{Text: c.Text, finish: c.FinishReason, usage: -1}
		if c.Logprobs != nil {
			choice.Logprobs = c.Logprobs.TokenLogprobs
			if choice.Tokens, err = tokenIDsOf(c.Logprobs.Tokens); err != nil {
				return Response{}, err
			}
		}
		if err := place.put(c.Index, choice); err != nil {
			return Response{}, err
		}
	}
	out.Choices = place.choices
	return out, nil
}

// openAI is one event of a stream.
func (c *collector) openAI(data []byte) error {
	if done(data) {
		return errEnd
	}
	var e openAIResponse
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: event of a stream: %w", ErrAnswer, err)
	}
	if e.Error != nil {
		return e.Error.err()
	}
	c.header(nil, nil, e.Usage)
	for _, ch := range e.Choices {
		d := delta{text: ch.Text, finish: ch.FinishReason}
		if ch.Logprobs != nil {
			var err error
			if d.tokens, err = tokenIDsOf(ch.Logprobs.Tokens); err != nil {
				return err
			}
			d.logprobs = ch.Logprobs.TokenLogprobs
		}
		if err := c.add(ch.Index, d); err != nil {
			return err
		}
	}
	return nil
}

// tokenIDsOf reads tokens that are written as ids.
func tokenIDsOf(tokens []string) ([]uint32, error) {
	var ids []uint32
	for _, s := range tokens {
		id, ok := tokenIDOf(s)
		if !ok {
			return nil, fmt.Errorf("%w: a token is %.40q, want token_id:N: the server does not know return_tokens_as_token_ids", ErrNoTokenIDs, s)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (openAI) render(ctx context.Context, t *transport, ep Endpoint, c Conversation) ([]uint32, error) {
	return renderByTokenize(ctx, t, ep, c)
}
