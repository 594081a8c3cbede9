package inference_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/inference/inferencetest"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

var endpoint = inference.Endpoint{URL: "http://fake/v1/", Model: "fake"}

func answering(answers ...inferencetest.Answer) *inferencetest.Fake {
	return &inferencetest.Fake{Policy: func(inferencetest.Ask) []inferencetest.Answer { return answers }}
}

func request(n int) inference.Request {
	return inference.Request{
		ID: "r", Prompt: rollouttest.Tokens("1+1="), N: n, MaxTokens: 20, Seed: math.MaxUint64,
		Temperature: 1, TopP: 1, StopTokenIDs: []uint32{7},
	}
}

func TestSampleSendsTokenIDsAndEveryParameter(t *testing.T) {
	fake := answering(inferencetest.Answer{Raw: "2<|im_end|>"}, inferencetest.Answer{Raw: "three, and so on and on and on"})
	v := inference.NewVLLM(inference.Config{HTTP: fake.Client()})
	got, err := v.Sample(t.Context(), endpoint, request(2))
	if err != nil {
		t.Fatal(err)
	}
	zero, one, none := 0.0, 1.0, 0
	want := []inferencetest.Ask{{
		Prompt: "1+1=", N: 2, MaxTokens: 20, TopK: -1, Seed: math.MaxInt64, Temperature: 1, TopP: 1, RequestID: "r", Model: "fake",
		ReturnTokenIDs: true, SkipSpecial: true, Logprobs: &none, MinP: &zero, RepetitionPenalty: &one,
		StopTokenIDs: []uint32{7}, PresencePenalty: &zero, FrequencyPenalty: &zero,
	}}
	if diff := cmp.Diff(want, fake.Asks()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(inference.Response{
		Prompt: rollouttest.Tokens("1+1="),
		Choices: []inference.Choice{
			{Tokens: rollouttest.Tokens("2<|im_end|>"), Text: "2", Finish: "stop", Logprobs: []float32{0, -0.125, -0.25, -0.375, -0.5, -0.625, -0.75, 0, -0.125, -0.25, -0.375}},
			{Tokens: rollouttest.Tokens("three, and so on and"), Text: "three, and so on and", Finish: "length", Logprobs: got.Choices[1].Logprobs},
		},
	}, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestVersionOfTheServerIsTakenWhereItIsSaid(t *testing.T) {
	version := uint32(7)
	fake := answering(inferencetest.Answer{Raw: "2"})
	fake.Version = &version
	got, err := inference.NewVLLM(inference.Config{HTTP: fake.Client()}).Sample(t.Context(), endpoint, request(1))
	if err != nil || !got.HasVersion || got.PolicyVersion != 7 {
		t.Errorf("version %d (%t), error %v; want 7", got.PolicyVersion, got.HasVersion, err)
	}
}

func TestAnswersThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		answers []inferencetest.Answer
		want    error
	}{
		"text without token ids":         {[]inferencetest.Answer{{Raw: "Pantom", WithoutTokenIDs: true}}, inference.ErrNoTokenIDs},
		"an end token without token ids": {[]inferencetest.Answer{{Raw: "<|im_end|>", WithoutTokenIDs: true}}, inference.ErrNoTokenIDs},
		"too few choices":                {nil, inference.ErrAnswer},
		"too many choices":               {[]inferencetest.Answer{{Raw: "1"}, {Raw: "2"}}, inference.ErrAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			v := inference.NewVLLM(inference.Config{HTTP: answering(c.answers...).Client()})
			if _, err := v.Sample(t.Context(), endpoint, request(1)); !errors.Is(err, c.want) {
				t.Errorf("error = %v, want %v", err, c.want)
			}
		})
	}
}

func TestMissingLogprobsAreLeftForTheCallerToSee(t *testing.T) {
	v := inference.NewVLLM(inference.Config{HTTP: answering(inferencetest.Answer{Raw: "four", LogprobsMissing: 1}, inferencetest.Answer{}).Client()})
	got, err := v.Sample(t.Context(), endpoint, request(2))
	if err != nil {
		t.Fatal(err)
	}
	if n, m := len(got.Choices[0].Tokens), len(got.Choices[0].Logprobs); n != 4 || m != 3 {
		t.Errorf("%d tokens, %d logprobs; want 4 and 3", n, m)
	}
	if c := got.Choices[1]; len(c.Tokens)+len(c.Logprobs) != 0 || c.Finish != "stop" {
		t.Errorf("empty completion read as %+v", c)
	}
}

// raw answers every request with one body.
type raw string

func (r raw) RoundTrip(req *http.Request) (*http.Response, error) {
	w := strings.NewReader(string(r))
	return &http.Response{StatusCode: 200, Body: readCloser{w}, Request: req, Header: http.Header{}}, nil
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func TestSampleReadsHostileAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want error
	}{
		"no JSON":               {"<html>", inference.ErrAnswer},
		"an index twice":        {`{"choices":[{"index":0,"token_ids":[1]},{"index":0,"token_ids":[1]}]}`, inference.ErrAnswer},
		"an index out of range": {`{"choices":[{"index":0,"token_ids":[1]},{"index":9,"token_ids":[1]}]}`, inference.ErrAnswer},
		"a negative token":      {`{"choices":[{"index":0,"token_ids":[-1]},{"index":1,"token_ids":[1]}]}`, inference.ErrAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			v := inference.NewVLLM(inference.Config{HTTP: &http.Client{Transport: raw(c.body)}})
			if _, err := v.Sample(t.Context(), endpoint, request(2)); !errors.Is(err, c.want) {
				t.Errorf("error = %v, want %v", err, c.want)
			}
		})
	}
	v := inference.NewVLLM(inference.Config{HTTP: &http.Client{Transport: raw(`{"choices":[{"index":1,"token_ids":[5],"text":"b","logprobs":{"token_logprobs":[null]}},{"index":0,"token_ids":[4],"text":"a"}]}`)}})
	got, err := v.Sample(t.Context(), endpoint, request(2))
	if err != nil {
		t.Fatal(err)
	}
	if got.Choices[0].Text != "a" || got.Choices[1].Text != "b" {
		t.Errorf("choices out of order: %+v", got.Choices)
	}
	if l := got.Choices[1].Logprobs; len(l) != 1 || !math.IsNaN(float64(l[0])) {
		t.Errorf("a logprob of null is read as %v, want NaN", l)
	}
}

func TestAMinuteLongOutageIsWaitedForAndSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var readiness []bool
		fake := answering(inferencetest.Answer{Raw: "2"})
		fake.Away = true
		v := inference.NewVLLM(inference.Config{
			HTTP: fake.Client(), Log: slog.New(slog.NewTextHandler(&log, nil)),
			Ready: func(err error) { readiness = append(readiness, err == nil) },
		})
		go func() {
			time.Sleep(40 * time.Second)
			fake.Set(func(f *inferencetest.Fake) { f.Away, f.Status = false, http.StatusServiceUnavailable })
			time.Sleep(20 * time.Second)
			fake.Set(func(f *inferencetest.Fake) { f.Status = 0 })
		}()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := v.Sample(t.Context(), endpoint, request(1)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := strings.Count(log.String(), "is away"); got != 1 {
			t.Errorf("%d lines say that the server is away, want 1:\n%s", got, &log)
		}
		if got := strings.Count(log.String(), "is back"); got != 1 {
			t.Errorf("%d lines say that the server is back, want 1:\n%s", got, &log)
		}
		if diff := cmp.Diff([]bool{false, true}, readiness); diff != "" {
			t.Errorf("readiness (-want +got):\n%s", diff)
		}
	})
}

func TestAnOutageWithoutEndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &inferencetest.Fake{Away: true}
		v := inference.NewVLLM(inference.Config{HTTP: fake.Client(), RetryFor: 3 * time.Minute})
		begin := time.Now()
		_, err := v.Check(t.Context(), endpoint)
		if took := time.Since(begin); !errors.Is(err, inferencetest.ErrRefused) || took < 2*time.Minute || took > 3*time.Minute {
			t.Errorf("failed after %v with %v; want the last error within 3 minutes", took, err)
		}
	})
}

func TestACancelledRequestEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		fake := &inferencetest.Fake{Away: true}
		v := inference.NewVLLM(inference.Config{HTTP: fake.Client()})
		begin := time.Now()
		if _, err := v.Check(ctx, endpoint); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("ended after %v with %v", time.Since(begin), err)
		}
	})
}

func TestRefusalsAreNotRetried(t *testing.T) {
	for status, refused := range map[int]bool{400: true, 413: true, 422: true, 401: false, 403: false, 404: false} {
		fake := &inferencetest.Fake{Status: status}
		_, err := inference.NewVLLM(inference.Config{HTTP: fake.Client()}).Sample(t.Context(), endpoint, request(1))
		var got *inference.StatusError
		if !errors.As(err, &got) || got.Status != status || got.Refused() != refused {
			t.Errorf("status %d: error %v, want a StatusError with Refused() = %t", status, err, refused)
		}
		if n := fake.Count("/v1/completions"); n != 1 {
			t.Errorf("status %d: %d attempts, want 1", status, n)
		}
	}
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
			got, err := inference.NewVLLM(inference.Config{HTTP: fake.Client()}).Check(t.Context(), inference.Endpoint{URL: "http://fake", Model: c.asked})
			if got.Model != c.want || !errors.Is(err, c.err) {
				t.Errorf("Check = %+v, %v; want model %q, error %v", got, err, c.want, c.err)
			}
		})
	}
}
