package inference_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/inference/inferencetest"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

var (
	endpoint  = inference.Endpoint{URL: "http://fake/v1/", Model: "fake"}
	endpoints = []inference.Endpoint{endpoint}
)

func answering(answers ...inferencetest.Answer) *inferencetest.Fake {
	return &inferencetest.Fake{Policy: func(inferencetest.Ask) []inferencetest.Answer { return answers }}
}

func client(t *testing.T, fake *inferencetest.Fake, cfg inference.Config) *inference.Client {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	if cfg.HTTP == nil {
		cfg.HTTP = fake.Client()
	}
	c, err := inference.New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func turn() *inference.Turn { return &inference.Turn{ID: "run.0/1/2/3 turn 0"} }

func request(n int) inference.Request {
	return inference.Request{
		ID: "r", Prompt: rollouttest.Tokens("1+1="), N: n, MaxTokens: 20, Seed: math.MaxUint64,
		Temperature: 1, TopP: 1, StopTokenIDs: []uint32{7},
	}
}

var unexported = cmpopts.IgnoreUnexported(inference.Response{}, inference.Choice{})

func TestSampleSendsTokenIDsAndEveryParameter(t *testing.T) {
	fake := answering(inferencetest.Answer{Raw: "2<|im_end|>"}, inferencetest.Answer{Raw: "three, and so on and on and on"})
	got, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, request(2), turn())
	if err != nil {
		t.Fatal(err)
	}
	zero, one, none := 0.0, 1.0, 0
	asks := fake.Asks()
	if len(asks) != 1 || !strings.HasPrefix(asks[0].RequestID, "r/") {
		t.Fatalf("asked %+v, want one request of r", asks)
	}
	asks[0].RequestID = "r"
	want := []inferencetest.Ask{{
		Prompt: "1+1=", N: 2, MaxTokens: 20, TopK: -1, Seed: math.MaxInt64, Temperature: 1, TopP: 1, RequestID: "r", Model: "fake",
		ReturnTokenIDs: true, SkipSpecial: true, Logprobs: &none, MinP: &zero, RepetitionPenalty: &one,
		StopTokenIDs: []uint32{7}, PresencePenalty: &zero, FrequencyPenalty: &zero,
	}}
	if diff := cmp.Diff(want, asks); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(inference.Response{
		Prompt: rollouttest.Tokens("1+1="), Endpoint: endpoint,
		Choices: []inference.Choice{
			{Tokens: rollouttest.Tokens("2<|im_end|>"), Text: "2", Finish: rollout.Stopped, Logprobs: []float32{0, -0.125, -0.25, -0.375, -0.5, -0.625, -0.75, 0, -0.125, -0.25, -0.375}},
			{Tokens: rollouttest.Tokens("three, and so on and"), Text: "three, and so on and", Finish: rollout.Length, Logprobs: got.Choices[1].Logprobs},
		},
	}, got, unexported); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestVersionOfTheServerIsTakenWhereItIsSaid(t *testing.T) {
	version := uint32(7)
	fake := answering(inferencetest.Answer{Raw: "2"})
	fake.Version = &version
	got, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, request(1), turn())
	if err != nil || !got.HasVersion || got.PolicyVersion != 7 {
		t.Errorf("version %d (%t), error %v; want 7", got.PolicyVersion, got.HasVersion, err)
	}
}

// Whatever a server answers with status 200 that cannot be used is asked for again a few
// times, and then given up with its reason.
func TestUnusableAnswersAreBounded(t *testing.T) {
	good := inferencetest.Answer{Raw: "2<|im_end|>"}
	for name, c := range map[string]struct {
		answers []inferencetest.Answer
		extra   int
		want    string
	}{
		"no choices":                   {[]inferencetest.Answer{}, 0, "0 choices, asked for 1"},
		"too many choices":             {[]inferencetest.Answer{good, good}, 0, "2 choices, asked for 1"},
		"a token of id -1":             {[]inferencetest.Answer{{Raw: "ab", LastToken: -1}}, 0, `token id "-1"`},
		"a token of no vocabulary":     {[]inferencetest.Answer{{Raw: "ab", LastToken: 1 << 30}}, 0, "beyond the vocabulary"},
		"a logprob of null":            {[]inferencetest.Answer{{Raw: "ab", Logprob: "null"}}, 0, "the logprob of token 0 is NaN"},
		"minus infinity, vLLM's":       {[]inferencetest.Answer{{Raw: "ab", Logprob: "-9999.0"}}, 0, "the logprob of token 0 is -9999"},
		"minus infinity, llama.cpp's":  {[]inferencetest.Answer{{Raw: "ab", Logprob: "-3.4028234e38"}}, 0, "the logprob of token 0"},
		"a probability":                {[]inferencetest.Answer{{Raw: "ab", Logprob: "0.9"}}, 0, "the logprob of token 0 is 0.9"},
		"logprobs missing":             {[]inferencetest.Answer{{Raw: "abc", LogprobsMissing: 1}}, 0, "3 token ids, 2 logprobs"},
		"an error for a finish":        {[]inferencetest.Answer{{Raw: "ab", Finish: "error"}}, 0, `"error"`},
		"null for a finish":            {[]inferencetest.Answer{{Raw: "ab", Finish: "null"}}, 0, `""`},
		"a finish of another protocol": {[]inferencetest.Answer{{Raw: "ab", Finish: "tool_calls"}}, 0, `"tool_calls"`},
		"a filtered answer":            {[]inferencetest.Answer{{Raw: "", Finish: "content_filter"}}, 0, `"content_filter"`},
		"stop without a token":         {[]inferencetest.Answer{{}}, 0, `finish reason "stop" without a token`},
		"length before the length":     {[]inferencetest.Answer{{Raw: "ab", Finish: "length"}}, 0, "after 2 tokens of 20"},
		"a parser keeps ids back":      {[]inferencetest.Answer{{Raw: "abcdef", IDsMissing: 2, LogprobsMissing: 2}}, 0, "4 token ids, but the server counts 6"},
		"ids fewer than all else":      {[]inferencetest.Answer{{Raw: "abcdef", IDsMissing: 2}}, 0, "4 token ids, 6 logprobs"},
		"more by its own count":        {[]inferencetest.Answer{good}, 1, "11 token ids, but the server counts 12"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := answering(c.answers...)
				fake.Extra = c.extra
				_, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, request(1), turn())
				var spent *inference.SpentError
				if !errors.As(err, &spent) || spent.Attempts != 5 || !errors.Is(err, inference.ErrAnswer) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v; want it given up after 5 attempts with %q", err, c.want)
				}
				if n := len(fake.Asks()); n != 5 {
					t.Errorf("%d requests, want 5", n)
				}
			})
		})
	}
}

// One bad completion of a group does not cost the others.
func TestOneUnusableChoiceLeavesTheOthers(t *testing.T) {
	got, err := client(t, answering(inferencetest.Answer{Raw: "4<|im_end|>"}, inferencetest.Answer{Raw: "5", Finish: "error"}), inference.Config{}).
		Sample(t.Context(), endpoints, request(2), turn())
	if err != nil || got.Choices[0].Err != nil || !errors.Is(got.Choices[1].Err, inference.ErrAnswer) {
		t.Errorf("choices %+v, %v; want the second unusable", got.Choices, err)
	}
}

func TestAnAbortMayBeEmpty(t *testing.T) {
	got, err := client(t, answering(inferencetest.Answer{Finish: "abort"}), inference.Config{}).Sample(t.Context(), endpoints, request(1), turn())
	if err != nil || got.Choices[0].Finish != rollout.Aborted || got.Choices[0].Err != nil {
		t.Errorf("answer %+v, %v; want an abort", got, err)
	}
}

// A generation that is aborted without end is given up; tokens between begin anew.
func TestEndlessAbortsAreBounded(t *testing.T) {
	one := turn()
	for range 1000 {
		if err := one.Aborted(1); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for ; n < 1000; n++ {
		if err := one.Aborted(0); err != nil {
			break
		}
	}
	if n != 59 {
		t.Errorf("given up at the %d. abort without a token, want the 60.", n+1)
	}
}

// Every attempt bears an id of its own, so that a server which still works on the one
// before does not refuse it; and where it does, that passes.
func TestARetriedTurnIsNotTakenForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := answering(inferencetest.Answer{Raw: "2"})
		fake.Cut, fake.RunsOn = 2, 3*time.Second
		one := turn()
		if _, err := client(t, fake, inference.Config{}).Sample(t.Context(), endpoints, request(1), one); err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, a := range fake.Asks() {
			ids[a.RequestID] = true
		}
		if len(ids) != 3 || one.Attempts() != 3 {
			t.Errorf("%d ids in %d attempts, want 3 in 3", len(ids), one.Attempts())
		}
		if got := inference.ClassOf(&inference.StatusError{Status: 400, Message: `"Request id r already running"`}); got != inference.Trouble {
			t.Errorf("'already running' is %v, want trouble", got)
		}
	})
}

func TestClasses(t *testing.T) {
	for status, want := range map[int]inference.Class{
		400: inference.Refusal, 413: inference.Refusal, 422: inference.Refusal,
		401: inference.RefusalForAll, 403: inference.RefusalForAll, 404: inference.RefusalForAll, 405: inference.RefusalForAll,
		408: inference.Absent, 429: inference.Absent, 502: inference.Absent, 503: inference.Absent,
		500: inference.Trouble, 504: inference.Trouble, 418: inference.Trouble, 599: inference.Trouble,
	} {
		if got := inference.ClassOf(&inference.StatusError{Status: status}); got != want {
			t.Errorf("status %d is %v, want %v", status, got, want)
		}
	}
	for err, want := range map[error]inference.Class{
		errors.New("connection refused"):             inference.Absent,
		fmt.Errorf("x: %w", inference.ErrAnswer):     inference.Trouble,
		fmt.Errorf("x: %w", inference.ErrNoTokenIDs): inference.RefusalForAll,
	} {
		if got := inference.ClassOf(err); got != want {
			t.Errorf("%v is %v, want %v", err, got, want)
		}
	}
}

// One request is refused by a server that takes others: that ends this turn alone, at once.
func TestARefusalAmongGoodOnesIsTheRequestsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := answering(inferencetest.Answer{Raw: "2"})
		c := client(t, fake, inference.Config{Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
		if _, err := c.Sample(t.Context(), endpoints, request(1), turn()); err != nil {
			t.Fatal(err)
		}
		fake.Set(func(f *inferencetest.Fake) { f.Sampling, f.Message = 400, "maximum context length is 4" })
		begin := time.Now()
		_, err := c.Sample(t.Context(), endpoints, request(1), turn())
		var refused *inference.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "maximum context length is 4") || time.Since(begin) > 0 {
			t.Errorf("after %v: %v; want it refused at once, in the server's words", time.Since(begin), err)
		}
	})
}

// The first request of all is refused: it may be everybody, so it is tried for a while.
func TestALoneRefusalIsDoubtedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := answering(inferencetest.Answer{Raw: "2"})
		fake.Sampling = 400
		c := client(t, fake, inference.Config{Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
		begin := time.Now()
		_, err := c.Sample(t.Context(), endpoints, request(1), turn())
		var refused *inference.RefusedError
		if !errors.As(err, &refused) || time.Since(begin) < 10*time.Second || time.Since(begin) > time.Minute {
			t.Errorf("after %v: %v; want it refused after about 10 s", time.Since(begin), err)
		}
	})
}

// A server that refuses everybody, for whatever reason, ends the work within seconds and
// costs no prompt.
func TestTheSameRefusalForEverybodyIsFatal(t *testing.T) {
	for name, change := range map[string]func(*inferencetest.Fake){
		"an option that it was started without": func(f *inferencetest.Fake) { f.Sampling, f.Message = 400, "start with --enable-ids" },
		"a key":                                 func(f *inferencetest.Fake) { f.Sampling = 401 },
		"a path":                                func(f *inferencetest.Fake) { f.Sampling = 404 },
		"token ids": func(f *inferencetest.Fake) {
			f.Policy = func(inferencetest.Ask) []inferencetest.Answer {
				return []inferencetest.Answer{{Raw: "2", WithoutTokenIDs: true}}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var fatal []error
				fake := answering(inferencetest.Answer{Raw: "2"})
				c := client(t, fake, inference.Config{Fatal: func(err error) {
					mu.Lock()
					defer mu.Unlock()
					fatal = append(fatal, err)
				}})
				change(fake)
				begin := time.Now()
				var wg sync.WaitGroup
				for range 100 {
					wg.Go(func() {
						if _, err := c.Sample(t.Context(), endpoints, request(1), turn()); !errors.Is(err, inference.ErrStopping) {
							t.Errorf("a request ended with %v, want ErrStopping: it was not its fault", err)
						}
					})
				}
				wg.Wait()
				var f *inference.FatalError
				if len(fatal) != 1 || !errors.As(fatal[0], &f) || time.Since(begin) > 30*time.Second {
					t.Errorf("fatal %v after %v; want one within 30 s", fatal, time.Since(begin))
				}
			})
		})
	}
}

func TestAMinuteLongOutageIsWaitedForAndSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log bytes.Buffer
		var readiness []bool
		fake := answering(inferencetest.Answer{Raw: "2"})
		fake.Away = true
		c := client(t, fake, inference.Config{
			HTTP: fake.Client(), Log: slog.New(slog.NewTextHandler(&log, nil)),
			Away: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				readiness = append(readiness, err == nil)
				if err != nil && !strings.Contains(err.Error(), "http://fake/v1/ is away for") {
					t.Errorf("readiness %q does not name the server", err)
				}
			},
		})
		go func() {
			time.Sleep(40 * time.Second)
			fake.Set(func(f *inferencetest.Fake) { f.Away, f.Status = false, http.StatusServiceUnavailable })
			time.Sleep(20 * time.Second)
			fake.Set(func(f *inferencetest.Fake) { f.Status = 0 })
		}()
		var wg sync.WaitGroup
		for range 50 {
			one := turn()
			end := c.Begin(one)
			wg.Go(func() {
				defer end()
				if _, err := c.Sample(t.Context(), endpoints, request(1), one); err != nil {
					t.Error(err)
				}
				if one.Attempts() != 1 {
					t.Errorf("%d attempts that the server took on, want 1", one.Attempts())
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		if got := strings.Count(log.String(), "is away"); got != 1 {
			t.Errorf("%d lines say that the server is away, want 1:\n%s", got, &log)
		}
		if got := strings.Count(log.String(), "is back"); got != 1 {
			t.Errorf("%d lines say that the server is back, want 1:\n%s", got, &log)
		}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff([]bool{false, true}, readiness); diff != "" {
			t.Errorf("readiness (-want +got):\n%s", diff)
		}
	})
}

// A server takes connections and never answers: that shows within a minute, each attempt
// ends at its time-out, and the turn at its budget.
func TestAServerThatNeverAnswersShowsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := answering(inferencetest.Answer{Raw: "2"})
		var mu sync.Mutex
		var unready time.Time
		c := client(t, fake, inference.Config{
			RequestTimeout: 5 * time.Minute,
			Away: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if err != nil && unready.IsZero() {
					unready = time.Now()
				}
			},
		})
		if _, err := c.Check(t.Context(), endpoint); err != nil {
			t.Fatal(err)
		}
		fake.Set(func(f *inferencetest.Fake) { f.Hang = true })
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		one := turn()
		defer c.Begin(one)()
		_, err := c.Sample(ctx, endpoints, request(1), one)
		if err == nil {
			t.Error("an answer came")
		}
		mu.Lock()
		defer mu.Unlock()
		if took := unready.Sub(begin); unready.IsZero() || took > 90*time.Second {
			t.Errorf("not ready after %v, want within 90 s", took)
		}
		if one.Attempts() != 1 {
			t.Errorf("%d attempts at a server that is known to answer nothing, want 1", one.Attempts())
		}
	})
}

func TestAnotherServerIsUsedWhileOneIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead, alive := &inferencetest.Fake{Away: true}, answering(inferencetest.Answer{Raw: "2"})
		c := client(t, nil, inference.Config{HTTP: &http.Client{Transport: byHost{"dead": dead, "alive": alive}}})
		begin := time.Now()
		for range 20 {
			got, err := c.Sample(t.Context(), []inference.Endpoint{{URL: "http://dead"}, {URL: "http://alive"}}, request(1), turn())
			if err != nil || got.Endpoint.URL != "http://alive" {
				t.Fatalf("answer of %q, %v", got.Endpoint.URL, err)
			}
		}
		if time.Since(begin) > time.Second {
			t.Errorf("took %v: only the first should have met the server that is away", time.Since(begin))
		}
	})
}

// byHost sends each request to the fake of its host.
type byHost map[string]*inferencetest.Fake

func (b byHost) RoundTrip(req *http.Request) (*http.Response, error) {
	return b[req.URL.Host].RoundTrip(req)
}

func TestTokensInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := answering(inferencetest.Answer{Raw: "2"})
		fake.Latency = time.Second
		// A request weighs 4 tokens of prompt and 20 of answer.
		c := client(t, fake, inference.Config{TokensInFlight: 50})
		begin := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := c.Sample(t.Context(), endpoints, request(1), turn()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("10 requests of a second, two at a time, took %v", took)
		}
	})
}

func TestACancelledRequestEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := client(t, &inferencetest.Fake{Away: true}, inference.Config{})
		begin := time.Now()
		if _, err := c.Check(ctx, endpoint); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("Check ended after %v with %v", time.Since(begin), err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Sample(ctx, endpoints, request(1), turn()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Sample ended with %v", err)
		}
	})
}

// A stop does not wait for a server that is away.
func TestAStopEndsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c, err := inference.New(ctx, inference.Config{HTTP: (&inferencetest.Fake{Away: true}).Client()})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, stop)
		begin := time.Now()
		if _, err := c.Sample(t.Context(), endpoints, request(1), turn()); !errors.Is(err, inference.ErrStopping) || time.Since(begin) != time.Minute {
			t.Errorf("ended after %v with %v, want ErrStopping after a minute", time.Since(begin), err)
		}
	})
}

func TestCheckFindsTheModel(t *testing.T) {
	for name, c := range map[string]struct {
		served []string
		asked  string
		want   string
		err    error
	}{
		"the one named":          {[]string{"a", "b"}, "b", "b", nil},
		"the only one":           {[]string{"a"}, "", "a", nil},
		"not served":             {[]string{"a"}, "b", "", inference.ErrUnknownModel},
		"not named, and several": {[]string{"a", "b"}, "", "", inference.ErrUnknownModel},
		"none at all":            {[]string{}, "", "", inference.ErrUnknownModel},
	} {
		t.Run(name, func(t *testing.T) {
			fake := &inferencetest.Fake{Models: c.served}
			got, err := client(t, fake, inference.Config{Dialect: inference.DialectVLLM}).Check(t.Context(), inference.Endpoint{URL: "http://fake", Model: c.asked})
			if got.Model != c.want || !errors.Is(err, c.err) {
				t.Errorf("Check = %+v, %v; want model %q, error %v", got, err, c.want, c.err)
			}
		})
	}
}
