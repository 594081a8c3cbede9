package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// drain is how long requests in flight may take to end when the server stops.
const drain = 5 * time.Second

// server answers /healthz, /readyz, /metrics and what else is put into its mux.
type server struct {
	mux      *http.ServeMux
	http     *http.Server
	listener net.Listener
	done     chan struct{}
	stop     sync.Once
}

// startServer serves until Stop; failed is told if it cannot any more.
func startServer(addr string, gatherer prometheus.Gatherer, h *Health, failed func(error)) (*server, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--http-addr: %w", err) // another start may find it free
	}
	if err != nil {
		return nil, Usage(fmt.Errorf("--http-addr: %w", err))
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	// That it answers is all there is to say: what is wrong beyond that, /readyz says,
	// and a restart would not help.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, true, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ok, parts := h.report()
		answer(w, ok, parts)
	})
	s := &server{
		mux:      mux,
		http:     &http.Server{Handler: unlessStarting(mux, h), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute},
		listener: l, done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed(fmt.Errorf("http server: %w", err))
		}
	}()
	return s, nil
}

// unlessStarting answers 503 where there is no handler yet: a 404 would say that there is
// never one.
func unlessStarting(mux *http.ServeMux, h *Health) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" && !h.begun() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, ok bool, parts []part) {
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"ok": ok, "parts": parts})
}

// Addr is where the server listens, host:port.
func (s *server) Addr() string { return s.listener.Addr().String() }

// Stop ends the server and returns when it has ended. It may be called again.
func (s *server) Stop() {
	s.stop.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		if s.http.Shutdown(ctx) != nil {
			_ = s.http.Close()
		}
	})
	<-s.done
}
