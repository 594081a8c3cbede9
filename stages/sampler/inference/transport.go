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

// maxError bounds what is read of an answer of another status than 200.
const maxError = 64 << 10

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

func (t *transport) exchange(ctx context.Context, method, url string, body []byte) (answer []byte, err error) {
	err = t.open(ctx, method, url, body, func(ctx context.Context, resp *http.Response) error {
		answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
		if err != nil {
			return lost(ctx, err, true)
		}
		if len(answer) > maxAnswer {
			return fmt.Errorf("%w: more than %d bytes", ErrAnswer, maxAnswer)
		}
		return nil
	})
	return answer, err
}

// open makes one request and has the body of an answer of status 200 read.
func (t *transport) open(ctx context.Context, method, url string, body []byte, read func(context.Context, *http.Response) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.timeout, fmt.Errorf("no answer within %v", t.timeout))
	defer cancel()
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(w httptrace.WroteRequestInfo) { wrote.Store(w.Err == nil) },
	})
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: inference url: %w", ErrDialect, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if t.apiKey != "" {
		req.Header.Set("Authorization", "Bearer "+t.apiKey)
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return lost(ctx, err, wrote.Load())
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		answer, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
		if err != nil {
			return lost(ctx, err, true)
		}
		return statusError(req.URL.Path, resp.StatusCode, answer)
	}
	return read(ctx, resp)
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
