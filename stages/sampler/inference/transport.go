package inference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// maxAnswer bounds what is read of one answer.
const maxAnswer = 256 << 20

// transport makes single HTTP requests.
type transport struct {
	http   *http.Client
	apiKey string
	// timeout bounds one request.
	timeout time.Duration
}

// call makes one request. out may be nil.
func (t *transport) call(ctx context.Context, method, url string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("%w: encode request: %w", ErrAnswer, err)
		}
	}
	answer, err := t.exchange(ctx, method, url, body)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrAnswer, url, err)
	}
	return nil
}

func (t *transport) exchange(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.timeout, fmt.Errorf("no answer within %v", t.timeout))
	defer cancel()
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(w httptrace.WroteRequestInfo) { wrote.Store(w.Err == nil) },
	})
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: inference url: %w", ErrDialect, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if t.apiKey != "" {
		req.Header.Set("Authorization", "Bearer "+t.apiKey)
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return nil, lost(ctx, err, wrote.Load())
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, lost(ctx, err, true)
	}
	if len(answer) > maxAnswer {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrAnswer, maxAnswer)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(req.URL.Path, resp.StatusCode, answer)
	}
	return answer, nil
}

// lost says why there is no answer, and whether the server had the request.
func lost(ctx context.Context, err error, wrote bool) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		err = cause
	}
	if wrote {
		return fmt.Errorf("inference server: %w: %w", errTakenOn, err)
	}
	return fmt.Errorf("inference server: %w", err)
}

// join puts a path behind a base URL; the base may end in / or in /v1.
func join(base, path string) string {
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
	return base + path
}
