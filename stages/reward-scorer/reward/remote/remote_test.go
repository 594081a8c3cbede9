package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
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
	l, err := New(c, v)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func judged(answers ...string) []reward.Judged {
	var out []reward.Judged
	for _, a := range answers {
		out = append(out, reward.Judged{Input: reward.Input{Reference: "7", Turns: 2, EndReason: sluicev1.EndReason_END_REASON_ANSWER}, Answer: a, ValidFormat: true})
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

// Errors get into logs, metrics and tables.
func TestErrorsTellNoSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		says   string
	}{
		"no connection": {func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }, "connection refused"},
		"status 404":    {func(*http.Request) (*http.Response, error) { return reply(404, "where"), nil }, `status 404: "where"`},
		"another host": {func(r *http.Request) (*http.Response, error) {
			return redirect(r, 302, "https://u:s3cret@other.test/login?key=s3cret#s3cret"), nil
		}, "status 302, a redirect to https://other.test/login, which is not followed"},
		"the same host":    {func(r *http.Request) (*http.Response, error) { return redirect(r, 307, "/v2?key=s3cret"), nil }, "status 307, a redirect to http://verifier.test/v2, which"},
		"no Location":      {func(r *http.Request) (*http.Response, error) { return redirect(r, 301, ""), nil }, "status 301, a redirect, which"},
		"unreadable place": {func(r *http.Request) (*http.Response, error) { return redirect(r, 308, "http://x:s3cret/%zz"), nil }, "status 308, a redirect, which"},
	} {
		requests := 0
		l, err := New(Config{URL: "http://verifier.test/score?key=s3cret#s3cret", Attempts: 1, Token: "s3cret"}, verifier(func(r *http.Request) (*http.Response, error) {
			if requests++; r.URL.RawQuery != "key=s3cret" {
				t.Errorf("%s: asked with the query %q", name, r.URL.RawQuery)
			}
			return tc.answer(r)
		}))
		if err != nil {
			t.Fatal(err)
		}
		paid := l.Pay(t.Context(), judged("a"))[0]
		if !errors.Is(paid.Err, ErrRequest) || !strings.Contains(paid.Err.Error(), "http://verifier.test/score: "+tc.says) || strings.Contains(paid.Err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want the verifier without its query, and %q", name, paid.Err, tc.says)
		}
		if requests != 1 {
			t.Errorf("%s: %d requests, want 1", name, requests)
		}
	}
}

func redirect(r *http.Request, status int, to string) *http.Response {
	res := reply(status, "")
	res.Request = r
	if to != "" {
		res.Header.Set("Location", to)
	}
	return res
}

// Over a real connection, where an http.Client would follow.
func TestARedirectIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var asked []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method+" "+r.URL.Path)
			if r.URL.Path == "/score" {
				http.Redirect(w, r, "/elsewhere", status)
				return
			}
			fmt.Fprint(w, `{"rewards":[1]}`)
		}))
		transport := &http.Transport{}
		l, err := New(Config{URL: server.URL + "/score"}, transport)
		if err != nil {
			t.Fatal(err)
		}
		paid := l.Pay(t.Context(), judged("a"))[0]
		transport.CloseIdleConnections()
		server.Close() // waits for the handler
		if says := fmt.Sprintf("status %d, a redirect to %s/elsewhere", status, server.URL); paid.Err == nil || !strings.Contains(paid.Err.Error(), says) {
			t.Errorf("got %+v, want %q", paid, says)
		}
		if len(asked) != 1 || asked[0] != "POST /score" {
			t.Errorf("status %d: asked %v, want one POST", status, asked)
		}
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
		if _, err := New(c, http.DefaultTransport); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if _, err := New(Config{URL: "http://x"}, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("no transport: got %v", err)
	}
}

func TestAnswersThatGiveAKeyTwiceAreRefused(t *testing.T) {
	for _, body := range []string{`{"rewards":[1],"rewards":[-1]}`, `{"rewards":[1],"Rewards":[-1]}`, `{"rewards":[1],"more":{"a":1,"a":2}}`, `{"rewards":[1],"more":[{"a":[]},{"b":{},"B":3}]}`} {
		l := logic(t, Config{Attempts: 1}, func(*http.Request) (*http.Response, error) { return reply(200, body), nil })
		if paid := l.Pay(context.Background(), judged("a")); paid[0].Err == nil || !strings.Contains(paid[0].Err.Error(), "given twice") {
			t.Errorf("%s: got %+v", body, paid)
		}
	}
	l := logic(t, Config{}, func(*http.Request) (*http.Response, error) {
		return reply(200, `{"rewards":[1],"more":[{"a":"a"},{"a":{"a":null}}]}`), nil
	})
	if paid := l.Pay(context.Background(), judged("a")); paid[0].Err != nil || paid[0].Reward != 1 {
		t.Errorf("equal keys of different objects: got %+v", paid)
	}
}
