package inference

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// maxAnswer bounds what is read of one answer.
const maxAnswer = 256 << 20

// Config configures a VLLM. Zero values are useful.
type Config struct {
	// HTTP makes the requests. Nil: a client without a proxy, with connections enough
	// for MaxConnections requests in flight.
	HTTP           *http.Client
	MaxConnections int
	// RequestTimeout bounds one attempt. 0 means 10 min: a long generation on a busy
	// server takes minutes.
	RequestTimeout time.Duration
	// RetryFor is how long an outage is waited for before the request fails. 0 means
	// 10 min.
	RetryFor time.Duration
	// APIKey is sent as a bearer token, if there is one.
	APIKey string
	Log    *slog.Logger
	// Ready is told when the server goes away and when it is back. May be nil.
	Ready func(error)
}

// transport does requests, waits for outages and says so once.
type transport struct {
	cfg Config

	mu   sync.Mutex
	down time.Time // since when the server is away; zero while it is there
}

func newTransport(cfg Config) *transport {
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = 512
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Transport: &http.Transport{
			MaxIdleConns: cfg.MaxConnections, MaxIdleConnsPerHost: cfg.MaxConnections, IdleConnTimeout: time.Minute,
		}}
	}
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = 10 * time.Minute
	}
	if cfg.RetryFor == 0 {
		cfg.RetryFor = 10 * time.Minute
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Ready == nil {
		cfg.Ready = func(error) {}
	}
	return &transport{cfg: cfg}
}

// call does one request, in as many attempts as it takes. out may be nil.
func (t *transport) call(ctx context.Context, method, url string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval = 100 * time.Millisecond
	wait.MaxInterval = 5 * time.Second
	answer, err := backoff.Retry(ctx, func() ([]byte, error) {
		b, err := t.attempt(ctx, method, url, body)
		if err == nil {
			t.up(url)
			return b, nil
		}
		var status *StatusError
		if ctx.Err() != nil || errors.As(err, &status) && !status.passing() {
			return nil, backoff.Permanent(err)
		}
		return nil, err
	},
		backoff.WithBackOff(wait),
		backoff.WithMaxElapsedTime(t.cfg.RetryFor),
		backoff.WithNotify(func(err error, _ time.Duration) { t.away(url, err) }),
	)
	if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrAnswer, url, err)
	}
	return nil
}

func (t *transport) attempt(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.RequestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, backoff.Permanent(fmt.Errorf("inference url: %w", err))
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if t.cfg.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+t.cfg.APIKey)
	}
	resp, err := t.cfg.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("inference server: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("inference server: read answer: %w", err)
	}
	if len(answer) > maxAnswer {
		return nil, backoff.Permanent(fmt.Errorf("%w: more than %d bytes", ErrAnswer, maxAnswer))
	}
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(req.URL.Path, resp.StatusCode, answer)
	}
	return answer, nil
}

// away notes an outage; the first request to meet it says so.
func (t *transport) away(url string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.down.IsZero() {
		return
	}
	t.down = time.Now()
	t.cfg.Log.Warn("inference server is away: waiting for it", "url", url, "error", err)
	t.cfg.Ready(err)
}

func (t *transport) up(url string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.down.IsZero() {
		return
	}
	t.cfg.Log.Info("inference server is back", "url", url, "after", time.Since(t.down).Round(time.Millisecond))
	t.down = time.Time{}
	t.cfg.Ready(nil)
}

// join puts a path behind a base URL; the base may end in / or in /v1.
func join(base, path string) string {
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
	return base + path
}
