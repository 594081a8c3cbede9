package inference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// The names of dialects, as flags give them.
const (
	DialectAuto         = "auto"
	DialectVLLM         = "vllm"
	DialectVLLMGenerate = "vllm-generate"
	DialectSGLang       = "sglang"
	DialectLlamaCPP     = "llamacpp"
	DialectOpenAI       = "openai"
)

var dialects = map[string]dialect{
	DialectVLLM:         vllmCompletions{},
	DialectVLLMGenerate: vllmGenerate{},
	DialectSGLang:       sglang{},
	DialectLlamaCPP:     llamaCPP{},
	DialectOpenAI:       openAI{},
}

// DialectNames lists them, auto first.
func DialectNames() []string {
	return append([]string{DialectAuto}, slices.Sorted(maps.Keys(dialects))...)
}

// detect finds out how a server wants to be asked, by asking it: what its list of models
// says of itself, then which paths it has, and in the end by having it sample one token.
// Versions are never compared.
func detect(ctx context.Context, t *transport, ep Endpoint, asked string) (dialect, error) {
	if d := dialects[asked]; d != nil {
		return d, nil
	}
	owner, err := owner(ctx, t, ep)
	if err != nil {
		return nil, err
	}
	switch owner {
	case "vllm":
		return vllmKind(ctx, t, ep), nil
	case "sglang":
		return sglang{}, nil
	case "llamacpp":
		return llamaCPP{}, nil
	case "simpolicy":
		return vllmCompletions{}, nil
	}
	for _, try := range []struct {
		path, field string
		d           dialect
	}{{"/props", "default_generation_settings", llamaCPP{}}, {"/get_model_info", "model_path", sglang{}}} {
		has, err := hasField(ctx, t, ep, try.path, try.field)
		if err != nil {
			return nil, err
		}
		if has {
			return try.d, nil
		}
	}
	return tryOneToken(ctx, t, ep)
}

// owner is what the list of models names as its owner, "" where it names nobody.
func owner(ctx context.Context, t *transport, ep Endpoint) (string, error) {
	var answer struct {
		Data []struct {
			OwnedBy string `json:"owned_by"`
		} `json:"data"`
	}
	err := t.call(ctx, http.MethodGet, join(ep.URL, "/v1/models"), nil, &answer)
	if absent(err) || len(answer.Data) == 0 {
		return "", nil
	}
	return strings.ToLower(answer.Data[0].OwnedBy), err
}

// absent: the server has no such path.
func absent(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusMethodNotAllowed || status.Status == http.StatusNotImplemented)
}

func hasField(ctx context.Context, t *transport, ep Endpoint, path, field string) (bool, error) {
	var answer map[string]json.RawMessage
	err := t.call(ctx, http.MethodGet, join(ep.URL, path), nil, &answer)
	if absent(err) || errors.Is(err, ErrAnswer) {
		return false, nil
	}
	return answer[field] != nil, err
}

// vllmKind takes tokens-in-tokens-out where its description of itself has what we need
// of it: a version for every token and the text.
func vllmKind(ctx context.Context, t *transport, ep Endpoint) dialect {
	var description json.RawMessage
	if err := t.call(ctx, http.MethodGet, join(ep.URL, "/openapi.json"), nil, &description); err != nil {
		return vllmCompletions{}
	}
	s := string(description)
	if strings.Contains(s, `"`+generatePath+`"`) && strings.Contains(s, `"weight_versions"`) && strings.Contains(s, `"output_mode"`) {
		return vllmGenerate{}
	}
	return vllmCompletions{}
}

// tryOneToken has a server that does not say what it is sample one token.
func tryOneToken(ctx context.Context, t *transport, ep Endpoint) (dialect, error) {
	m, err := models(ctx, t, ep)
	if err != nil {
		return nil, err
	}
	r := Request{ID: "sluice-which-dialect", Prompt: []uint32{0}, N: 1, MaxTokens: 1, Temperature: 1, TopP: 1}
	var why []error
	for _, d := range []dialect{vllmCompletions{}, openAI{}} {
		a, err := d.sample(ctx, t, Endpoint{ep.URL, m.ID}, r)
		if err == nil && len(a.Choices) == 1 && len(a.Choices[0].Tokens) == 1 && len(a.Choices[0].Logprobs) == 1 {
			return d, nil
		}
		if class := ClassOf(err); err != nil && (class == Absent || class == Trouble && !errors.Is(err, ErrAnswer)) {
			return nil, err
		}
		if err == nil {
			err = fmt.Errorf("%w: %d ids, %d logprobs for one token", ErrNoTokenIDs, len(a.Choices[0].Tokens), len(a.Choices[0].Logprobs))
		}
		why = append(why, fmt.Errorf("as %s: %w", d.name(), err))
	}
	return nil, fmt.Errorf("%w: %s gives no ids of the tokens that it samples, neither by return_token_ids nor by return_tokens_as_token_ids; text encoded again would not be what was sampled: %w",
		ErrDialect, ep.URL, errors.Join(why...))
}
