package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/sluice-rl/sluice/topology/sluice/ui"
	"github.com/sluice-rl/sluice/topology/sluice/ui/ask"
	"github.com/sluice-rl/sluice/topology/sluice/ui/uitest"
)

// serve serves pages until the test ends and returns their address.
func serve(t testing.TB, cfg ui.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listener, cfg.Version = l, "test"
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ui.Serve(ctx, cfg) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// away is a ClickHouse that nobody is.
func away(t *testing.T) *ask.Asker {
	t.Helper()
	return uitest.Ask(t, &clickhouse.Options{Protocol: clickhouse.HTTP, Addr: []string{"127.0.0.1:1"}, Auth: clickhouse.Auth{Database: "sluice", Username: "pages"}})
}

func get(t *testing.T, method, url, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	client := &http.Client{Timeout: 30 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

func TestNobodyElseReadsPagesWithoutAToken(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := ui.Config{Listener: l, Ask: away(t), Log: slog.New(slog.DiscardHandler)}
	if _, err := ui.Handler(cfg); !errors.Is(err, ui.ErrToken) {
		t.Errorf("beyond loopback without a token: %v, want ErrToken", err)
	}
	cfg.Token = "sesame"
	if _, err := ui.Handler(cfg); err != nil {
		t.Errorf("with one: %v", err)
	}
	base := serve(t, ui.Config{Ask: away(t), Token: "sesame"})
	for _, path := range []string{"/", "/runs", "/api/about", "/api/q/runs", "/assets/app.css", "/run/x"} {
		if status, body, _ := get(t, http.MethodGet, base+path, ""); status != http.StatusUnauthorized || strings.Contains(body, "sesame") {
			t.Errorf("%s without the token: %d %q", path, status, body)
		}
		if status, _, _ := get(t, http.MethodGet, base+path, "", "Authorization", "Bearer sesame"); status == http.StatusUnauthorized {
			t.Errorf("%s with the token: %d", path, status)
		}
	}
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	base := serve(t, ui.Config{Ask: away(t)})
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
		kind               string
	}{
		{"GET", "/api/q/runs", "", nil, 502, "clickhouse"},
		{"GET", "/api/q/nothing", "", nil, 400, "unknown"},
		{"GET", "/api/q/run_steps", "", nil, 400, "unknown"},
		{"GET", "/api/live", "", nil, 404, "no_kafka"},
		{"GET", "/api/record?topic=a&partition=0&offset=0", "", nil, 404, "no_kafka"},
		{"GET", "/api/words?ids=1", "", nil, 404, "no_words"},
		{"POST", "/api/sql", `{"sql": "SELECT 1"}`, []string{"Content-Type", "text/plain"}, 415, "unknown"},
		{"POST", "/api/sql", `{`, []string{"Content-Type", "application/json"}, 400, "unknown"},
		{"POST", "/api/sql", `{"sql": "` + strings.Repeat("x", 200_000) + `"}`, []string{"Content-Type", "application/json"}, 400, "unknown"},
		{"POST", "/api/sql", `{"sql": "SELECT 1"}`, []string{"Content-Type", "application/json", "Origin", "http://evil.example"}, 403, ""},
		{"GET", "/api/about", "", []string{"Host", "evil.example"}, 421, ""},
		{"GET", "/api/nothing", "", nil, 404, ""},
		{"GET", "/assets/nothing.js", "", nil, 404, ""},
		{"GET", "/assets/vendor/fetch.sh", "", nil, 404, ""},
		{"DELETE", "/api/q/runs", "", nil, 405, ""},
		{"PUT", "/", "", nil, 405, ""},
	} {
		status, body, _ := get(t, c.method, base+c.path, c.body, c.headers...)
		var said struct{ Kind, Error string }
		_ = json.Unmarshal([]byte(body), &said)
		if status != c.status || said.Kind != c.kind || c.kind != "" && said.Error == "" {
			t.Errorf("%s %.60s: %d %.200s; want %d %q", c.method, c.path, status, body, c.status, c.kind)
		}
	}
}

func TestThePageIsAllThatIsLoaded(t *testing.T) {
	base := serve(t, ui.Config{Ask: away(t)})
	for _, path := range []string{"/", "/run/a%2Fb/t/0.1.2.3.4", "/sql?q=SELECT", "/no/such/page"} {
		status, body, h := get(t, http.MethodGet, base+path, "")
		if status != http.StatusOK || !strings.Contains(body, `src="/assets/js/app.js"`) || strings.Contains(body, "http://") || strings.Contains(body, "https://") {
			t.Errorf("%s: %d %q; want the page, with nothing from elsewhere", path, status, body)
		}
		if p := h.Get("Content-Security-Policy"); !strings.Contains(p, "script-src 'self' 'sha256-") || strings.Contains(p, "unsafe") {
			t.Errorf("%s: policy %q", path, p)
		}
	}
	_, _, h := get(t, http.MethodGet, base+"/assets/app.css", "")
	if status, body, _ := get(t, http.MethodGet, base+"/assets/app.css", "", "If-None-Match", h.Get("ETag")); status != http.StatusNotModified || body != "" {
		t.Errorf("the same file again: %d with %d bytes, want 304", status, len(body))
	}
}
