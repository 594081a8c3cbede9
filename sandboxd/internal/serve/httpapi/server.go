// Package httpapi speaks HTTP for the daemon.
//
//	POST /v1/run      api.Request  → api.Result
//	POST /v1/reserve  api.ReserveRequest, or no body
//	                               → a stream: one line of api.Reserved, then
//	                                 nothing until the reservation ends
//	GET  /healthz     api.Health, 200 while the daemon lives
//	GET  /readyz      api.Health, 200 only if calls are taken
//	GET  /metrics     Prometheus text
//
// Every other answer is an api.Failure. Promises: a client that goes away ends
// its call or its reservation; an answer never carries the daemon's own files
// or environment.
package httpapi

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/admission"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/metrics"
)

// Caller runs calls.
type Caller interface {
	Run(ctx context.Context, req api.Request) (api.Result, error)
	Reserve(ctx context.Context, owner, key string) (serve.Reserved, error)
}

// Config is what the handler needs.
type Config struct {
	Caller Caller
	// Health describes the daemon; ready says whether calls are taken.
	Health func() (h api.Health, ready bool)
	// RetryAfter estimates when a slot may be free.
	RetryAfter func() time.Duration
	Metrics    *metrics.Metrics
	// MaxBody bounds a request in bytes.
	MaxBody int64
	// BodyTime bounds the arrival of a request's body.
	BodyTime time.Duration
	Log      *slog.Logger
}

type handler struct{ Config }

// New returns the daemon's handler.
func New(cfg Config) http.Handler {
	h := &handler{cfg}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/run", h.run)
	mux.HandleFunc("POST /v1/reserve", h.reserve)
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("GET /readyz", h.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Metrics.Registry, promhttp.HandlerOpts{}))
	return mux
}

// WithToken lets only requests through that carry the token.
func WithToken(next http.Handler, token string) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			fail(w, http.StatusUnauthorized, api.Failure{Code: api.CodeUnauthorized,
				Message: "send the token of --token-file as `Authorization: Bearer …`"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h *handler) run(w http.ResponseWriter, r *http.Request) {
	body, ok := h.body(w, r, h.MaxBody)
	if !ok {
		return
	}
	req, err := decodeRequest(body)
	if err != nil {
		h.Metrics.Refused.WithLabelValues(api.CodeBadRequest).Inc()
		fail(w, http.StatusBadRequest, api.Failure{Code: api.CodeBadRequest, Message: "request is not a JSON object of the documented shape: " + err.Error()})
		return
	}
	if !h.takesCalls(w) {
		return
	}
	result, err := h.Caller.Run(r.Context(), req)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime))
	if err := json.NewEncoder(w).Encode(result); err != nil && r.Context().Err() == nil {
		h.Log.Warn("result could not be sent", "sandbox", result.SandboxID, "err", err)
	}
}

// body reads a request's body to its end, before the call begins: only then does
// net/http notice a client that goes away. ok is false if it was answered already.
func (h *handler) body(w http.ResponseWriter, r *http.Request, most int64) (body []byte, ok bool) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(h.BodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err == nil {
		_ = control.SetReadDeadline(time.Time{}) // a call may take longer
		return body, true
	}
	f, status := api.Failure{Code: api.CodeBadRequest, Message: "request could not be read: " + err.Error()}, http.StatusBadRequest
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		f.Message = fmt.Sprintf("request is larger than %d bytes: send a smaller program or raise --max-code", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		f.Message, status = fmt.Sprintf("request did not arrive within %s", h.BodyTime), http.StatusRequestTimeout
	}
	h.Metrics.Refused.WithLabelValues(f.Code).Inc()
	w.Header().Set("Connection", "close")
	fail(w, status, f)
	return nil, false
}

// answerTime bounds the writing of an answer to a client that does not read it.
const answerTime = 30 * time.Second

func (h *handler) reserve(w http.ResponseWriter, r *http.Request) {
	body, ok := h.body(w, r, 1<<10)
	if !ok {
		return
	}
	req, err := decodeReserve(body)
	if err != nil {
		h.Metrics.Refused.WithLabelValues(api.CodeBadRequest).Inc()
		fail(w, http.StatusBadRequest, api.Failure{Code: api.CodeBadRequest, Message: "request is neither empty nor a JSON object of the documented shape: " + err.Error()})
		return
	}
	if !h.takesCalls(w) {
		return
	}
	got, err := h.Caller.Reserve(r.Context(), req.Owner, req.Key)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	defer got.Release()
	w.Header().Set("Content-Type", "application/x-ndjson")
	first, err := json.Marshal(api.Reserved{Reservation: got.ID, WaitMS: float64(got.Waited.Microseconds()) / 1000})
	if err == nil {
		_, err = w.Write(append(first, '\n'))
	}
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err != nil {
		return
	}
	select {
	case <-r.Context().Done():
	case <-got.Lost: // the end of the stream tells it
	case <-got.Taken:
	}
}

// takesCalls answers and returns false until the daemon is ready.
func (h *handler) takesCalls(w http.ResponseWriter) bool {
	health, ready := h.Health()
	if ready || health.Status == "tripped" { // the service itself tells about the breaker
		return true
	}
	code := api.CodeStarting
	if health.Status == "stopping" {
		code = api.CodeStopping
	}
	h.Metrics.Refused.WithLabelValues(code).Inc()
	fail(w, http.StatusServiceUnavailable, api.Failure{Code: code, Message: health.Reason, RetryAfterMS: 1000})
	return false
}

// refuse turns the service's errors into answers.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), serve.ErrStopping) {
		h.Metrics.Refused.WithLabelValues("client_gone").Inc()
		return // nobody listens
	}
	var tripped *serve.TrippedError
	var invalid *serve.InvalidError
	f, status := api.Failure{Message: err.Error()}, http.StatusServiceUnavailable
	var begun *serve.BegunError
	f.Begun = errors.As(err, &begun)
	switch {
	case errors.Is(err, admission.ErrFull):
		f.Code, status, f.RetryAfterMS = api.CodeBusy, http.StatusTooManyRequests, h.RetryAfter().Milliseconds()
	case errors.Is(err, admission.ErrClosed), errors.Is(err, serve.ErrStopping), errors.Is(err, context.Canceled):
		f.Code, f.RetryAfterMS = api.CodeStopping, 1000
	case errors.As(err, &tripped):
		f.Code, f.RetryAfterMS = api.CodeTripped, tripped.RetryAfter.Milliseconds()
	case errors.As(err, &invalid):
		f.Code, status = api.CodeBadRequest, http.StatusBadRequest
	case errors.Is(err, serve.ErrReservationBusy), errors.Is(err, serve.ErrTakenOver):
		f.Code, status = api.CodeBadRequest, http.StatusConflict
	case errors.Is(err, serve.ErrUnknownReservation):
		f.Code, status = api.CodeUnknownReservation, http.StatusGone
	default:
		h.Log.Error("call failed", "err", err)
		f.Code, status = api.CodeStopping, http.StatusInternalServerError
		f.RetryAfterMS = 1000
	}
	h.Metrics.Refused.WithLabelValues(f.Code).Inc()
	fail(w, status, f)
}

func (h *handler) healthz(w http.ResponseWriter, _ *http.Request) {
	health, _ := h.Health()
	answer(w, http.StatusOK, health)
}

func (h *handler) readyz(w http.ResponseWriter, _ *http.Request) {
	health, ready := h.Health()
	if ready {
		answer(w, http.StatusOK, health)
		return
	}
	answer(w, http.StatusServiceUnavailable, health)
}

func fail(w http.ResponseWriter, status int, f api.Failure) {
	if f.RetryAfterMS > 0 {
		seconds := math.Ceil(float64(f.RetryAfterMS) / 1000)
		w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	answer(w, status, f)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone needs no answer
}
