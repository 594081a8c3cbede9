package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/tokenizer"
)

// Version is what /version says: a stand-in must not pass for the real thing.
const Version = "simpolicy-1 (a stand-in for an inference server on a GPU)"

const (
	maxBody    = 32 << 20
	maxSamples = 1024
)

// Config is how the server behaves.
type Config struct {
	// Model is the name that requests may give.
	Model string
	// MaxModelLen bounds prompt and completion together, in tokens.
	MaxModelLen int
	// Latency is the mean wait before each sample, Jitter the most that a draw may
	// lie above or below it.
	Latency, Jitter time.Duration
	// AbortRate is the chance of each sample to be aborted, 0 to 1.
	AbortRate float64
	// Seed is for the server's own draws: seeds of requests without one, latency,
	// aborts.
	Seed uint64
}

// Validate refuses what makes no sense, naming the field.
func (c Config) Validate() error {
	switch {
	case c.Model == "":
		return errors.New("model name is empty")
	case c.MaxModelLen < 64:
		return fmt.Errorf("max model length is %d tokens, want at least 64", c.MaxModelLen)
	case c.Latency < 0 || c.Jitter < 0:
		return fmt.Errorf("latency %v, jitter %v: want 0 or more", c.Latency, c.Jitter)
	case !(c.AbortRate >= 0 && c.AbortRate <= 1):
		return fmt.Errorf("abort rate is %v, want 0 to 1", c.AbortRate)
	}
	return nil
}

// Snapshot is the policy at one version.
type Snapshot struct {
	Version    uint32
	Parameters policy.Parameters
}

// Server answers requests. Make it with New.
type Server struct {
	cfg     Config
	tok     *tokenizer.Tokenizer
	policy  *policy.Policy
	current func() Snapshot
	log     *slog.Logger
	metrics metrics
	started time.Time

	mu  sync.Mutex // guards own
	own *rand.Rand
}

// New builds a server. current gives the policy to sample from and may be called by
// many requests at once.
func New(cfg Config, tok *tokenizer.Tokenizer, pol *policy.Policy, current func() Snapshot, log *slog.Logger, reg prometheus.Registerer) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("inference server: %w", err)
	}
	s := &Server{
		cfg: cfg, tok: tok, policy: pol, current: current, log: log, started: time.Now(),
		own: rand.New(rand.NewPCG(cfg.Seed, 0x73696d70)),
	}
	if err := s.metrics.register(reg, current); err != nil {
		return nil, fmt.Errorf("inference server: %w", err)
	}
	return s, nil
}

// Handler is the server's routes.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/completions", s.answer("completions", s.completions))
	mux.HandleFunc("POST /tokenize", s.answer("tokenize", s.tokenize))
	mux.HandleFunc("POST /detokenize", s.answer("detokenize", s.detokenize))
	mux.HandleFunc("GET /v1/models", s.answer("models", s.models))
	mux.HandleFunc("GET /version", s.answer("version", func(*http.Request) (any, error) {
		return map[string]string{"version": Version}, nil
	}))
	mux.HandleFunc("GET /tokenizer_info", s.answer("tokenizer_info", s.tokenizerInfo))
	mux.HandleFunc("GET /weight_info", s.answer("weight_info", func(*http.Request) (any, error) {
		return map[string]string{"weight_version": fmt.Sprint(s.current().Version)}, nil
	}))
	mux.HandleFunc("GET /policy", s.answer("policy", s.describe))
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", s.answer("other", func(r *http.Request) (any, error) {
		return nil, &requestError{status: http.StatusNotFound, message: fmt.Sprintf("no route %s %q", r.Method, r.URL.Path)}
	}))
	return mux
}

// requestError is what is wrong with a request.
type requestError struct {
	status  int
	param   string
	message string
}

func (e *requestError) Error() string { return e.message }

func bad(param, format string, args ...any) error {
	return &requestError{status: http.StatusBadRequest, param: param, message: fmt.Sprintf(format, args...)}
}

// answer writes what a handler returns as JSON.
func (s *Server) answer(route string, f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		body, err := f(r)
		status := http.StatusOK
		if err != nil {
			status, body = s.failure(r, err)
		}
		if st, ok := body.(*stream); ok {
			if err := st.write(w, r); err != nil {
				s.log.Debug("stream broke off", "route", route, "error", err)
			}
			s.metrics.request(route, status, time.Since(began))
			return
		}
		s.metrics.request(route, status, time.Since(began))
		b, err := json.Marshal(body)
		if err != nil {
			s.log.Error("answer cannot be written as JSON", "route", route, "error", err)
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if _, err := w.Write(append(b, '\n')); err != nil {
			s.log.Debug("client went away", "route", route, "error", err)
		}
	}
}

// errorBody is vLLM's form of an error.
type errorBody struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	} `json:"error"`
}

func (s *Server) failure(r *http.Request, err error) (int, any) {
	e := &requestError{status: http.StatusInternalServerError, message: "internal error"}
	switch {
	case errors.As(err, &e):
	case errors.Is(err, policy.ErrRequest):
		e = &requestError{status: http.StatusBadRequest, message: err.Error()}
	case r.Context().Err() != nil:
		e = &requestError{status: 499, message: "the client went away"}
	default:
		s.log.Error("request failed", "route", r.URL.Path, "error", err)
	}
	var b errorBody
	b.Error.Message, b.Error.Code = e.message, e.status
	switch {
	case e.status == http.StatusNotFound:
		b.Error.Type = "NotFoundError"
	case e.status >= 500:
		b.Error.Type = "InternalServerError"
	default:
		b.Error.Type = "BadRequestError"
	}
	if e.param != "" {
		b.Error.Param = &e.param
	}
	return e.status, b
}

// decode reads a JSON body.
func decode(r *http.Request, into any) error {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return bad("", "the body could not be read: %v", err)
	}
	if len(b) > maxBody {
		return &requestError{status: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("the body is over %d bytes", maxBody)}
	}
	if err := json.Unmarshal(b, into); err != nil {
		var own *requestError
		if errors.As(err, &own) {
			return own
		}
		var type_ *json.UnmarshalTypeError
		if errors.As(err, &type_) {
			return bad(type_.Field, "field %q cannot be a JSON %s", type_.Field, type_.Value)
		}
		return bad("", "the body is not the JSON expected: %v", err)
	}
	return nil
}

func (s *Server) checkModel(name string) error {
	if name != "" && name != s.cfg.Model {
		return &requestError{status: http.StatusNotFound, param: "model", message: fmt.Sprintf("the model %q does not exist: this server has %q", clip(name), s.cfg.Model)}
	}
	return nil
}

func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "..."
	}
	return s
}

// ownSeed draws a seed from the server's stream.
func (s *Server) ownSeed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own.Uint64()
}

func (s *Server) ownFloat() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own.Float64()
}
