package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-rl/sluice/stages/internal/reward"
)

// verifier is an HTTP server in memory: it answers every request by a function.
type verifier func(*http.Request) (*http.Response, error)

func (v verifier) RoundTrip(r *http.Request) (*http.Response, error) { return v(r) }

func reply(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}
}

func logic(t *testing.T, c Config, v verifier) *Logic {
	t.Helper()
	c.URL = "http://verifier.test/score"
	l, err := New(c, &http.Client{Transport: v})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func judged(answers ...string) []reward.Judged {
	var out []reward.Judged
	for _, a := range answers {
		out = append(out, reward.Judged{Input: reward.Input{Reference: "7", Turns: 2}, End: reward.Answer, Answer: a, ValidFormat: true})
	}
	return out
}

func TestRewardsComeInOrderAndNullIsNoReward(t *testing.T) {
	var sent request
	l := logic(t, Config{Token: "secret"}, func(r *http.Request) (*http.Response, error) {
		if got := r.Header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("Authorization is %q", got)
		}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		return reply(200, `{"rewards": [0.5, null, -1]}`), nil
	})
	paid := l.Pay(context.Background(), judged("a", "b", "c"))
	if paid[0] != (reward.Payment{Reward: 0.5}) || !errors.Is(paid[1].Err, ErrNoReward) || paid[2] != (reward.Payment{Reward: -1}) {
		t.Errorf("got %+v", paid)
	}
	if len(sent.Trajectories) != 3 || sent.Trajectories[1].Answer != "b" || sent.Trajectories[1].EndReason != "answer" || sent.Trajectories[1].Turns != 2 {
		t.Errorf("sent %+v", sent)
	}
}

func TestBatchesFailAlone(t *testing.T) {
	requests := 0
	l := logic(t, Config{Batch: 2}, func(r *http.Request) (*http.Response, error) {
		requests++
		var in request
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		if in.Trajectories[0].Answer == "c" {
			return reply(400, "no"), nil
		}
		return reply(200, `{"rewards": [`+strings.TrimSuffix(strings.Repeat("1,", len(in.Trajectories)), ",")+`]}`), nil
	})
	paid := l.Pay(context.Background(), judged("a", "b", "c", "d", "e"))
	for i, want := range []bool{true, true, false, false, true} {
		if (paid[i].Err == nil) != want || !want && paid[i].Reward != 0 {
			t.Errorf("payment %d is %+v", i, paid[i])
		}
	}
	if requests != 3 {
		t.Errorf("%d requests, want 3: 400 is not tried again", requests)
	}
}

func TestWhatIsTriedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		first    func() (*http.Response, error)
		requests int
		paid     bool
	}{
		"status 500":      {func() (*http.Response, error) { return reply(500, "boom"), nil }, 2, true},
		"status 429":      {func() (*http.Response, error) { return reply(429, "later"), nil }, 2, true},
		"broken pipe":     {func() (*http.Response, error) { return nil, errors.New("broken pipe") }, 2, true},
		"status 404":      {func() (*http.Response, error) { return reply(404, "where"), nil }, 1, false},
		"not JSON":        {func() (*http.Response, error) { return reply(200, "<html>"), nil }, 1, false},
		"too few rewards": {func() (*http.Response, error) { return reply(200, `{"rewards":[]}`), nil }, 1, false},
		"too long":        {func() (*http.Response, error) { return reply(200, strings.Repeat(" ", maxAnswer+2)), nil }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				l := logic(t, Config{}, func(*http.Request) (*http.Response, error) {
					if requests++; requests == 1 {
						return tc.first()
					}
					return reply(200, `{"rewards":[1]}`), nil
				})
				paid := l.Pay(t.Context(), judged("a"))[0]
				if requests != tc.requests || (paid.Err == nil) != tc.paid {
					t.Errorf("%d requests, %+v; want %d, paid %v", requests, paid, tc.requests, tc.paid)
				}
				if !tc.paid && !errors.Is(paid.Err, ErrRequest) {
					t.Errorf("got %v, want ErrRequest", paid.Err)
				}
			})
		})
	}
}

func TestAttemptsAndTimeAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		l := logic(t, Config{Timeout: time.Second, Attempts: 3}, func(r *http.Request) (*http.Response, error) {
			requests++
			<-r.Context().Done() // never answers
			return nil, fmt.Errorf("gave up: %w", r.Context().Err())
		})
		start := time.Now()
		paid := l.Pay(t.Context(), judged("a"))[0]
		if !errors.Is(paid.Err, ErrRequest) || requests != 3 {
			t.Errorf("%d requests, %+v; want 3 and ErrRequest", requests, paid)
		}
		if took := time.Since(start); took < 3*time.Second || took > 10*time.Second {
			t.Errorf("took %v of virtual time, want three time-outs of 1s and short pauses", took)
		}
	})
}

func TestConfigNamesTheField(t *testing.T) {
	for field, c := range map[string]Config{
		"url": {URL: "ftp://x"}, "password": {URL: "http://a:b@host/"}, "timeout": {URL: "http://x", Timeout: time.Hour},
		"attempts": {URL: "http://x", Attempts: 99}, "batch": {URL: "http://x", Batch: -1},
	} {
		if _, err := New(c, http.DefaultClient); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if _, err := New(Config{URL: "http://x"}, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("no client: got %v", err)
	}
}
