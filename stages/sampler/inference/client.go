package inference

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Config configures a Client. Zero values are useful.
type Config struct {
	// HTTP makes the requests. Nil: a client without a proxy, with connections enough
	// for MaxConnections requests in flight.
	HTTP           *http.Client
	MaxConnections int
	// RequestTimeout bounds one attempt. 0 means 10 min: a long generation on a busy
	// server takes minutes.
	RequestTimeout time.Duration
	Budget         Budget
	// Dialect names the one that all servers speak. "" and DialectAuto: each is asked.
	Dialect string
	// TokensInFlight bounds prompt and completion tokens in flight on each server. 0
	// means 4 Mi.
	TokensInFlight int64
	// Vocabulary is the number of token ids, where no server says.
	Vocabulary int
	// Renderer makes tokens of conversations. Nil: the servers do.
	Renderer Renderer
	// RefusalsInARow is how many requests in a row may be refused, with no usable answer
	// to anybody between, before Fatal is called. 0 means 16.
	RefusalsInARow int
	// APIKey is sent as a bearer token, if there is one.
	APIKey string
	Log    *slog.Logger
	// Away is told when no server that matters takes requests on, and with nil when one
	// does again. Degraded is told when some server is away or a turn has waited for long,
	// and with nil when all is well. The errors' texts are of the moment when they are
	// read. Both may be nil.
	Away, Degraded func(error)
	// Fatal is told once that the servers refuse everybody. May be nil.
	Fatal func(error)
	// Attempt is told the class of each attempt's answer. May be nil.
	Attempt func(Class)
}

// Client asks inference servers. Safe for concurrent use.
type Client struct {
	cfg       Config
	transport *transport
	ctx       context.Context

	mu      sync.Mutex
	servers map[string]*server
	// opened is closed and renewed when a server that was away can be asked again.
	opened chan struct{}
	turns  map[*Turn]struct{}
	// inARow counts refusals since the last usable answer, since is the first.
	inARow int
	since  time.Time
	fatal  bool
	// told is what was last said of readiness.
	told struct{ away, degraded bool }
}

const (
	// refusingFor is how long everybody must have been refused before that is fatal, so
	// that a server which changes its models is not taken for one.
	refusingFor = 5 * time.Second
	// stuckAfter is how long a turn may have failed before that makes us not ready.
	stuckAfter = time.Minute
)

// New makes a client; it connects when it is asked to. Until ctx ends it watches the
// servers it was told of; after that, requests fail with ErrStopping instead of waiting.
func New(ctx context.Context, cfg Config) (*Client, error) {
	if cfg.Dialect == "" {
		cfg.Dialect = DialectAuto
	}
	if cfg.Dialect != DialectAuto && dialects[cfg.Dialect] == nil {
		return nil, fmt.Errorf("%w: %q: this build speaks %v", ErrDialect, cfg.Dialect, DialectNames())
	}
	cfg.defaults()
	c := &Client{
		cfg: cfg, ctx: ctx, servers: map[string]*server{}, opened: make(chan struct{}), turns: map[*Turn]struct{}{},
		transport: &transport{http: cfg.HTTP, apiKey: cfg.APIKey, timeout: cfg.RequestTimeout},
	}
	go c.watch()
	return c, nil
}

func (cfg *Config) defaults() {
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = 512
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Transport: &http.Transport{
			MaxIdleConns: cfg.MaxConnections, MaxIdleConnsPerHost: cfg.MaxConnections, IdleConnTimeout: time.Minute,
		}}
	}
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = 10 * time.Minute
	}
	cfg.Budget.defaults()
	if cfg.TokensInFlight == 0 {
		cfg.TokensInFlight = 4 << 20
	}
	if cfg.RefusalsInARow == 0 {
		cfg.RefusalsInARow = 16
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Away == nil {
		cfg.Away = func(error) {}
	}
	if cfg.Degraded == nil {
		cfg.Degraded = func(error) {}
	}
	if cfg.Fatal == nil {
		cfg.Fatal = func(error) {}
	}
	if cfg.Attempt == nil {
		cfg.Attempt = func(Class) {}
	}
}

// Budget is what a turn may cost.
func (c *Client) Budget() Budget { return c.cfg.Budget }

// Begin opens the account of a turn, which reports show until it ends.
func (c *Client) Begin(t *Turn) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.began.IsZero() {
		t.began = time.Now()
	}
	c.turns[t] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.turns, t)
	}
}

// Check asks what a server serves, waiting for it if it is away. An endpoint without a
// model gets the server's only one.
func (c *Client) Check(ctx context.Context, ep Endpoint) (Info, error) {
	var wait pause
	s := c.server(ep.URL)
	s.pin()
	for {
		_, info, err := c.info(ctx, s, ep)
		if err == nil {
			s.ok()
			return info, nil
		}
		if class := ClassOf(err); class != Absent && class != Trouble || errors.Is(err, ErrAnswer) {
			return Info{}, err
		}
		s.trouble(err, false)
		if err := c.sleep(ctx, wait.take()); err != nil {
			return Info{}, err
		}
	}
}

// Known is what was learnt of an endpoint so far; its zero value if nothing.
func (c *Client) Known(ep Endpoint) Info {
	s := c.server(ep.URL)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.infos[ep.Model]
}

// Sample asks one of the endpoints, the first that can be asked, for completions. What
// comes back has at least one choice without Err. An error is a *SpentError, a
// *RefusedError, ErrStopping or ctx's.
func (c *Client) Sample(ctx context.Context, eps []Endpoint, r Request, turn *Turn) (Response, error) {
	var got Response
	err := c.do(ctx, eps, turn, r.weight(), func(ctx context.Context, s *server, d dialect, ep Endpoint, info Info) error {
		attempt := r
		// Of its own, since a server may still work on the attempt before.
		attempt.ID = r.ID + "/" + rand.Text()[:8]
		a, err := d.sample(ctx, c.transport, Endpoint{ep.URL, info.Model}, attempt)
		if err != nil {
			return err
		}
		if err := inspect(r, &a, info.Vocabulary); err != nil {
			return err
		}
		if a.Prompt == nil {
			s.silent.Do(func() {
				c.cfg.Log.Warn("the server does not say which prompt it sampled on: only the number of its tokens can be checked, if that", "url", s.url)
			})
		}
		if err := allUnusable(a.Choices); err != nil {
			return err
		}
		a.Endpoint = Endpoint{ep.URL, info.Model}
		got = a
		return nil
	})
	return got, err
}

// allUnusable is the first choice's error if no choice can be used.
func allUnusable(choices []Choice) error {
	for _, c := range choices {
		if c.Err == nil {
			return nil
		}
	}
	return choices[0].Err
}

// Render has one of the endpoints apply its chat template and tokenise, or does it itself
// where it was given a Renderer.
func (c *Client) Render(ctx context.Context, eps []Endpoint, conversation Conversation, turn *Turn) ([]uint32, error) {
	if c.cfg.Renderer != nil {
		return c.cfg.Renderer.Render(ctx, conversation)
	}
	var tokens []uint32
	err := c.do(ctx, eps, turn, 0, func(ctx context.Context, _ *server, d dialect, ep Endpoint, info Info) (err error) {
		tokens, err = d.render(ctx, c.transport, Endpoint{ep.URL, info.Model}, conversation)
		return err
	})
	return tokens, err
}

// ask is one attempt at an endpoint.
type ask func(context.Context, *server, dialect, Endpoint, Info) error

// do makes attempts until one succeeds or the turn may make no more.
func (c *Client) do(ctx context.Context, eps []Endpoint, turn *Turn, weight int64, f ask) error {
	var wait pause
	for try := 0; ; try++ {
		s, ep, err := c.pick(ctx, eps, try)
		if err != nil {
			return err
		}
		release, err := s.admit(ctx, weight)
		if err != nil {
			return err
		}
		started := time.Now()
		err = c.attempt(ctx, s, ep, f)
		release()
		if err == nil {
			s.ok()
			if weight > 0 {
				turn.answered(s.url)
				c.usable(s)
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.judge(s, turn, time.Since(started), err); err != nil {
			return err
		}
		d := wait.take()
		if turn.refusedFor() > 0 {
			d = min(d, pauseRefused)
		}
		if err := c.sleep(ctx, d); err != nil {
			return err
		}
	}
}

func (c *Client) attempt(ctx context.Context, s *server, ep Endpoint, f ask) error {
	d, info, err := c.info(ctx, s, ep)
	if err != nil {
		return err
	}
	return f(ctx, s, d, ep, info)
}

// judge says what a failed attempt means: nil to make another, else why not.
func (c *Client) judge(s *server, turn *Turn, took time.Duration, err error) error {
	class := ClassOf(err)
	c.cfg.Attempt(class)
	if class == Absent {
		var status *StatusError
		s.trouble(err, !errors.As(err, &status))
	} else if !errors.Is(err, errTakenOn) {
		s.ok()
	}
	if err := turn.failed(c.cfg.Budget, class, s.url, took, err); err != nil {
		return err
	}
	if class != Refusal && class != RefusalForAll {
		return nil
	}
	if c.refused(s, err) {
		return fmt.Errorf("%w: %w", ErrStopping, err)
	}
	if class == Refusal && (s.isProven() || turn.refusedFor() >= doubt) {
		return &RefusedError{err}
	}
	return nil
}

// usable notes an answer that can be worked with.
func (c *Client) usable(s *server) {
	c.cfg.Attempt(Ending)
	s.usable()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inARow = 0
}

// refused counts a refusal and says whether that is the end.
func (c *Client) refused(s *server, err error) bool {
	c.mu.Lock()
	if c.inARow == 0 {
		c.since = time.Now()
	}
	c.inARow++
	now := !c.fatal && c.inARow >= c.cfg.RefusalsInARow && time.Since(c.since) >= refusingFor
	c.fatal = c.fatal || now
	n, end := c.inARow, c.fatal
	c.mu.Unlock()
	if now {
		c.cfg.Fatal(&FatalError{URL: s.url, InARow: n, Err: err})
	}
	return end
}

// pick is the first of the endpoints that can be asked, each try beginning with the
// next; it waits while none can.
func (c *Client) pick(ctx context.Context, eps []Endpoint, try int) (*server, Endpoint, error) {
	if len(eps) == 0 {
		return nil, Endpoint{}, fmt.Errorf("%w: no endpoint", ErrDialect)
	}
	for {
		if c.ctx.Err() != nil {
			return nil, Endpoint{}, ErrStopping
		}
		c.mu.Lock()
		opened := c.opened
		c.mu.Unlock()
		for i := range eps {
			ep := eps[(try+i)%len(eps)]
			if s := c.server(ep.URL); s.open() {
				return s, ep, nil
			}
		}
		select {
		case <-opened:
		case <-c.ctx.Done():
		case <-ctx.Done():
			return nil, Endpoint{}, ctx.Err()
		}
	}
}

// reopened wakes those who wait for a server.
func (c *Client) reopened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.opened)
	c.opened = make(chan struct{})
}

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.ctx.Done():
		return ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) server(url string) *server {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.servers[url]
	if s == nil {
		s = &server{
			url: url, log: c.cfg.Log, capacity: c.cfg.TokensInFlight,
			tokens: semaphore.NewWeighted(c.cfg.TokensInFlight), infos: map[string]Info{}, reopened: c.reopened,
		}
		c.servers[url] = s
	}
	return s
}

// info is how an endpoint is asked and what is known of it, asked for where nothing is.
func (c *Client) info(ctx context.Context, s *server, ep Endpoint) (dialect, Info, error) {
	s.mu.Lock()
	d, info := s.dialect, s.infos[ep.Model]
	s.mu.Unlock()
	if d != nil && info.Model != "" {
		return d, info, nil
	}
	d, err := detect(ctx, c.transport, ep, c.cfg.Dialect)
	if err != nil {
		return nil, Info{}, err
	}
	if info, err = d.check(ctx, c.transport, ep); err != nil {
		return nil, Info{}, err
	}
	if info.Vocabulary == 0 {
		info.Vocabulary = c.cfg.Vocabulary
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialect, s.infos[ep.Model], s.infos[info.Model] = d, info, info
	return d, info, nil
}
