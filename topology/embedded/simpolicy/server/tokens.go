package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/chat"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
)

type tokenizeRequest struct {
	Model               string            `json:"model"`
	Prompt              *string           `json:"prompt"`
	Messages            []chat.Message    `json:"messages"`
	Tools               []json.RawMessage `json:"tools"`
	AddGenerationPrompt *bool             `json:"add_generation_prompt"`
	Continue            bool              `json:"continue_final_message"`
	ReturnTokenStrs     bool              `json:"return_token_strs"`
	TemplateArguments   struct {
		EnableThinking *bool `json:"enable_thinking"`
	} `json:"chat_template_kwargs"`
}

type tokenizeResponse struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []uint32 `json:"tokens"`
	TokenStrs   []string `json:"token_strs"`
}

func (s *Server) tokenize(r *http.Request) (any, error) {
	var req tokenizeRequest
	if err := decode(r, &req); err != nil {
		return nil, err
	}
	if err := s.checkModel(req.Model); err != nil {
		return nil, err
	}
	text, err := req.text()
	if err != nil {
		return nil, err
	}
	resp := tokenizeResponse{Tokens: s.tok.Encode(text), MaxModelLen: s.cfg.MaxModelLen}
	resp.Count = len(resp.Tokens)
	if !req.ReturnTokenStrs {
		return resp, nil
	}
	resp.TokenStrs = make([]string, 0, len(resp.Tokens))
	for _, id := range resp.Tokens {
		content, err := s.tok.Content(id)
		if err != nil {
			return nil, err
		}
		resp.TokenStrs = append(resp.TokenStrs, content)
	}
	return resp, nil
}

func (r *tokenizeRequest) text() (string, error) {
	switch {
	case r.Prompt != nil && r.Messages != nil:
		return "", bad("messages", "both prompt and messages are given: give one")
	case r.Prompt != nil:
		return *r.Prompt, nil
	case r.Messages == nil:
		return "", bad("prompt", "neither prompt nor messages is given")
	case r.Continue:
		return "", bad("continue_final_message", "simpolicy does not do continue_final_message: leave it out")
	}
	o := chat.Options{Tools: r.Tools, AddGenerationPrompt: true, EnableThinking: true}
	if r.AddGenerationPrompt != nil {
		o.AddGenerationPrompt = *r.AddGenerationPrompt
	}
	if r.TemplateArguments.EnableThinking != nil {
		o.EnableThinking = *r.TemplateArguments.EnableThinking
	}
	text, err := chat.Render(r.Messages, o)
	if errors.Is(err, chat.ErrInvalid) {
		return "", bad("messages", "%v", err)
	}
	return text, err
}

func (s *Server) detokenize(r *http.Request) (any, error) {
	var req struct {
		Model  string   `json:"model"`
		Tokens []uint32 `json:"tokens"`
	}
	if err := decode(r, &req); err != nil {
		return nil, err
	}
	if err := s.checkModel(req.Model); err != nil {
		return nil, err
	}
	if req.Tokens == nil {
		return nil, bad("tokens", "tokens is missing: give a list of token ids")
	}
	text, err := s.tok.Decode(req.Tokens)
	if err != nil {
		return nil, bad("tokens", "%v", err)
	}
	return map[string]string{"prompt": strings.ToValidUTF8(text, "\uFFFD")}, nil
}

func (s *Server) models(*http.Request) (any, error) {
	return map[string]any{
		"object": "list",
		"data": []map[string]any{{
			"id": s.cfg.Model, "object": "model", "created": s.started.Unix(), "owned_by": "simpolicy",
			"root": s.cfg.Model, "parent": nil, "max_model_len": s.cfg.MaxModelLen,
		}},
	}, nil
}

func (s *Server) tokenizerInfo(*http.Request) (any, error) {
	type token struct {
		Content string `json:"content"`
		Special bool   `json:"special"`
	}
	decoder := map[string]token{}
	for _, a := range s.tok.Added() {
		decoder[strconv.FormatUint(uint64(a.ID), 10)] = token{a.Content, a.Special}
	}
	return map[string]any{
		"tokenizer_class":      "simpolicy " + s.tok.Fingerprint(),
		"added_tokens_decoder": decoder,
		"eos_token":            "<|im_end|>",
		"pad_token":            "<|endoftext|>",
	}, nil
}

// describe shows what the policy is likely to do.
func (s *Server) describe(*http.Request) (any, error) {
	snapshot := s.current()
	sites := map[string]map[string]float64{}
	for _, site := range policy.Sites() {
		odds := map[string]float64{}
		for i, p := range snapshot.Parameters.Probabilities(site) {
			odds[site.Choices()[i]] = p
		}
		sites[site.Name()] = odds
	}
	return map[string]any{"what": Version, "policy_version": snapshot.Version, "probabilities": sites}, nil
}
