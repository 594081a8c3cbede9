package inferencetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

// front is how one kind of server is asked.
type front struct {
	owner, path string
	complete    func(*Fake, http.ResponseWriter, *http.Request) error
	more        map[string]func(*Fake, http.ResponseWriter, *http.Request)
}

type paths = map[string]func(*Fake, http.ResponseWriter, *http.Request)

var fronts = map[string]front{
	"":              {"vllm", "/v1/completions", (*Fake).completions, paths{"/tokenize": (*Fake).tokenize}},
	"openai":        {"somebody", "/v1/completions", (*Fake).openAI, paths{"/tokenize": (*Fake).tokenize}},
	"vllm-generate": {"vllm", "/inference/v1/generate", (*Fake).generate, paths{"/tokenize": (*Fake).tokenize, "/openapi.json": (*Fake).describe}},
	"sglang":        {"sglang", "/generate", (*Fake).sglang, paths{"/tokenize": (*Fake).tokenize}},
	"llamacpp":      {"llamacpp", "/completion", (*Fake).llama, paths{"/tokenize": (*Fake).llamaTokenize, "/apply-template": (*Fake).llamaTemplate, "/props": (*Fake).props}},
}

func fixed(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }

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
	tokens := rollouttest.Tokens(f.render(ask.Messages, ask.Tools, ask.AddGenerationPrompt))
	reply(w, map[string]any{"count": len(tokens), "tokens": tokens, "max_model_len": 32768})
}

// streaming asks for a stream.
type streaming struct {
	Stream  bool `json:"stream"`
	Options struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// vllmSampling is what vLLM's two paths have in common.
type vllmSampling struct {
	N                 int      `json:"n"`
	MaxTokens         int      `json:"max_tokens"`
	Seed              uint64   `json:"seed"`
	Logprobs          *int     `json:"logprobs"`
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

func (s vllmSampling) ask(id, model string, prompt []uint32, returnIDs bool) Ask {
	return Ask{
		Prompt: rollouttest.Text(prompt), N: s.N, MaxTokens: s.MaxTokens, TopK: s.TopK, Seed: s.Seed,
		Temperature: s.Temperature, TopP: s.TopP, RequestID: id, Model: model, ReturnTokenIDs: returnIDs,
		SkipSpecial: s.SkipSpecial, Logprobs: s.Logprobs, MinP: s.MinP, RepetitionPenalty: s.RepetitionPenalty,
		StopTokenIDs: s.StopTokenIDs, PresencePenalty: s.Presence, FrequencyPenalty: s.Frequency,
	}
}

// completions is vLLM's /v1/completions.
func (f *Fake) completions(w http.ResponseWriter, req *http.Request) error {
	var in struct {
		vllmSampling
		Model          string   `json:"model"`
		RequestID      string   `json:"request_id"`
		Prompt         []uint32 `json:"prompt"`
		ReturnTokenIDs bool     `json:"return_token_ids"`
		streaming
	}
	if !read(w, req, &in) {
		return nil
	}
	f.mu.Lock()
	version := f.Version
	f.mu.Unlock()
	ask := in.ask(in.RequestID, in.Model, in.Prompt, in.ReturnTokenIDs)
	ask.Stream = in.Stream
	answers, ok, err := f.policy(w, req, ask)
	if !ok {
		return err
	}
	if in.Stream && !f.Whole {
		f.completionEvents(w, answers, in.Prompt, in.MaxTokens, in.ReturnTokenIDs, in.Options.IncludeUsage, version)
		return nil
	}
	choices, total := []map[string]any{}, 0
	for i, a := range answers {
		s := f.sampled(a, in.MaxTokens)
		total += s.usage
		c := map[string]any{
			"index": i, "text": s.text, "finish_reason": s.word(), "logprobs": map[string]any{"token_logprobs": s.logprobs},
		}
		if in.ReturnTokenIDs && s.ids != nil {
			c["token_ids"] = s.ids
		}
		if !f.WithoutPrompt {
			c["prompt_token_ids"] = f.prompt(in.Prompt)
		}
		choices = append(choices, c)
	}
	out := map[string]any{"object": "text_completion", "model": in.Model, "choices": choices, "usage": f.usage(in.Prompt, total)}
	if version != nil {
		out["policy_version"] = *version
	}
	reply(w, out)
	return nil
}

func (f *Fake) completionEvents(w http.ResponseWriter, answers []Answer, prompt []uint32, most int, withIDs, withUsage bool, version *uint32) {
	all, total := f.allSampled(answers, most)
	var events []event
	for _, p := range pieces(f.Chunk, all) {
		s := all[p.index]
		c := map[string]any{
			"index": p.index, "text": p.text, "finish_reason": p.wordOf(s), "logprobs": map[string]any{"token_logprobs": p.logprobsOf(s)},
		}
		if withIDs && s.ids != nil {
			c["token_ids"] = p.idsOf(s)
		}
		if !f.WithoutPrompt && p.from == 0 { // the first event alone
			c["prompt_token_ids"] = f.prompt(prompt)
		}
		e := map[string]any{"object": "text_completion", "choices": []any{c}}
		if version != nil {
			e["policy_version"] = *version
		}
		events = append(events, event{e, p.to})
	}
	if withUsage {
		events = append(events, event{map[string]any{"choices": []any{}, "usage": f.usage(prompt, total)}, last(events)})
	}
	send(w, finished(events))
}

func (f *Fake) allSampled(answers []Answer, most int) (all []sampled, total int) {
	for _, a := range answers {
		s := f.sampled(a, most)
		total += s.usage
		all = append(all, s)
	}
	return all, total
}

func (f *Fake) usage(prompt []uint32, completion int) map[string]int {
	return map[string]int{"prompt_tokens": len(f.prompt(prompt)), "completion_tokens": completion}
}

// openAI knows return_tokens_as_token_ids and nothing else of vLLM's.
func (f *Fake) openAI(w http.ResponseWriter, req *http.Request) error {
	var in struct {
		vllmSampling
		Model  string   `json:"model"`
		Prompt []uint32 `json:"prompt"`
		AsIDs  bool     `json:"return_tokens_as_token_ids"`
		streaming
	}
	if !read(w, req, &in) {
		return nil
	}
	if in.MaxTokens == 1 && len(in.Prompt) == 1 { // somebody asks what we are
		f.one(w, in.AsIDs)
		return nil
	}
	ask := in.ask("", in.Model, in.Prompt, false)
	ask.Stream = in.Stream
	answers, ok, err := f.policy(w, req, ask)
	if !ok {
		return err
	}
	if in.Stream && !f.Whole {
		f.openAIEvents(w, answers, in.Prompt, in.MaxTokens, in.AsIDs)
		return nil
	}
	choices, total := []map[string]any{}, 0
	for i, a := range answers {
		s := f.sampled(a, in.MaxTokens)
		total += s.usage
		tokens := make([]string, len(s.tokens))
		for j, id := range s.tokens {
			if tokens[j] = string(rune(id)); in.AsIDs && !a.WithoutTokenIDs {
				tokens[j] = fmt.Sprint("token_id:", id)
			}
		}
		choices = append(choices, map[string]any{
			"index": i, "text": s.text, "finish_reason": s.word(), "logprobs": map[string]any{"token_logprobs": s.logprobs, "tokens": tokens},
		})
	}
	reply(w, map[string]any{"choices": choices, "usage": f.usage(in.Prompt, total)})
	return nil
}

func (f *Fake) openAIEvents(w http.ResponseWriter, answers []Answer, prompt []uint32, most int, asIDs bool) {
	all, total := f.allSampled(answers, most)
	var events []event
	for _, p := range pieces(f.Chunk, all) {
		s := all[p.index]
		tokens := []string{}
		for _, id := range s.tokens[p.from:p.to] {
			text := string(rune(id))
			if asIDs && !answers[p.index].WithoutTokenIDs {
				text = fmt.Sprint("token_id:", id)
			}
			tokens = append(tokens, text)
		}
		events = append(events, event{map[string]any{"choices": []any{map[string]any{
			"index": p.index, "text": p.text, "finish_reason": p.wordOf(s), "logprobs": map[string]any{"token_logprobs": p.logprobsOf(s), "tokens": tokens},
		}}}, p.to})
	}
	events = append(events, event{map[string]any{"choices": []any{}, "usage": f.usage(prompt, total)}, last(events)})
	send(w, finished(events))
}

func (f *Fake) one(w http.ResponseWriter, asIDs bool) {
	token := "a"
	if asIDs && f.Owner != "without ids" {
		token = "token_id:97"
	}
	reply(w, map[string]any{"choices": []any{map[string]any{
		"index": 0, "text": "a", "finish_reason": "length", "logprobs": map[string]any{"token_logprobs": []float64{-1}, "tokens": []string{token}},
	}}})
}

// describe is as much of vLLM's description of itself as matters.
func (f *Fake) describe(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]any{
		"paths":      map[string]any{"/v1/completions": nil, "/inference/v1/generate": nil},
		"components": map[string]any{"schemas": map[string]any{"weight_versions": nil, "output_mode": nil}},
	})
}

// generate is vLLM's /inference/v1/generate.
func (f *Fake) generate(w http.ResponseWriter, req *http.Request) error {
	var in struct {
		Model          string       `json:"model"`
		RequestID      string       `json:"request_id"`
		TokenIDs       []uint32     `json:"token_ids"`
		OutputMode     string       `json:"output_mode"`
		ReturnTokenIDs bool         `json:"return_token_ids"`
		Sampling       vllmSampling `json:"sampling_params"`
		streaming
	}
	if !read(w, req, &in) {
		return nil
	}
	if in.Sampling.MaxTokens == 0 {
		in.Sampling.MaxTokens = 16
	}
	ask := in.Sampling.ask(in.RequestID, in.Model, in.TokenIDs, in.ReturnTokenIDs)
	ask.Stream = in.Stream
	answers, ok, err := f.policy(w, req, ask)
	if !ok {
		return err
	}
	if in.Stream && !f.Whole {
		f.generateEvents(w, answers, in.TokenIDs, in.Sampling.MaxTokens, in.OutputMode)
		return nil
	}
	choices, total := []map[string]any{}, 0
	for i, a := range answers {
		s := f.sampled(a, in.Sampling.MaxTokens)
		total += s.usage
		content := make([]map[string]any, len(s.logprobs))
		for j, l := range s.logprobs {
			content[j] = map[string]any{"token": string(rune(s.tokens[j])), "logprob": l}
		}
		c := map[string]any{"index": i, "token_ids": s.ids, "finish_reason": s.word(), "logprobs": map[string]any{"content": content}}
		if in.OutputMode == "text" {
			c["text"] = s.text
		}
		if a.Versions != nil {
			c["weight_versions"] = a.spans(len(s.tokens))
		}
		choices = append(choices, c)
	}
	out := map[string]any{"request_id": in.RequestID, "output_mode": in.OutputMode, "choices": choices, "usage": f.usage(in.TokenIDs, total)}
	if in.ReturnTokenIDs && !f.WithoutPrompt {
		out["prompt_token_ids"] = f.prompt(in.TokenIDs)
	}
	reply(w, out)
	return nil
}

// generateEvents leaves out what brings no token, with the word for the end in it.
func (f *Fake) generateEvents(w http.ResponseWriter, answers []Answer, prompt []uint32, most int, mode string) {
	all, total := f.allSampled(answers, most)
	var events []event
	for _, p := range pieces(f.Chunk, all) {
		s := all[p.index]
		if p.to == p.from {
			continue
		}
		content := []map[string]any{}
		for j, l := range p.logprobsOf(s) {
			content = append(content, map[string]any{"token": fmt.Sprint("token_id:", s.tokens[p.from+j]), "logprob": l})
		}
		c := map[string]any{"index": p.index, "token_ids": p.idsOf(s), "finish_reason": p.wordOf(s), "logprobs": map[string]any{"content": content}}
		if mode == "text" {
			c["text"] = p.text
		}
		if a := answers[p.index]; a.Versions != nil && p.last {
			c["weight_versions"] = a.spans(len(s.tokens))
		}
		e := map[string]any{"choices": []any{c}}
		if p.from == 0 && !f.WithoutPrompt {
			e["prompt_token_ids"] = f.prompt(prompt)
		}
		events = append(events, event{e, p.to})
	}
	events = append(events, event{map[string]any{"choices": []any{}, "usage": f.usage(prompt, total)}, last(events)})
	send(w, finished(events))
}

// sglang is SGLang's /generate.
func (f *Fake) sglang(w http.ResponseWriter, req *http.Request) error {
	var in struct {
		RequestID     string   `json:"rid"`
		InputIDs      []uint32 `json:"input_ids"`
		ReturnLogprob bool     `json:"return_logprob"`
		ReturnPrompt  bool     `json:"return_prompt_token_ids"`
		Stream        bool     `json:"stream"`
		Sampling      struct {
			vllmSampling
			MaxNewTokens int    `json:"max_new_tokens"`
			Seed         uint64 `json:"sampling_seed"`
		} `json:"sampling_params"`
	}
	if !read(w, req, &in) {
		return nil
	}
	in.Sampling.MaxTokens, in.Sampling.vllmSampling.Seed = in.Sampling.MaxNewTokens, in.Sampling.Seed
	ask := in.Sampling.ask(in.RequestID, "", in.InputIDs, in.ReturnLogprob)
	ask.Stream = in.Stream
	answers, ok, err := f.policy(w, req, ask)
	if !ok {
		return err
	}
	a := answers[0]
	if in.Stream && !f.Whole {
		f.sglangEvents(w, a, in.RequestID, in.InputIDs, in.Sampling.MaxTokens)
		return nil
	}
	s := f.sampled(a, in.Sampling.MaxTokens)
	logprobs := make([]any, len(s.logprobs))
	for i, l := range s.logprobs {
		logprobs[i] = []any{l, s.tokens[i], nil}
	}
	meta := map[string]any{
		"id": in.RequestID, "finish_reason": map[string]any{"type": s.word()}, "prompt_tokens": len(f.prompt(in.InputIDs)),
		"completion_tokens": s.usage, "output_token_logprobs": logprobs, "weight_version": f.WeightVersion,
	}
	if a.Versions != nil {
		meta["weight_versions"] = a.spans(len(s.tokens))
	}
	out := map[string]any{"text": s.text, "output_ids": s.ids, "meta_info": meta}
	if in.ReturnPrompt && !f.WithoutPrompt {
		out["prompt_token_ids"] = f.prompt(in.InputIDs)
	}
	reply(w, out)
	return nil
}

// sglangEvents repeat in each event what came before, or parts of it.
func (f *Fake) sglangEvents(w http.ResponseWriter, a Answer, id string, prompt []uint32, most int) {
	s := f.sampled(a, most)
	var events []event
	for _, p := range pieces(f.Chunk, []sampled{s}) {
		whole := piece{index: 0, from: 0, to: p.to, text: p.all}
		ids, lps, text := whole, whole, p.all
		switch f.Repeat {
		case "ids":
			ids = p
		case "nothing":
			ids, lps, text = p, p, p.text
		}
		logprobs := []any{}
		for j, l := range lps.logprobsOf(s) {
			logprobs = append(logprobs, []any{l, s.tokens[lps.from+j], nil})
		}
		var finish any
		usage := p.to
		if p.last {
			finish, usage = map[string]any{"type": s.word()}, s.usage
		}
		meta := map[string]any{
			"id": id, "finish_reason": finish, "prompt_tokens": len(f.prompt(prompt)),
			"completion_tokens": usage, "output_token_logprobs": logprobs, "weight_version": f.WeightVersion,
		}
		if a.Versions != nil && p.last {
			meta["weight_versions"] = a.spans(len(s.tokens))
		}
		e := map[string]any{"text": text, "output_ids": ids.idsOf(s), "meta_info": meta}
		if !f.WithoutPrompt {
			e["prompt_token_ids"] = f.prompt(prompt)
		}
		events = append(events, event{e, p.to})
	}
	send(w, finished(events))
}
