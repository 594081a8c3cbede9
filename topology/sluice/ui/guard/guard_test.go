package guard_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/topology/sluice/ui/guard"
)

func guarded(cfg guard.Config) http.Handler {
	return guard.New(cfg,
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
}

func ask(h http.Handler, method, path string, set func(*http.Request)) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1:8420"
	if set != nil {
		set(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestHosts(t *testing.T) {
	for _, c := range []struct {
		address, host string
		hosts         []string
		ok            bool
	}{
		{"127.0.0.1:8420", "127.0.0.1:8420", nil, true},
		{"127.0.0.1:8420", "localhost:8420", nil, true},
		{"127.0.0.1:8420", "LOCALHOST:8420", nil, true},
		{"127.0.0.1:8420", "[::1]:8420", nil, true},
		{"127.0.0.1:8420", "evil.example:8420", nil, false},
		{"127.0.0.1:8420", "127.0.0.1.evil.example:8420", nil, false},
		{"127.0.0.1:8420", "localhost.evil.example:8420", nil, false},
		{"127.0.0.1:8420", "localhost:9000", nil, false},
		{"127.0.0.1:8420", "localhost", nil, false},
		{"127.0.0.1:8420", "", nil, false},
		{"127.0.0.1:80", "localhost", nil, true},
		{"0.0.0.0:8420", "10.1.2.3:8420", nil, true},
		{"0.0.0.0:8420", "gpu1:8420", nil, false},
		{"0.0.0.0:8420", "gpu1:8420", []string{"gpu1"}, true},
		{"0.0.0.0:8420", "pages.example", []string{"pages.example"}, true},
		{"gpu1:8420", "gpu1:8420", nil, true},
	} {
		h := guarded(guard.Config{Address: c.address, Hosts: c.hosts})
		got := ask(h, http.MethodGet, "/", func(r *http.Request) { r.Host = c.host }).StatusCode
		if (got == http.StatusOK) != c.ok {
			t.Errorf("host %q at %s, names %v: %d, want through %v", c.host, c.address, c.hosts, got, c.ok)
		}
	}
}

func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		method, path string
		headers      string
		ok           bool
	}{
		{"GET", "/", "", true},
		{"GET", "/api/live", "Sec-Fetch-Site: same-origin", true},
		{"POST", "/api/sql", "Origin: http://127.0.0.1:8420", true},
		{"POST", "/api/sql", "Origin: http://evil.example", false},
		{"POST", "/api/sql", "Origin: null", false},
		{"POST", "/api/sql", "Origin: http://127.0.0.1:9999", false},
		{"GET", "/api/live", "Sec-Fetch-Site: cross-site", false},
		{"GET", "/api/live", "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document", false},
		{"GET", "/runs", "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document", true},
		{"GET", "/runs", "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: iframe", false},
		{"GET", "/runs", "Sec-Fetch-Site: same-site\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: script", false},
		{"POST", "/runs", "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document", false},
	} {
		got := ask(guarded(guard.Config{Address: "127.0.0.1:8420"}), c.method, c.path, func(r *http.Request) {
			for line := range strings.Lines(c.headers) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				r.Header.Set(name, value)
			}
		}).StatusCode
		if (got == http.StatusOK) != c.ok {
			t.Errorf("%s %s with %q: %d, want through %v", c.method, c.path, c.headers, got, c.ok)
		}
	}
}

func TestToken(t *testing.T) {
	h := guarded(guard.Config{Address: "127.0.0.1:8420", Token: "open sesame"})
	post := func(token string) *http.Response {
		return ask(h, http.MethodPost, guard.SignIn, func(r *http.Request) {
			body := url.Values{"token": {token}}.Encode()
			*r = *httptest.NewRequest(http.MethodPost, guard.SignIn, strings.NewReader(body))
			r.Host = "127.0.0.1:8420"
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		})
	}
	if got := ask(h, http.MethodGet, "/", nil).StatusCode; got != http.StatusUnauthorized {
		t.Errorf("without a token: %d", got)
	}
	if got := post("open barley"); got.StatusCode != http.StatusUnauthorized || len(got.Cookies()) > 0 {
		t.Errorf("with another token: %d, cookies %v", got.StatusCode, got.Cookies())
	}
	got := post("open sesame")
	if got.StatusCode != http.StatusSeeOther || len(got.Cookies()) != 1 {
		t.Fatalf("signing in: %d, cookies %v", got.StatusCode, got.Cookies())
	}
	c := got.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, "sesame") {
		t.Errorf("cookie %v: want HttpOnly, SameSite=Strict, and not the token itself", c)
	}
	for name, set := range map[string]func(*http.Request){
		"cookie": func(r *http.Request) { r.AddCookie(c) },
		"bearer": func(r *http.Request) { r.Header.Set("Authorization", "Bearer open sesame") },
	} {
		if got := ask(h, http.MethodGet, "/api/live", set).StatusCode; got != http.StatusOK {
			t.Errorf("with the %s: %d", name, got)
		}
	}
	for name, set := range map[string]func(*http.Request){
		"cookie": func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: "open sesame"}) },
		"bearer": func(r *http.Request) { r.Header.Set("Authorization", "Bearer open barley") },
	} {
		if got := ask(h, http.MethodGet, "/api/live", set).StatusCode; got != http.StatusUnauthorized {
			t.Errorf("with a wrong %s: %d", name, got)
		}
	}
}

func TestEveryAnswerSaysWhatItsPageMayDo(t *testing.T) {
	h := guarded(guard.Config{Address: "127.0.0.1:8420", ScriptHashes: []string{"'sha256-x'"}})
	for _, host := range []string{"127.0.0.1:8420", "evil.example"} {
		policy := ask(h, http.MethodGet, "/", func(r *http.Request) { r.Host = host }).Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self' 'sha256-x';", "style-src 'self'", "require-trusted-types-for 'script'", "trusted-types 'none'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: policy %q lacks %q", host, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", host, policy)
		}
	}
}
