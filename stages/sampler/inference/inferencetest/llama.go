package inferencetest

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

// llama is llama-server's /completion. What is not asked for is as its defaults have it,
// which generation_settings shows.
func (f *Fake) llama(w http.ResponseWriter, req *http.Request) error {
	settings := map[string]any{
		"temperature": 0.8, "top_k": 40.0, "top_p": 0.95, "min_p": 0.05, "typical_p": 1.0, "repeat_penalty": 1.1,
		"mirostat": 0.0, "dry_multiplier": 0.0, "xtc_probability": 0.0,
		"samplers": []any{"penalties", "dry", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"},
	}
	var sent map[string]any
	if !read(w, req, &sent) {
		return nil
	}
	for k := range settings {
		if v, ok := sent[k]; ok {
			settings[k] = v
		}
	}
	var prompt []uint32
	for _, id := range sent["prompt"].([]any) {
		prompt = append(prompt, uint32(id.(float64)))
	}
	number := func(k string) float64 { v, _ := sent[k].(float64); return v }
	ask := Ask{
		Prompt: rollouttest.Text(prompt), N: 1, MaxTokens: int(number("n_predict")), Seed: uint64(number("seed")), Temperature: settings["temperature"].(float64),
		TopP: settings["top_p"].(float64), TopK: int(settings["top_k"].(float64)), ReturnTokenIDs: sent["return_tokens"] == true,
		Stream: sent["stream"] == true,
	}
	answers, ok, err := f.policy(w, req, ask)
	if !ok {
		return err
	}
	a := answers[0]
	if a.Finish == "" {
		a.Finish = "eos"
	}
	s := f.sampled(a, ask.MaxTokens)
	if s.finish == "length" {
		s.finish = "limit"
	}
	out := map[string]any{
		"content": s.text, "stop_type": s.finish, "truncated": false, "tokens": []int{}, "generation_settings": settings,
		"tokens_predicted": s.usage, "tokens_evaluated": len(f.prompt(prompt)),
	}
	if ask.Stream && !f.Whole {
		f.llamaEvents(w, s, out)
		return nil
	}
	if ask.ReturnTokenIDs {
		out["tokens"] = s.ids
	}
	if number("n_probs") > 0 {
		key, probs := "logprob", []map[string]any{}
		if sent["post_sampling_probs"] == true {
			key = "prob"
		}
		for i, l := range s.logprobs {
			probs = append(probs, map[string]any{"id": s.tokens[i], key: l})
		}
		out["completion_probabilities"] = probs
	}
	reply(w, out)
	return nil
}

// llamaTemplate takes a last message of the assistant for the beginning of an answer.
func (f *Fake) llamaTemplate(w http.ResponseWriter, req *http.Request) {
	var ask struct {
		Messages []rollout.Message `json:"messages"`
		Tools    json.RawMessage   `json:"tools"`
		Generate bool              `json:"add_generation_prompt"`
	}
	if !read(w, req, &ask) {
		return
	}
	prompt := f.render(ask.Messages, ask.Tools, ask.Generate)
	if last := ask.Messages[len(ask.Messages)-1]; last.Role == "assistant" {
		prompt = strings.TrimSuffix(prompt, "<|im_end|>\n")
	}
	reply(w, map[string]any{"prompt": prompt})
}

func (f *Fake) llamaTokenize(w http.ResponseWriter, req *http.Request) {
	var ask struct {
		Content string `json:"content"`
	}
	if read(w, req, &ask) {
		reply(w, map[string]any{"tokens": rollouttest.Tokens(ask.Content)})
	}
}

func (f *Fake) props(w http.ResponseWriter, _ *http.Request) {
	length := f.MaxModelLen
	if length == 0 {
		length = 32768
	}
	reply(w, map[string]any{"default_generation_settings": map[string]any{"n_ctx": length}, "total_slots": 1})
}

// llamaEvents begin with one of nothing and end with one that repeats nothing; no [DONE]
// follows. A token that ends in the middle of a character is not among them.
func (f *Fake) llamaEvents(w http.ResponseWriter, s sampled, end map[string]any) {
	events := []event{{map[string]any{"content": "", "tokens": []int{}, "stop": false}, 0}}
	for _, p := range pieces(1, []sampled{s}) {
		if p.to == p.from || s.tokens[p.from] >= 0xc0 && s.tokens[p.from] < 0x100 {
			continue
		}
		var probs []any
		for j, l := range p.logprobsOf(s) {
			probs = append(probs, map[string]any{"id": s.tokens[p.from+j], "logprob": l})
		}
		events = append(events, event{map[string]any{
			"content": p.text, "tokens": p.idsOf(s), "stop": false, "completion_probabilities": probs, "tokens_predicted": p.to,
		}, p.to})
	}
	end["stop"], end["content"] = true, ""
	send(w, append(events, event{end, last(events)}))
}
