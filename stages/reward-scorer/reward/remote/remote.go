package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

var (
	// ErrConfig is wrapped when a Config cannot be used.
	ErrConfig = errors.New("remote reward: bad configuration")
	// ErrRequest is wrapped when no usable answer came after all attempts.
	ErrRequest = errors.New("remote reward: the request failed")
	// ErrNoReward is wrapped when the verifier answered null for a trajectory.
	ErrNoReward = errors.New("remote reward: the verifier gave no reward")
)

// Config says whom to ask and how long.
type Config struct {
	// URL is http or https.
	URL string
	// Timeout of one attempt; 10 s if 0.
	Timeout time.Duration
	// Attempts in all; 3 if 0.
	Attempts int
	// Batch is the largest number of trajectories per request; 64 if 0.
	Batch int
	// Token, if set, is sent as a bearer token. It comes from a file or the
	// environment, never from the configuration itself.
	Token string
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Attempts == 0 {
		c.Attempts = 3
	}
	if c.Batch == 0 {
		c.Batch = 64
	}
	return c
}

// Validate says which field cannot be used.
func (c Config) Validate() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		// Neither the URL nor what is wrong with it is told: in one that cannot be read, a
		// password may stand anywhere.
		return fmt.Errorf("%w: url cannot be used; want http://HOST/… or https://HOST/…", ErrConfig)
	case u.User != nil:
		return fmt.Errorf("%w: url holds a password; use a token file", ErrConfig)
	case c.Timeout < 0 || c.Timeout > 10*time.Minute:
		return fmt.Errorf("%w: timeout is %v; want up to 10m", ErrConfig, c.Timeout)
	case c.Attempts < 0 || c.Attempts > 10:
		return fmt.Errorf("%w: attempts is %d; want 1 to 10", ErrConfig, c.Attempts)
	case c.Batch < 0 || c.Batch > 1024:
		return fmt.Errorf("%w: batch is %d; want 1 to 1024", ErrConfig, c.Batch)
	}
	return nil
}

// maxAnswer bounds the verifier's answer in bytes.
const maxAnswer = 1 << 20

// Logic implements reward.Batcher.
type Logic struct {
	config    Config
	name      string // of the verifier, in errors
	transport http.RoundTripper
}

// New makes a Logic. Proxies and TLS are the transport's affair.
func New(c Config, transport http.RoundTripper) (*Logic, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if transport == nil {
		return nil, fmt.Errorf("%w: no HTTP transport", ErrConfig)
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: url cannot be used", ErrConfig) // Validate has read it
	}
	return &Logic{config: c.withDefaults(), name: nameOf(u), transport: transport}, nil
}

// nameOf is what errors, which get into logs and tables, may say of a URL: query, fragment
// and user may be secrets.
func nameOf(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

type trajectory struct {
	FinalText       string `json:"final_text"`
	Answer          string `json:"answer"`
	Reference       string `json:"reference"`
	Correct         bool   `json:"correct"`
	ValidFormat     bool   `json:"valid_format"`
	Verdict         string `json:"verdict"`
	EndReason       string `json:"end_reason"`
	DataSource      string `json:"data_source"`
	QuestionID      string `json:"question_id"`
	CodeCalls       int    `json:"code_calls"`
	CodeErrors      int    `json:"code_errors"`
	Executions      int    `json:"executions"`
	FirstCallFailed bool   `json:"first_call_failed"`
	Turns           int    `json:"turns"`
	Tokens          int    `json:"tokens"`
	Truncated       bool   `json:"truncated"`
}

type request struct {
	Trajectories []trajectory `json:"trajectories"`
}

type answer struct {
	Rewards []*float64 `json:"rewards"`
}

// Batch implements reward.Batcher.
func (l *Logic) Batch() int { return l.config.Batch }

// Pay implements reward.Logic. A batch that fails leaves only its own
// trajectories without a reward.
func (l *Logic) Pay(ctx context.Context, judged []reward.Judged) []reward.Payment {
	paid := make([]reward.Payment, 0, len(judged))
	for len(judged) > 0 {
		n := min(l.config.Batch, len(judged))
		paid = append(paid, l.batch(ctx, judged[:n])...)
		judged = judged[n:]
	}
	return paid
}

func (l *Logic) batch(ctx context.Context, judged []reward.Judged) []reward.Payment {
	paid := make([]reward.Payment, len(judged))
	fail := func(err error) []reward.Payment {
		for i := range paid {
			paid[i] = reward.Payment{Err: err}
		}
		return paid
	}
	req := request{Trajectories: make([]trajectory, len(judged))}
	for i, j := range judged {
		req.Trajectories[i] = trajectory{
			FinalText: j.FinalText, Answer: j.Answer, Reference: j.Reference, Correct: j.Correct, ValidFormat: j.ValidFormat,
			Verdict: string(j.Verdict.Outcome), EndReason: schemas.EnumText(j.EndReason), DataSource: j.DataSource, QuestionID: j.QuestionID,
			CodeCalls: j.CodeCalls, CodeErrors: j.CodeErrors, Executions: j.Executions, FirstCallFailed: j.FirstCallFailed,
			Turns: j.Turns, Tokens: j.Tokens, Truncated: j.Truncated,
		}
	}
	body, err := json.Marshal(req)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrRequest, err))
	}
	rewards, err := backoff.Retry(ctx, func() ([]*float64, error) { return l.attempt(ctx, body, len(judged)) },
		backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxTries(uint(l.config.Attempts)))
	if err != nil {
		return fail(fmt.Errorf("%w: %s: %w", ErrRequest, l.name, err))
	}
	for i, r := range rewards {
		if r == nil {
			paid[i].Err = ErrNoReward
		} else {
			paid[i].Reward = *r
		}
	}
	return paid
}

// attempt sends the request once. Errors that another attempt cannot mend are
// permanent.
func (l *Logic) attempt(ctx context.Context, body []byte, want int) ([]*float64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.config.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.config.URL, bytes.NewReader(body))
	if err != nil {
		return nil, backoff.Permanent(errors.New("no request can be made of it")) // err has all of the URL
	}
	req.Header.Set("Content-Type", "application/json")
	if l.config.Token != "" {
		req.Header.Set("Authorization", "Bearer "+l.config.Token)
	}
	// Not by an http.Client, which would follow a redirect (a POST as a GET, too), and whose
	// errors repeat the whole URL.
	res, err := l.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the answer: %w", err)
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return nil, backoff.Permanent(fmt.Errorf("status %d, a redirect%s, which is not followed", res.StatusCode, target(res)))
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500:
		return nil, fmt.Errorf("status %d: %q", res.StatusCode, clip(text))
	case res.StatusCode != http.StatusOK:
		return nil, backoff.Permanent(fmt.Errorf("status %d: %q", res.StatusCode, clip(text)))
	case len(text) > maxAnswer:
		return nil, backoff.Permanent(fmt.Errorf("the answer is larger than %d bytes", maxAnswer))
	}
	var a answer
	if err := singleKeys(text); err != nil {
		return nil, backoff.Permanent(fmt.Errorf("the answer is no JSON of the agreed form: %w", err))
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, backoff.Permanent(fmt.Errorf("the answer is no JSON of the agreed form: %w", err))
	}
	if len(a.Rewards) != want {
		return nil, backoff.Permanent(fmt.Errorf("the answer has %d rewards for %d trajectories", len(a.Rewards), want))
	}
	return a.Rewards, nil
}

// singleKeys refuses objects that give a key twice, also in another case: which of the
// two is meant cannot be known, and the JSON library takes the last.
func singleKeys(text []byte) error {
	type level struct {
		keys  map[string]bool // nil in an array
		value bool            // a value is next, not a key
	}
	var open []level
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		in := len(open) - 1
		if t == json.Delim('}') || t == json.Delim(']') {
			open = open[:in]
			continue
		}
		if in >= 0 && open[in].keys != nil {
			if open[in].value = !open[in].value; open[in].value {
				key, _ := t.(string)
				if key = strings.ToLower(key); open[in].keys[key] {
					return fmt.Errorf("the key %.40q is given twice", key)
				}
				open[in].keys[key] = true
				continue
			}
		}
		switch t {
		case json.Delim('{'):
			open = append(open, level{keys: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		}
	}
}

// target is where a redirect goes to, if it says so.
func target(res *http.Response) string {
	to, err := res.Location()
	if err != nil {
		return ""
	}
	return " to " + nameOf(to)
}

func clip(text []byte) []byte { return text[:min(len(text), 200)] }
