package guard

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Config of a guard.
type Config struct {
	// Address is where the pages are served, host:port.
	Address string
	// Hosts are further names that they are opened under, with or without port.
	Hosts []string
	// Token is asked of everybody; empty: of nobody.
	Token string
	// ScriptHashes are of scripts that stand in the page itself, as 'sha256-…'.
	ScriptHashes []string
}

// SignIn is the path to which the token is posted, as the form's value token.
const SignIn = "/sign-in"

const cookieName = "sluice-pages"

// Guard is a handler before another one.
type Guard struct {
	cfg    Config
	policy string
	cookie string
	next   http.Handler
	form   http.HandlerFunc
}

// New guards next. form answers a request that has no token yet.
func New(cfg Config, next http.Handler, form http.HandlerFunc) *Guard {
	sum := sha256.Sum256([]byte("sluice pages\x00" + cfg.Token))
	return &Guard{
		cfg: cfg, next: next, form: form, cookie: hex.EncodeToString(sum[:]),
		policy: strings.Join([]string{
			"default-src 'none'", "script-src " + strings.Join(append([]string{"'self'"}, cfg.ScriptHashes...), " "),
			"style-src 'self'", "img-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
			"require-trusted-types-for 'script'", "trusted-types 'none'",
		}, "; "),
	}
}

func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", g.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	switch {
	case !g.host(r.Host):
		http.Error(w, "This host name is not one of the pages' own: start sluice ui with --host "+safe(r.Host)+" if it should be.", http.StatusMisdirectedRequest)
	case !g.origin(r):
		http.Error(w, "A page of another site asked for this.", http.StatusForbidden)
	case r.URL.Path == SignIn:
		g.signIn(w, r)
	case !g.known(r):
		g.form(w, r)
	default:
		g.next.ServeHTTP(w, r)
	}
}

var plain = regexp.MustCompile(`^[0-9A-Za-z.:\[\]-]+$`)

// safe is a host name that may be shown.
func safe(host string) string {
	if len(host) > 100 || !plain.MatchString(host) {
		return "NAME"
	}
	return host
}

// Loopback says whether a host is this machine itself, by its number or as localhost.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// host says whether the pages are opened under a name.
func (g *Guard) host(given string) bool {
	ours, port, err := net.SplitHostPort(g.cfg.Address)
	if err != nil {
		return false
	}
	name, asked, err := net.SplitHostPort(given)
	if err != nil {
		name, asked = strings.Trim(given, "[]"), "80"
	}
	for _, h := range g.cfg.Hosts {
		if strings.EqualFold(h, given) || strings.EqualFold(h, name) {
			return true
		}
	}
	if asked != port {
		return false
	}
	if Loopback(name) {
		return true
	}
	// A number cannot be made to point elsewhere; a name can.
	if ip := net.ParseIP(ours); ip != nil && ip.IsUnspecified() {
		return net.ParseIP(name) != nil
	}
	return strings.EqualFold(name, ours)
}

// origin says whether no other site is behind a request.
func (g *Guard) origin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		// A link from elsewhere may open a page; it carries no cookie then.
		return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" &&
			!strings.HasPrefix(r.URL.Path, "/api/")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true // no browser, or one that says nothing of a request of the same site
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, r.Host)
}

func (g *Guard) known(r *http.Request) bool {
	if g.cfg.Token == "" {
		return true
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return same(bearer, g.cfg.Token)
	}
	c, err := r.Cookie(cookieName)
	return err == nil && same(c.Value, g.cookie)
}

func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// signIn takes a token and gives the cookie for it.
func (g *Guard) signIn(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	if g.cfg.Token == "" || !same(strings.TrimSpace(r.PostFormValue("token")), g.cfg.Token) {
		g.form(w, r)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: g.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https", MaxAge: 30 * 24 * 3600,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
