package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// server answers /healthz, /readyz and /metrics.
type server struct {
	http     *http.Server
	listener net.Listener
	done     chan struct{}
	stop     sync.Once
}

func startServer(addr string, gatherer prometheus.Gatherer, h *Health, log *slog.Logger) (*server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, Usage(fmt.Errorf("--http-addr: %w", err))
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, h, true) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, h, false) })
	s := &server{
		http:     &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute},
		listener: l, done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("http server ended", "error", err)
		}
	}()
	return s, nil
}

func answer(w http.ResponseWriter, h *Health, live bool) {
	ok, parts := h.report(live)
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
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.http.Shutdown(ctx) != nil {
			_ = s.http.Close()
		}
	})
	<-s.done
}

// readyFile tells whoever started the process where it listens.
type readyFile struct {
	path, http string
	log        *slog.Logger
}

func (f *readyFile) write() {
	f.log.Info("ready", "http", f.http)
	if f.path == "" {
		return
	}
	if err := f.writeAtomically(); err != nil {
		f.log.Error("cannot write --ready-file", "path", f.path, "error", err)
	}
}

func (f *readyFile) writeAtomically() error {
	b, err := json.Marshal(map[string]any{"pid": os.Getpid(), "http": f.http})
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(b, '\n'))
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), f.path)
}

func (f *readyFile) remove() {
	if f.path != "" {
		_ = os.Remove(f.path)
	}
}
