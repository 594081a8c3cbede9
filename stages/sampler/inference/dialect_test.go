package inference_test

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/inference/inferencetest"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

var fakes = map[string]string{
	inference.DialectVLLM: "", inference.DialectVLLMGenerate: "vllm-generate", inference.DialectSGLang: "sglang",
	inference.DialectLlamaCPP: "llamacpp", inference.DialectOpenAI: "openai",
}

func without(r inference.Request) inference.Request {
	r.StopTokenIDs = nil
	return r
}

// Each kind of server is found out by asking it, and gives the same completions.
func TestEveryDialectIsFoundAndGivesTheSame(t *testing.T) {
	for name, front := range fakes {
		t.Run(name, func(t *testing.T) {
			fake := &inferencetest.Fake{Dialect: front, Policy: func(a inferencetest.Ask) []inferencetest.Answer {
				all := []inferencetest.Answer{{Raw: "2<|im_end|>"}, {Raw: strings.Repeat("on and ", 9)}}
				if a.N == 1 { // asked for one by one
					return all[a.Seed%2:]
				}
				return all
			}}
			c := client(t, fake, inference.Config{})
			info, err := c.Check(t.Context(), inference.Endpoint{URL: "http://fake"})
			if err != nil || info.Dialect != name || info.Model != "fake" || info.MaxModelLen != 32768 {
				t.Fatalf("Check = %+v, %v; want dialect %s", info, err, name)
			}
			r := without(request(2))
			r.Seed = 2
			got, err := c.Sample(t.Context(), endpoints, r, turn())
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []inference.Choice{
				{Tokens: rollouttest.Tokens("2<|im_end|>"), Text: "2", Finish: rollout.Stopped},
				{Tokens: rollouttest.Tokens("on and on and on and"), Text: "on and on and on and", Finish: rollout.Length},
			} {
				for j := range want.Tokens {
					want.Logprobs = append(want.Logprobs, -0.125*float32(j%7))
				}
				if diff := cmp.Diff(want, got.Choices[i], unexported); diff != "" {
					t.Errorf("choice %d (-want +got):\n%s", i, diff)
				}
			}
			if name != inference.DialectLlamaCPP && name != inference.DialectOpenAI && rollouttest.Text(got.Prompt) != "1+1=" {
				t.Errorf("the prompt that was sampled on is %v", got.Prompt)
			}
		})
	}
}

func TestADialectCanBeNamed(t *testing.T) {
	fake := answering(inferencetest.Answer{Raw: "2"})
	fake.Owner = "nobody"
	if info, err := client(t, fake, inference.Config{Dialect: inference.DialectVLLM}).Check(t.Context(), endpoint); err != nil || info.Dialect != "vllm" {
		t.Errorf("Check = %+v, %v", info, err)
	}
	if _, err := inference.New(t.Context(), inference.Config{Dialect: "morse"}); !errors.Is(err, inference.ErrDialect) || !strings.Contains(err.Error(), "llamacpp") {
		t.Errorf("error %v, want ErrDialect with the names that there are", err)
	}
}

// A plain OpenAI endpoint that gives no ids is refused, and the words say why.
func TestAnEndpointWithoutIDsIsRefused(t *testing.T) {
	fake := &inferencetest.Fake{Dialect: "openai", Owner: "without ids"}
	_, err := client(t, fake, inference.Config{}).Check(t.Context(), endpoint)
	if !errors.Is(err, inference.ErrDialect) || !strings.Contains(err.Error(), "return_tokens_as_token_ids") {
		t.Errorf("error %v, want ErrDialect that names return_tokens_as_token_ids", err)
	}
}

func TestVersionsPerToken(t *testing.T) {
	for _, front := range []string{"vllm-generate", "sglang"} {
		t.Run(front, func(t *testing.T) {
			answer := inferencetest.Answer{Raw: strings.Repeat("x", 20), Finish: "stop", Versions: []inferencetest.Version{{Word: "step-7", Count: 9}, {Word: 8, Count: 11}}}
			fake := answering(answer)
			fake.Dialect, fake.WeightVersion = front, "8"
			got, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, without(request(1)), turn())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]inference.Span{{Word: "step-7", Count: 9}, {Word: "8", Count: 11}}, got.Choices[0].Versions); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWordsForVersions(t *testing.T) {
	for name, c := range map[string]struct {
		word any
		want string
	}{
		"default": {"default", "default"}, "null": {nil, ""}, "a number": {7, "7"}, "a number as text": {"7", "7"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := answering(inferencetest.Answer{Raw: "2"})
			fake.Dialect, fake.WeightVersion = "sglang", c.word
			got, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, without(request(2)), turn())
			if err != nil || got.Version != c.want {
				t.Errorf("version %q, %v; want %q", got.Version, err, c.want)
			}
		})
	}
}

// body answers any path that samples with one body.
type body struct{ models, props, answer string }

func (b body) RoundTrip(req *http.Request) (*http.Response, error) {
	text, status := b.answer, 200
	switch req.URL.Path {
	case "/v1/models":
		text = b.models
	case "/props":
		text = b.props
	case "/openapi.json":
		status = 404
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(text)), Request: req, Header: http.Header{}}, nil
}

// golden is an answer of a server and what is to be made of it.
type golden struct {
	// Source says where the shape of the answer is from.
	Source string          `json:"source"`
	Models json.RawMessage `json:"models"`
	Props  json.RawMessage `json:"props"`
	Answer json.RawMessage `json:"answer"`
	Max    int             `json:"max_tokens"`
	Prompt []uint32        `json:"prompt"`
	Want   struct {
		Dialect  string           `json:"dialect"`
		Tokens   []uint32         `json:"tokens"`
		Logprobs []float32        `json:"logprobs"`
		Text     string           `json:"text"`
		Finish   int              `json:"finish"`
		Versions []inference.Span `json:"versions"`
		Error    string           `json:"error"`
	} `json:"want"`
}

func TestKnownAnswers(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.json")
	if len(files) < 6 {
		t.Fatalf("%d answers in testdata, want at least one of each dialect", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				var g golden
				if err := json.Unmarshal(b, &g); err != nil {
					t.Fatal(err)
				}
				name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "_")
				c := client(t, nil, inference.Config{Dialect: name, HTTP: &http.Client{Transport: body{string(g.Models), string(g.Props), string(g.Answer)}}})
				got, err := c.Sample(t.Context(), []inference.Endpoint{{URL: "http://known"}}, inference.Request{Prompt: g.Prompt, N: 1, MaxTokens: g.Max, Temperature: 1, TopP: 1}, turn())
				if g.Want.Error != "" {
					if err == nil || !strings.Contains(err.Error(), g.Want.Error) {
						t.Errorf("error %v, want %q", err, g.Want.Error)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				want := inference.Choice{Tokens: g.Want.Tokens, Logprobs: g.Want.Logprobs, Text: g.Want.Text, Finish: rollout.Finish(g.Want.Finish), Versions: g.Want.Versions}
				if diff := cmp.Diff(want, got.Choices[0], unexported); diff != "" {
					t.Errorf("choice (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// llama-server's defaults bend the distribution: an answer that was sampled with them is
// not used, whatever was asked.
func TestLlamaServersOwnSamplersAreRefused(t *testing.T) {
	fake := answering(inferencetest.Answer{Raw: "2"})
	fake.Dialect = "llamacpp"
	r := without(request(1))
	r.Temperature = 0.7
	if _, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, r, turn()); err != nil {
		t.Fatal(err)
	}
	ask := fake.Asks()[0]
	if ask.Temperature != 0.7 || ask.TopK != 0 || ask.TopP != 1 || !ask.ReturnTokenIDs {
		t.Errorf("asked %+v, want every sampler sent", ask)
	}
}

func TestLlamaServersTraps(t *testing.T) {
	for name, c := range map[string]struct {
		answer inferencetest.Answer
		want   string
	}{
		"a token in the middle of a character": {inferencetest.Answer{Raw: "abc", LogprobsMissing: 1}, "in the middle of a character"},
		"constant logprobs":                    {inferencetest.Answer{Raw: strings.Repeat("x", 16), Logprob: "-0.5"}, "all 16 logprobs are -0.5"},
		"stopped by nothing":                   {inferencetest.Answer{Raw: "abc", Finish: "none"}, `"none"`},
		"stopped by a word that was not sent":  {inferencetest.Answer{Raw: "abc", Finish: "word"}, `"word"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := answering(c.answer)
				fake.Dialect = "llamacpp"
				_, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, without(request(1)), turn())
				if !errors.Is(err, inference.ErrAnswer) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
			})
		})
	}
}

// The same bodies in any dialect, torn at any byte, are errors and nothing else.
func FuzzAnswers(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var g golden
		if err := json.Unmarshal(b, &g); err != nil {
			f.Fatal(err)
		}
		f.Add(string(g.Answer))
	}
	models := `{"data":[{"id":"m"}]}`
	f.Fuzz(func(t *testing.T, answer string) {
		synctest.Test(t, func(t *testing.T) {
			for name := range fakes {
				c := client(t, nil, inference.Config{
					Dialect: name, Budget: inference.Budget{Attempts: 1}, RefusalsInARow: 1 << 30,
					HTTP: &http.Client{Transport: body{models, "{}", answer}},
				})
				r := inference.Request{Prompt: []uint32{1, 2}, N: 1, MaxTokens: 8, Temperature: 1, TopP: 1}
				got, err := c.Sample(t.Context(), []inference.Endpoint{{URL: "http://fuzz"}}, r, turn())
				if err != nil {
					continue
				}
				ch := got.Choices[0]
				if len(ch.Tokens) != len(ch.Logprobs) || len(ch.Tokens) > 8 || len(ch.Tokens) == 0 && ch.Finish != rollout.Aborted {
					t.Errorf("%s: %d tokens, %d logprobs, finish %v from %q", name, len(ch.Tokens), len(ch.Logprobs), ch.Finish, answer)
				}
				for _, l := range ch.Logprobs {
					if math.IsNaN(float64(l)) || l > 0 || l <= -9999 {
						t.Errorf("%s: logprob %v from %q", name, l, answer)
					}
				}
			}
		})
	})
}
