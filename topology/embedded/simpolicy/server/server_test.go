package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/gsm8k"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/tokenizer"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/worked"
)

type fixture struct {
	t       testing.TB
	h       http.Handler
	tok     *tokenizer.Tokenizer
	pol     *policy.Policy
	lib     *worked.Library
	version atomic.Uint32
}

func newFixture(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t}
	var err error
	if f.tok, err = tokenizer.New(); err != nil {
		t.Fatal(err)
	}
	if f.lib, err = worked.Load(gsm8k.Sample); err != nil {
		t.Fatal(err)
	}
	if f.pol, err = policy.New(f.tok, f.lib); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Model: "simpolicy", MaxModelLen: 8192, Seed: 1}
	if change != nil {
		change(&cfg)
	}
	params := policy.Initial()
	s, err := New(cfg, f.tok, f.pol, func() Snapshot { return Snapshot{f.version.Load(), params} }, slog.New(slog.NewTextHandler(t.Output(), nil)), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	f.h = s.Handler()
	return f
}

func (f *fixture) do(ctx context.Context, method, path, body string) (int, []byte) {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	w := httptest.NewRecorder()
	f.h.ServeHTTP(w, r)
	b, _ := io.ReadAll(w.Result().Body)
	return w.Code, b
}

func (f *fixture) post(path string, body any, into any) {
	f.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		f.t.Fatal(err)
	}
	code, got := f.do(context.Background(), "POST", path, string(b))
	if code != 200 {
		f.t.Fatalf("POST %s: %d %s", path, code, got)
	}
	if err := json.Unmarshal(got, into); err != nil {
		f.t.Fatalf("POST %s: %v in %s", path, err, got)
	}
}

type object = map[string]any

// prompt is the first question of the sample, rendered by /tokenize with the tool.
func (f *fixture) prompt() []uint32 {
	f.t.Helper()
	var r tokenizeResponse
	f.post("/tokenize", object{
		"messages":              []object{{"role": "system", "content": "Use it."}, {"role": "user", "content": f.lib.All()[0].Question}},
		"tools":                 []object{{"type": "function", "function": object{"name": "code_interpreter"}}},
		"add_generation_prompt": true, "chat_template_kwargs": object{"enable_thinking": false},
	}, &r)
	if r.Count != len(r.Tokens) || r.MaxModelLen != 8192 {
		f.t.Fatalf("count %d of %d tokens, max_model_len %d", r.Count, len(r.Tokens), r.MaxModelLen)
	}
	return r.Tokens
}

func (f *fixture) complete(body object) completionResponse {
	f.t.Helper()
	var r completionResponse
	f.post("/v1/completions", body, &r)
	return r
}

func TestCompletionHasWhatASamplerNeeds(t *testing.T) {
	f := newFixture(t, nil)
	f.version.Store(3)
	prompt := f.prompt()
	r := f.complete(object{"model": "simpolicy", "prompt": prompt, "n": 8, "seed": 7, "max_tokens": 1024, "temperature": 1.0, "logprobs": 0, "return_token_ids": true, "request_id": "abc"})
	if r.ID != "cmpl-abc" || r.Model != "simpolicy" || len(r.Choices) != 8 || r.PolicyVersion != 3 || r.Usage.PromptTokens != len(prompt) {
		t.Fatalf("response %+v", r)
	}
	sum := 0
	for i, c := range r.Choices {
		if c.Index != i || c.FinishReason != "stop" || c.StopReason != nil {
			t.Errorf("choice %d: index %d, finish %q, stop reason %v", i, c.Index, c.FinishReason, c.StopReason)
		}
		if len(c.TokenIDs) != len(c.Logprobs.TokenLogprobs) || len(c.TokenIDs) == 0 {
			t.Fatalf("choice %d: %d ids, %d logprobs", i, len(c.TokenIDs), len(c.Logprobs.TokenLogprobs))
		}
		if last := c.TokenIDs[len(c.TokenIDs)-1]; last != f.pol.EOS() || strings.Contains(c.Text, tokenizer.MessageEnd) {
			t.Errorf("choice %d: last id %d, text %q; want EOS among the ids only", i, last, c.Text)
		}
		if text, _ := f.tok.Text(c.TokenIDs); text != c.Text {
			t.Errorf("choice %d: text %q, ids say %q", i, c.Text, text)
		}
		if d := cmp.Diff(prompt, c.PromptTokenIDs); d != "" {
			t.Errorf("choice %d: prompt_token_ids:\n%s", i, d)
		}
		scored, err := f.pol.Score(policy.Initial(), 1, prompt, c.TokenIDs)
		if err != nil {
			t.Fatal(err)
		}
		for k, tok := range scored {
			if tok.Foreign || float32(tok.Logprob) != c.Logprobs.TokenLogprobs[k] {
				t.Errorf("choice %d, token %d: logprob %v over the wire, %v by the policy (foreign %t)", i, k, c.Logprobs.TokenLogprobs[k], tok.Logprob, tok.Foreign)
			}
		}
		sum += len(c.TokenIDs)
	}
	if r.Usage.CompletionTokens != sum || r.Usage.TotalTokens != sum+len(prompt) {
		t.Errorf("usage %+v, want %d completion tokens", r.Usage, sum)
	}
}

func TestWhatIsNotAskedForIsLeftOut(t *testing.T) {
	f := newFixture(t, nil)
	r := f.complete(object{"prompt": "Hello", "max_tokens": 40})
	if c := r.Choices[0]; c.Logprobs != nil || c.TokenIDs != nil || c.PromptTokenIDs != nil || r.PromptTokenIDs != nil || c.Text == "" {
		t.Errorf("choice %+v", c)
	}
}

func TestSameSeedSameSamples(t *testing.T) {
	f := newFixture(t, nil)
	ask := object{"prompt": f.prompt(), "n": 4, "seed": uint64(1<<63 + 5), "max_tokens": 500, "logprobs": 0, "return_token_ids": true}
	a, b := f.complete(ask), f.complete(ask)
	a.Created = b.Created
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("two answers to one request:\n%s", d)
	}
	delete(ask, "seed")
	c, d := f.complete(ask), f.complete(ask)
	if cmp.Diff(c.Choices, d.Choices) == "" {
		t.Error("without a seed two answers are the same")
	}
	ask["seed"] = -5
	f.complete(ask)
}

func TestLengthAndStopTokens(t *testing.T) {
	f := newFixture(t, nil)
	prompt := f.prompt()
	r := f.complete(object{"prompt": prompt, "seed": 1, "max_tokens": 3, "return_token_ids": true})
	if c := r.Choices[0]; c.FinishReason != "length" || len(c.TokenIDs) != 3 {
		t.Errorf("max_tokens 3: %+v", c)
	}
	r = f.complete(object{"prompt": prompt, "seed": 1, "max_tokens": 300, "stop_token_ids": []int{'.', 258}, "return_token_ids": true})
	if c := r.Choices[0]; c.FinishReason != "stop" || c.StopReason == nil || *c.StopReason != '.' || c.TokenIDs[len(c.TokenIDs)-1] != '.' {
		t.Errorf("stop token: %+v", c)
	}
}

// The dialect's rule for the next turn holds: the prompt so far, the sampled tokens,
// then what a placeholder's rendering has after its x.
func TestNextTurnByPlaceholder(t *testing.T) {
	f := newFixture(t, nil)
	messages := func(observation ...string) []object {
		ms := []object{{"role": "user", "content": f.lib.All()[0].Question}, {"role": "assistant", "content": "x"}}
		for _, o := range observation {
			ms = append(ms, object{"role": "tool", "content": o})
		}
		return ms
	}
	var short, long tokenizeResponse
	off := object{"enable_thinking": false}
	f.post("/tokenize", object{"messages": messages(), "add_generation_prompt": false, "chat_template_kwargs": off}, &short)
	f.post("/tokenize", object{"messages": messages("18.0"), "add_generation_prompt": true, "chat_template_kwargs": off}, &long)
	if !slices.Equal(long.Tokens[:len(short.Tokens)], short.Tokens) {
		t.Fatal("the longer rendering does not begin with the shorter")
	}
	var glue struct {
		Prompt string `json:"prompt"`
	}
	f.post("/detokenize", object{"tokens": long.Tokens[len(short.Tokens):]}, &glue)
	if want := "<|im_start|>user\n<tool_response>\n18.0\n</tool_response><|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"; glue.Prompt != want {
		t.Errorf("glue %q, want %q", glue.Prompt, want)
	}
	r := f.complete(object{"prompt": long.Tokens, "seed": 2, "n": 20, "max_tokens": 300})
	if !slices.ContainsFunc(r.Choices, func(c completionChoice) bool { return strings.HasSuffix(c.Text, "\\boxed{18}") }) {
		t.Error("none of 20 samples reads the observation")
	}
}

func TestBadInput(t *testing.T) {
	f := newFixture(t, nil)
	for _, c := range []struct {
		path, body, param, says string
		status                  int
	}{
		{"/v1/completions", `{`, "", "JSON", 400},
		{"/v1/completions", `{}`, "prompt", "missing", 400},
		{"/v1/completions", `{"prompt":""}`, "prompt", "empty", 400},
		{"/v1/completions", `{"prompt":[]}`, "prompt", "empty", 400},
		{"/v1/completions", `{"prompt":[-1]}`, "prompt", "token ids", 400},
		{"/v1/completions", `{"prompt":[[1],[2]]}`, "prompt", "one prompt", 400},
		{"/v1/completions", `{"prompt":[1,99999]}`, "prompt", "token 1 is 99999", 400},
		{"/v1/completions", `{"prompt":"x","n":0}`, "n", "n is 0", 400},
		{"/v1/completions", `{"prompt":"x","n":99999}`, "n", "99999", 400},
		{"/v1/completions", `{"prompt":"x","n":"two"}`, "n", "\"n\"", 400},
		{"/v1/completions", `{"prompt":"x","seed":1.5}`, "seed", "seed", 400},
		{"/v1/completions", `{"prompt":"x","max_tokens":0}`, "max_tokens", "0", 400},
		{"/v1/completions", `{"prompt":"x","max_tokens":8192}`, "max_tokens", "8192", 400},
		{"/v1/completions", `{"prompt":"x","temperature":-1}`, "temperature", "-1", 400},
		{"/v1/completions", `{"prompt":"x","top_p":0}`, "top_p", "0", 400},
		{"/v1/completions", `{"prompt":"x","top_k":-2}`, "top_k", "-2", 400},
		{"/v1/completions", `{"prompt":"x","logprobs":5}`, "logprobs", "5", 400},
		{"/v1/completions", `{"prompt":"x","stop":["a"]}`, "stop", "stop", 400},
		{"/v1/completions", `{"prompt":"x","echo":true}`, "echo", "echo", 400},
		{"/v1/completions", `{"prompt":"x","ignore_eos":true}`, "ignore_eos", "ignore_eos", 400},
		{"/v1/completions", `{"prompt":"x","model":"gpt\u001b[0m"}`, "model", "does not exist", 404},
		{"/tokenize", `{}`, "prompt", "neither", 400},
		{"/tokenize", `{"prompt":"x","messages":[]}`, "messages", "both", 400},
		{"/tokenize", `{"messages":[]}`, "messages", "no messages", 400},
		{"/tokenize", `{"messages":[{"role":"x","content":"y"},{"role":"user","content":"y"}]}`, "messages", "role", 400},
		{"/detokenize", `{}`, "tokens", "missing", 400},
		{"/detokenize", `{"tokens":[5000000]}`, "tokens", "5000000", 400},
		{"/v1/chat/completions", `{}`, "", "no route", 404},
	} {
		code, got := f.do(context.Background(), "POST", c.path, c.body)
		var e errorBody
		if err := json.Unmarshal(got, &e); err != nil {
			t.Errorf("%s %s: %v in %s", c.path, c.body, err, got)
			continue
		}
		param := ""
		if e.Error.Param != nil {
			param = *e.Error.Param
		}
		if code != c.status || e.Error.Code != code || param != c.param || !strings.Contains(e.Error.Message, c.says) || bytes.ContainsRune(got, '\x1b') {
			t.Errorf("%s %s: status %d, %s; want %d, param %q, saying %q", c.path, c.body, code, got, c.status, c.param, c.says)
		}
	}
}

func TestWhatAsksForNothingIsNotRefused(t *testing.T) {
	f := newFixture(t, nil)
	f.complete(object{"prompt": "x", "stop": nil, "stream": false, "best_of": nil, "suffix": nil, "logit_bias": nil, "presence_penalty": 0, "repetition_penalty": 1.0, "min_p": 0, "top_k": -1, "user": "someone", "skip_special_tokens": true})
	f.complete(object{"prompt": "x", "stop": []string{}})
}

func TestPlainRoutes(t *testing.T) {
	f := newFixture(t, nil)
	for path, says := range map[string]string{
		"/health": "", "/version": "stand-in", "/v1/models": `"id":"simpolicy"`, "/tokenizer_info": `"content":"\u003ctool_response\u003e"`,
		"/weight_info": `"weight_version":"0"`, "/policy": `"name_error"`,
	} {
		if code, got := f.do(context.Background(), "GET", path, ""); code != 200 || !strings.Contains(string(got), says) {
			t.Errorf("GET %s: %d %s; want 200, saying %s", path, code, got, says)
		}
	}
}

func TestTokenizeAndBack(t *testing.T) {
	f := newFixture(t, nil)
	text := "A theatre, \u6570\u5b66 \U0001f600 <tool_call>\t"
	var r tokenizeResponse
	f.post("/tokenize", object{"prompt": text, "return_token_strs": true}, &r)
	var back struct{ Prompt string }
	f.post("/detokenize", object{"tokens": r.Tokens}, &back)
	if back.Prompt != text || len(r.TokenStrs) != r.Count {
		t.Errorf("%q came back as %q, %d strings for %d tokens", text, back.Prompt, len(r.TokenStrs), r.Count)
	}
}

// An aborted sample is the beginning of the one that would have been, and asking
// again meets another fate.
func TestAborts(t *testing.T) {
	plain := newFixture(t, nil)
	ask := object{"prompt": plain.prompt(), "n": 200, "seed": 7, "max_tokens": 500, "logprobs": 0, "return_token_ids": true}
	whole := plain.complete(ask)
	f := newFixture(t, func(c *Config) { c.AbortRate = 0.5 })
	if _, b := newFixture(t, func(c *Config) { c.AbortRate = 1 }).do(context.Background(), "POST", "/v1/completions", `{"prompt":"x","max_tokens":1,"return_token_ids":true}`); !strings.Contains(string(b), `"token_ids":[]`) {
		t.Errorf("aborted before its first token, it answers %s; want an empty list of token_ids", b)
	}
	first, second := f.complete(ask), f.complete(ask)
	aborted, differ := 0, false
	for i, c := range first.Choices {
		w := whole.Choices[i]
		if len(c.TokenIDs) != len(c.Logprobs.TokenLogprobs) || !slices.Equal(c.TokenIDs, w.TokenIDs[:len(c.TokenIDs)]) {
			t.Fatalf("choice %d is no beginning of the whole sample", i)
		}
		if c.FinishReason == "abort" {
			aborted++
			if len(c.TokenIDs) == len(w.TokenIDs) {
				t.Errorf("choice %d is aborted, and whole", i)
			}
		}
		differ = differ || c.FinishReason != second.Choices[i].FinishReason
	}
	if aborted < 60 || aborted > 140 || !differ {
		t.Errorf("%d of 200 aborted at rate 0.5, fates differ the second time: %t", aborted, differ)
	}
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *Config) { c.Latency, c.Jitter = 2*time.Second, 500*time.Millisecond })
		var waits []time.Duration
		for range 20 {
			began := time.Now()
			f.complete(object{"prompt": "x"})
			waits = append(waits, time.Since(began))
		}
		if lo, hi := slices.Min(waits), slices.Max(waits); lo < 1500*time.Millisecond || hi > 2500*time.Millisecond || hi-lo < 200*time.Millisecond {
			t.Errorf("waits from %v to %v; want 2 s give or take 0.5 s", lo, hi)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		code, _ := f.do(ctx, "POST", "/v1/completions", `{"prompt":"x"}`)
		if took := time.Since(began); took != time.Second || code != 499 {
			t.Errorf("a client that leaves after 1 s: status %d after %v", code, took)
		}
	})
}

func TestConfigIsRefused(t *testing.T) {
	for name, c := range map[string]Config{
		"no model":         {MaxModelLen: 100},
		"short context":    {Model: "m", MaxModelLen: 10},
		"negative latency": {Model: "m", MaxModelLen: 100, Latency: -1},
		"abort rate":       {Model: "m", MaxModelLen: 100, AbortRate: 1.1},
	} {
		if err := c.Validate(); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

// Whatever stands in a body, the answer is JSON and never the server's own failure.
func FuzzRequests(f *testing.F) {
	fix := newFixture(f, nil)
	f.Add("/v1/completions", `{"prompt":[257,10],"n":2,"seed":-1,"max_tokens":4,"logprobs":0,"stop_token_ids":[258]}`)
	f.Add("/v1/completions", `{"prompt":"<|im_start|>user","temperature":0}`)
	f.Add("/tokenize", `{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":[{}]}`)
	f.Add("/detokenize", `{"tokens":[1,255]}`)
	f.Fuzz(func(t *testing.T, path, body string) {
		if !slices.Contains([]string{"/v1/completions", "/tokenize", "/detokenize"}, path) {
			t.Skip("not a route that reads a body")
		}
		code, got := fix.do(context.Background(), "POST", path, body)
		if code >= 500 || !json.Valid(got) {
			t.Fatalf("%s %q: %d %s", path, body, code, got)
		}
	})
}

func BenchmarkCompletions(b *testing.B) {
	f := newFixture(b, nil)
	body, err := json.Marshal(object{"prompt": f.prompt(), "n": 8, "max_tokens": 1024, "logprobs": 0, "return_token_ids": true})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if code, got := f.do(context.Background(), "POST", "/v1/completions", string(body)); code != 200 {
			b.Fatalf("%d %s", code, got)
		}
	}
}
