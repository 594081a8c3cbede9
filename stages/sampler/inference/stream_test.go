package inference_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/inference/inferencetest"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

// told is what a caller was told of a request's choices.
type told struct {
	mu      sync.Mutex
	calls   int
	tokens  [][]uint32
	ended   []bool
	texts   []string
	failure string
}

func listen(n int) *told {
	return &told{tokens: make([][]uint32, n), ended: make([]bool, n), texts: make([]string, n)}
}

// progress checks that each choice only grows, with a logprob for each token.
func (l *told) progress(i int, _ inference.Response, c inference.Choice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	before := l.tokens[i]
	switch {
	case l.ended[i]:
		l.failure = fmt.Sprintf("choice %d goes on after its end", i)
	case len(c.Tokens) < len(before) || !cmp.Equal(before, append([]uint32(nil), c.Tokens[:len(before)]...), cmpopts.EquateEmpty()):
		l.failure = fmt.Sprintf("choice %d had %v and has %v", i, before, c.Tokens)
	case len(c.Logprobs) != len(c.Tokens):
		l.failure = fmt.Sprintf("choice %d: %d tokens, %d logprobs", i, len(c.Tokens), len(c.Logprobs))
	case c.Whole.Tokens > len(c.Tokens) || c.Whole.Text > len(c.Text) || !strings.HasPrefix(rollouttest.WithoutSpecial(rollouttest.Text(c.Tokens[:c.Whole.Tokens])), c.Text[:c.Whole.Text]):
		l.failure = fmt.Sprintf("choice %d: text %q is not that of %q", i, c.Text[:c.Whole.Text], rollouttest.Text(c.Tokens[:c.Whole.Tokens]))
	}
	l.tokens[i], l.ended[i], l.texts[i] = append([]uint32(nil), c.Tokens...), c.Ended, c.Text
}

func streamed(r inference.Request, l *told) inference.Request {
	r.Progress = l.progress
	return r
}

// fronts are the servers that stream, with what differs between their releases.
var fronts = map[string]struct {
	dialect, repeat string
	chunk           int
}{
	"vllm": {}, "vllm, several tokens an event": {chunk: 5}, "vllm-generate": {dialect: "vllm-generate"},
	"sglang": {dialect: "sglang"}, "sglang, several tokens an event": {dialect: "sglang", chunk: 3},
	"sglang, old option": {dialect: "sglang", repeat: "ids"}, "sglang, new option": {dialect: "sglang", repeat: "nothing"},
	"llamacpp": {dialect: "llamacpp"}, "openai": {dialect: "openai"},
}

func front(name string) *inferencetest.Fake {
	like := fronts[name]
	return &inferencetest.Fake{Dialect: like.dialect, Chunk: like.chunk, Repeat: like.repeat}
}

// A streamed answer is the answer that comes whole, whatever the server and the texts.
func TestAStreamedAnswerIsTheWholeOne(t *testing.T) {
	for name := range fronts {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				texts := rapid.SliceOfN(rapid.StringMatching(`([a-z <|]{1,12}(<\|im_end\|>)?){1,3}`), 2, 2).Draw(rt, "texts")
				fake := front(name)
				fake.Policy = func(a inferencetest.Ask) []inferencetest.Answer {
					all := []inferencetest.Answer{{Raw: texts[0]}, {Raw: texts[1]}}
					if a.N == 1 {
						return all[a.Seed%2:]
					}
					return all
				}
				c := client(t, fake, inference.Config{})
				r := without(request(2))
				r.Seed = 2
				whole, err := c.Sample(t.Context(), endpoints, r, turn())
				if err != nil {
					rt.Fatal(err)
				}
				l := listen(2)
				got, err := c.Sample(t.Context(), endpoints, streamed(r, l), turn())
				if err != nil {
					rt.Fatal(err)
				}
				if diff := cmp.Diff(whole, got, unexported, cmpopts.IgnoreFields(inference.Choice{}, "Ended", "Whole")); diff != "" {
					rt.Errorf("-whole +streamed:\n%s", diff)
				}
				for i, choice := range got.Choices {
					if !l.ended[i] || len(l.tokens[i]) != len(choice.Tokens) {
						rt.Errorf("choice %d: told of %d tokens, ended %t; want all %d", i, len(l.tokens[i]), l.ended[i], len(choice.Tokens))
					}
				}
				if l.failure != "" {
					rt.Error(l.failure)
				}
				asks := fake.Asks()
				if last := asks[len(asks)-1]; !last.Stream || asks[0].Stream {
					rt.Errorf("streams asked for: %t, then %t", asks[0].Stream, last.Stream)
				}
			})
		})
	}
}

// A stream that breaks off keeps what it brought, however it breaks; the turn goes on.
func TestACutStreamKeepsItsTokens(t *testing.T) {
	for name := range fronts {
		for how, set := range map[string]func(*inferencetest.Fake){
			"reset": func(*inferencetest.Fake) {}, "ended in the middle": func(f *inferencetest.Fake) { f.CutClean = true },
			"an error in the stream": func(f *inferencetest.Fake) { f.CutMessage = "EngineCore died" },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				fake := front(name)
				fake.Policy = func(a inferencetest.Ask) []inferencetest.Answer {
					return []inferencetest.Answer{{Raw: "the answer is 2<|im_end|>"}}[:a.N]
				}
				fake.CutAfter, fake.CutTimes = 10, 1
				set(fake)
				account := turn()
				r := without(request(1))
				r.MaxTokens = 100
				got, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, streamed(r, listen(1)), account)
				if err != nil {
					t.Fatal(err)
				}
				c := got.Choices[0]
				if c.Err != nil || c.Finish != rollout.Cut || len(c.Tokens) == 0 || len(c.Tokens) > 10 || len(c.Logprobs) != len(c.Tokens) || !strings.HasPrefix("the answer", rollouttest.Text(c.Tokens)) {
					t.Errorf("a stream cut after 10 tokens gave %q, finish %v, %v", rollouttest.Text(c.Tokens), c.Finish, c.Err)
				}
				if n := len(fake.Asks()); n != 1 {
					t.Errorf("%d requests, want 1: the rest is asked for by who has the tokens", n)
				}
			})
		}
	}
}

// One that breaks before its first token is tried again, within the turn's budget.
func TestAStreamOfNothingIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := answering(inferencetest.Answer{Raw: "2"})
		fake.CutTimes = 2
		account := turn()
		got, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, streamed(request(1), listen(1)), account)
		if err != nil || got.Choices[0].Text != "2" || account.Attempts() != 3 {
			t.Errorf("%+v, %v after %d attempts, want 3", got.Choices, err, account.Attempts())
		}
		fake.Set(func(f *inferencetest.Fake) { f.CutTimes = 99 })
		var spent *inference.SpentError
		if _, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, streamed(request(1), listen(1)), turn()); !errors.As(err, &spent) || !errors.Is(err, inference.ErrCut) {
			t.Errorf("error %v, want SpentError of ErrCut", err)
		}
	})
}

// Of a group whose stream breaks off, those that had ended are whole.
func TestACutGroupKeepsWhatHadEnded(t *testing.T) {
	fake := &inferencetest.Fake{CutAfter: 8, CutTimes: 1, Policy: func(inferencetest.Ask) []inferencetest.Answer {
		return []inferencetest.Answer{{Raw: "2"}, {Raw: "a long answer"}}
	}}
	got, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, streamed(request(2), listen(2)), turn())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := got.Choices[0], got.Choices[1]; a.Finish != rollout.Stopped || b.Finish != rollout.Cut || rollouttest.Text(b.Tokens) != "a long a" {
		t.Errorf("%v %q and %v %q", a.Finish, a.Text, b.Finish, rollouttest.Text(b.Tokens))
	}
}

// What is wrong in a stream is found as in a whole answer.
func TestUnusableStreams(t *testing.T) {
	for name, c := range map[string]struct {
		answer inferencetest.Answer
		front  string
		extra  int
		want   error
	}{
		"ids missing":             {inferencetest.Answer{Raw: "a call", IDsMissing: 2}, "vllm", 0, inference.ErrAnswer},
		"no ids":                  {inferencetest.Answer{Raw: "2", WithoutTokenIDs: true}, "vllm", 0, inference.ErrNoTokenIDs},
		"logprobs missing":        {inferencetest.Answer{Raw: "22", LogprobsMissing: 1}, "vllm", 0, inference.ErrAnswer},
		"a logprob of null":       {inferencetest.Answer{Raw: "22", Logprob: "null"}, "sglang", 0, inference.ErrAnswer},
		"an unknown finish":       {inferencetest.Answer{Raw: "22", Finish: "repetition"}, "vllm-generate", 0, inference.ErrAnswer},
		"counts differ":           {inferencetest.Answer{Raw: "22"}, "openai", 1, inference.ErrAnswer},
		"no ids of an OpenAI one": {inferencetest.Answer{Raw: "22", WithoutTokenIDs: true}, "openai", 0, inference.ErrNoTokenIDs},
		"half a character":        {inferencetest.Answer{Raw: "2\xc3\xa9!"}, "llamacpp", 0, inference.ErrAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := front(c.front)
				fake.Policy, fake.Extra = func(inferencetest.Ask) []inferencetest.Answer { return []inferencetest.Answer{c.answer} }, c.extra
				_, err := client(t, fake, inference.Config{Budget: inference.Budget{Time: time.Minute}, RefusalsInARow: 1 << 20}).
					Sample(t.Context(), endpoints, streamed(without(request(1)), listen(1)), turn())
				if !errors.Is(err, c.want) {
					t.Errorf("error %v, want %v", err, c.want)
				}
			})
		})
	}
}

// A server that does not stream is named as one.
func TestAServerThatDoesNotStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := answering(inferencetest.Answer{Raw: "2"})
		fake.Whole = true
		_, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, streamed(request(1), listen(1)), turn())
		if !errors.Is(err, inference.ErrAnswer) || !strings.Contains(err.Error(), "application/json") {
			t.Errorf("error %v, want ErrAnswer that names the content type", err)
		}
	})
}

// Tokens are told of as they come, not at the end; and a request that nobody wants any more
// ends at once.
func TestTokensAreToldOfWhenTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := answering(inferencetest.Answer{Raw: strings.Repeat("x", 20)})
		fake.PerToken = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		l := listen(1)
		ended := make(chan error)
		go func() {
			_, err := client(t, fake, inference.Config{}).Sample(ctx, endpoints, streamed(request(1), l), turn())
			ended <- err
		}()
		time.Sleep(7500 * time.Millisecond)
		synctest.Wait()
		l.mu.Lock()
		if n := len(l.tokens[0]); n != 7 {
			t.Errorf("%d tokens after 7.5 s at one a second", n)
		}
		l.mu.Unlock()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
	})
}

// FuzzStreams: whatever a server streams, the answer is one that can be trained on, or an
// error that has a class.
func FuzzStreams(f *testing.F) {
	for _, s := range []string{
		`{"choices":[{"index":0,"text":"a","token_ids":[97],"logprobs":{"token_logprobs":[-1]},"finish_reason":null}]}`,
		`{"choices":[{"index":0,"text":"a","token_ids":[97],"logprobs":{"token_logprobs":[-1],"tokens":["token_id:97"]},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]",
		`{"text":"a","output_ids":[97],"meta_info":{"completion_tokens":1,"output_token_logprobs":[[-1,97,null]],"finish_reason":{"type":"stop"}}}` + "\n\ndata: [DONE]",
		`{"content":"a","tokens":[97],"stop":true,"stop_type":"eos","completion_probabilities":[{"id":97,"logprob":-1}],"tokens_predicted":1}`,
		`{"error":{"code":400,"message":"no"}}`, `[]`, ``,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		for name := range fakes {
			ctx, cancel := context.WithCancel(t.Context())
			c, err := inference.New(ctx, inference.Config{
				HTTP: &http.Client{Transport: eventStream(stream)}, Dialect: name, Budget: inference.Budget{Attempts: 1}, RefusalsInARow: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			wait, stop := context.WithTimeout(ctx, 50*time.Millisecond)
			l := listen(1)
			got, err := c.Sample(wait, endpoints, streamed(without(request(1)), l), turn())
			stop()
			if err == nil {
				choice := got.Choices[0]
				if choice.Err != nil || len(choice.Tokens) != len(choice.Logprobs) || len(choice.Tokens) == 0 && choice.Finish != rollout.Aborted {
					t.Errorf("%s: %+v", name, choice)
				}
			} else if inference.ClassOf(err).String() == "" {
				t.Errorf("%s: %v has no class", name, err)
			}
			cancel()
		}
	})
}

type eventStream string

func (s eventStream) RoundTrip(req *http.Request) (*http.Response, error) {
	switch req.URL.Path {
	case "/v1/models":
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"data":[{"id":"fake"}]}`))}, nil
	case "/props":
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{}`))}, nil
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader("data: " + string(s) + "\n\n"))}, nil
}
