package ui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/sluice-rl/sluice/topology/sluice/ui/ask"
	"github.com/sluice-rl/sluice/topology/sluice/ui/guard"
	"github.com/sluice-rl/sluice/topology/sluice/ui/live"
)

// Config of the pages.
type Config struct {
	// Listener is where they are served.
	Listener net.Listener
	// Hosts are further names that they are opened under.
	Hosts []string
	// Token is asked of everybody; empty: of nobody.
	Token string
	// Ask is ClickHouse.
	Ask *ask.Asker
	// Live is Kafka; nil where the pages are without.
	Live *live.Watch
	// Words gives the text of tokens; nil where nobody knows it.
	Words   Words
	Version string
	Log     *slog.Logger
}

// Words gives the text of tokens.
type Words interface {
	// Words has no entry for a token whose text is not known.
	Words(ctx context.Context, ids []uint32) map[uint32]string
}

// ErrToken occurs where others than this machine could read the pages without a token.
var ErrToken = errors.New("pages beyond loopback need a token")

type server struct {
	Config
	assets *assets
}

// Serve serves the pages until the context ends.
func Serve(ctx context.Context, cfg Config) error {
	h, err := Handler(cfg)
	if err != nil {
		return err
	}
	s := &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 90 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(cfg.Listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the pages: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if s.Shutdown(drain) != nil {
		_ = s.Close()
	}
	return nil
}

// Handler answers requests for the pages.
func Handler(cfg Config) (http.Handler, error) {
	address := cfg.Listener.Addr().String()
	if host, _, err := net.SplitHostPort(address); cfg.Token == "" && (err != nil || !guard.Loopback(host)) {
		return nil, fmt.Errorf("%w: %s: give one, or listen on 127.0.0.1", ErrToken, address)
	}
	a, err := loadAssets()
	if err != nil {
		return nil, err
	}
	s := &server{cfg, a}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/", a.file)
	mux.HandleFunc("GET /api/about", s.about)
	mux.HandleFunc("GET /api/q/{name}", s.question)
	mux.HandleFunc("POST /api/sql", s.statement)
	mux.HandleFunc("GET /api/live", s.live)
	mux.HandleFunc("GET /api/record", s.record)
	mux.HandleFunc("GET /api/words", s.words)
	mux.HandleFunc("GET /api/", http.NotFound)
	mux.HandleFunc("GET /favicon.ico", http.NotFound)
	mux.HandleFunc("GET /", a.page)
	return guard.New(guard.Config{Address: address, Hosts: cfg.Hosts, Token: cfg.Token, ScriptHashes: a.scripts}, mux, signIn), nil
}

// signIn asks for the token.
func signIn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Sec-Fetch-Dest") != "document" && r.Header.Get("Sec-Fetch-Dest") != "" || len(r.URL.Path) > 4 && r.URL.Path[:5] == "/api/" {
		problem(w, http.StatusUnauthorized, "token", "sign in first: this needs the token of sluice ui")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	wrong := ""
	if r.Method == http.MethodPost {
		wrong = "<p>That is not the token.</p>"
	}
	fmt.Fprintf(w, `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sluice</title>
<h1>Sluice</h1>%s<form method="post" action="%s"><label>Token of these pages <input type="password" name="token" autofocus autocomplete="current-password"></label> <button>Open</button></form></html>`, wrong, guard.SignIn)
}
