package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

// The wire types, so that callers import one package.
type (
	// Request is one program to run.
	Request = api.Request
	// Result is how it went.
	Result = api.Result
)

// ErrReservationLost occurs when the daemon no longer knows the reservation:
// it restarted, the connection that held it broke, or the slot ran nothing and was
// needed elsewhere. The program was not begun: Run it without a reservation.
var ErrReservationLost = errors.New("sandboxd: reservation lost")

// EndUnknownError occurs when a call was cut off after the daemon had been sent its
// program: it may have run, in part or to its end, and nobody can tell.
type EndUnknownError struct{ Err error }

func (e *EndUnknownError) Error() string {
	return "sandboxd: cut off, and whether the program ran is not known: " + e.Err.Error()
}

func (e *EndUnknownError) Unwrap() error { return e.Err }

// BusyError occurs when the daemon takes no call now: every slot is taken and
// the queue is full or too slow ("busy"), its circuit breaker is open
// ("tripped"), or it is starting or stopping. Trying again later may work.
type BusyError struct {
	Code       string
	Message    string
	RetryAfter time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("sandboxd: %s: %s (retry after %s)", e.Code, e.Message, e.RetryAfter)
}

// RequestError occurs when the daemon refuses the request itself.
type RequestError struct {
	Code    string
	Message string
}

func (e *RequestError) Error() string { return "sandboxd: " + e.Code + ": " + e.Message }

// Config says where the daemon is.
type Config struct {
	// Address is "unix:///path/to/socket", a bare absolute path, or
	// "http://host:port".
	Address string
	// TokenFile holds the token for TCP; unused on a unix socket.
	TokenFile string
	// Owner names whose calls and reservations these are: see api.Request.
	Owner string
	// Dial connects to Address instead of the network; tests set it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client calls one daemon. Make it with New; safe for concurrent use.
type Client struct {
	http  *http.Client
	base  string
	token string
	owner string
}

// New checks the address and reads the token. It does not connect: a daemon
// that is away at start is met by the first call.
func New(cfg Config) (*Client, error) {
	transport := &http.Transport{
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
	c := &Client{http: &http.Client{Transport: transport}, owner: cfg.Owner}
	path, isUnix := strings.CutPrefix(cfg.Address, "unix://")
	switch {
	case isUnix || strings.HasPrefix(cfg.Address, "/"):
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
		c.base = "http://sandboxd"
	case strings.HasPrefix(cfg.Address, "http://"):
		c.base = strings.TrimRight(cfg.Address, "/")
	default:
		return nil, fmt.Errorf("sandboxd address %q: want unix:///path, /path or http://host:port", cfg.Address)
	}
	if cfg.Dial != nil {
		transport.DialContext = cfg.Dial
	}
	if cfg.TokenFile != "" {
		token, err := os.ReadFile(cfg.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("read sandboxd token: %w", err)
		}
		c.token = strings.TrimSpace(string(token))
	}
	return c, nil
}

// Close drops idle connections. Calls in progress go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Run queues for a slot and runs one program. It returns an error only if nothing is
// known about the program, which has not begun unless it is an *EndUnknownError: see the
// package documentation.
func (c *Client) Run(ctx context.Context, req Request) (Result, error) {
	req.Owner = c.owner
	// JSON would carry another program: each invalid byte becomes U+FFFD.
	if !utf8.ValidString(req.Code) {
		return Result{}, &RequestError{Code: api.CodeBadRequest, Message: "the program is not valid UTF-8, and a changed one is not run"}
	}
	body, err := json.Marshal(req)
	if err != nil {
		return Result{}, fmt.Errorf("encode sandboxd request: %w", err)
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// The end of the body, behind which the daemon may begin.
		WroteRequest: func(i httptrace.WroteRequestInfo) { sent.Store(i.Err == nil) },
	})
	resp, err := c.post(ctx, "/v1/run", body)
	if err != nil && sent.Load() {
		return Result{}, &EndUnknownError{err}
	}
	if err != nil {
		return Result{}, err
	}
	defer drain(resp.Body)
	if resp.StatusCode != http.StatusOK {
		f, err := explain(resp)
		switch {
		case err != nil:
			return Result{}, &EndUnknownError{err}
		case f.Begun:
			return Result{}, &EndUnknownError{refusal(f)}
		}
		return Result{}, refusal(f)
	}
	var result Result
	if err := json.NewDecoder(resp.Body).Decode(&result); err != nil {
		return Result{}, &EndUnknownError{fmt.Errorf("read sandboxd result: %w", err)}
	}
	return result, nil
}

// Health asks how the daemon is. It answers also while the daemon is not ready.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/healthz", nil)
	if err != nil {
		return api.Health{}, err
	}
	c.authorize(req)
	resp, err := c.http.Do(req)
	if err != nil {
		return api.Health{}, fmt.Errorf("call sandboxd: %w", err)
	}
	defer drain(resp.Body)
	if resp.StatusCode == http.StatusUnauthorized {
		return api.Health{}, failure(resp)
	}
	var h api.Health
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
		return api.Health{}, fmt.Errorf("read sandboxd health: %w", err)
	}
	return h, nil
}

// Ready reports nil once the daemon has run a real program and takes calls.
func (c *Client) Ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/readyz", nil)
	if err != nil {
		return err
	}
	c.authorize(req)
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("call sandboxd: %w", err)
	}
	defer drain(resp.Body)
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return failure(resp)
	}
	var h api.Health
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
		return fmt.Errorf("read sandboxd readiness: %w", err)
	}
	return &BusyError{Code: h.Status, Message: h.Reason, RetryAfter: time.Second}
}

func (c *Client) post(ctx context.Context, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	c.authorize(req)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call sandboxd: %w", err)
	}
	return resp, nil
}

func (c *Client) authorize(req *http.Request) {
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
}

// errUnexplained: an answer was cut off, or is not our daemon's.
var errUnexplained = errors.New("sandboxd answered without a reason")

// explain reads an answer that is not 2xx.
func explain(resp *http.Response) (api.Failure, error) {
	var f api.Failure
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil || f.Code == "" {
		return api.Failure{}, fmt.Errorf("%w: %s", errUnexplained, resp.Status)
	}
	return f, nil
}

// failure turns an answer that is not 2xx into a typed error.
func failure(resp *http.Response) error {
	f, err := explain(resp)
	if err != nil {
		return err
	}
	return refusal(f)
}

// refusal is what a failure means to the caller.
func refusal(f api.Failure) error {
	switch f.Code {
	case api.CodeBusy, api.CodeTripped, api.CodeStopping, api.CodeStarting:
		return &BusyError{Code: f.Code, Message: f.Message, RetryAfter: time.Duration(f.RetryAfterMS) * time.Millisecond}
	case api.CodeUnknownReservation:
		return fmt.Errorf("%w: %s", ErrReservationLost, f.Message)
	}
	return &RequestError{Code: f.Code, Message: f.Message}
}

// drain empties a body so that its connection can be used again.
func drain(body io.ReadCloser) {
	_, _ = io.Copy(io.Discard, io.LimitReader(body, 64<<10))
	_ = body.Close()
}

// readLine reads the one line that opens a reservation's stream.
func readLine(body io.Reader) (api.Reserved, *bufio.Reader, error) {
	r := bufio.NewReader(body)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return api.Reserved{}, nil, fmt.Errorf("read sandboxd reservation: %w", err)
	}
	var got api.Reserved
	if err := json.Unmarshal(line, &got); err != nil {
		return api.Reserved{}, nil, fmt.Errorf("decode sandboxd reservation: %w", err)
	}
	return got, r, nil
}
