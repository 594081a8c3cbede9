package inference

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// server is what is known of one address.
type server struct {
	url string
	log *slog.Logger
	// tokens bounds what is in flight there.
	tokens   *semaphore.Weighted
	capacity int64

	mu sync.Mutex
	// dialect is nil until the server has been asked, and again after it was away.
	dialect dialect
	// infos is what it says of models, by the name asked for.
	infos map[string]Info
	// troubled is since when it does not take requests on; zero while it does.
	troubled time.Time
	last     error
	// closed: nothing is sent there until a probe gets through.
	closed bool
	probes int
	probed time.Time
	// proven: it gave a usable answer since it was last in trouble.
	proven   bool
	inFlight int
	// heard is when it last answered anything while requests were in flight.
	heard time.Time
	// pinned: it was checked, so it matters though no turn waits for it.
	pinned bool
	// probing: a probe is under way.
	probing bool
	// silent is said once: it does not say which prompt it sampled on.
	silent sync.Once
	// reopened is called when the server can be asked again.
	reopened func()
}

const (
	// silence is how long a server may answer nothing at all, with requests in flight,
	// before it is probed.
	silence = 30 * time.Second
	// silentProbes is how many probes without an answer close it.
	silentProbes = 3
	probeTimeout = 10 * time.Second
)

// admit waits until the server may hold as many tokens more.
func (s *server) admit(ctx context.Context, weight int64) (release func(), err error) {
	weight = min(weight, s.capacity)
	if err := s.tokens.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight == 0 {
		s.heard = time.Now()
	}
	s.inFlight++
	return func() {
		s.tokens.Release(weight)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inFlight--
	}, nil
}

// ok notes that the server took a request on, and says so if that is new.
func (s *server) ok() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reopen()
	if s.troubled.IsZero() {
		return
	}
	s.log.Info("inference server is back", "url", s.url, "after", time.Since(s.troubled).Round(time.Millisecond))
	s.troubled, s.last = time.Time{}, nil
}

// reopen notes that the server answered; mu is held.
func (s *server) reopen() {
	if s.closed {
		s.reopened()
	}
	s.heard, s.probes, s.closed = time.Now(), 0, false
}

func (s *server) pin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pinned = true
}

// usable notes a usable answer.
func (s *server) usable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proven = true
}

func (s *server) isProven() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proven
}

// trouble notes that the server does not take requests on; the first to meet it says
// so. Where it cannot even be reached, it is closed until a probe gets through.
func (s *server) trouble(err error, unreachable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.proven = err, false
	if unreachable && !s.closed {
		s.closed, s.probed, s.dialect = true, time.Now(), nil
	}
	if !s.troubled.IsZero() {
		return
	}
	s.troubled = time.Now()
	s.log.Warn("inference server is away: waiting for it", "url", s.url, "error", err)
}

func (s *server) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed
}

// state is for a report: since when it is in trouble and why; zero if it is not.
func (s *server) state() (pinned bool, since time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pinned, s.troubled, s.last
}

// due says whether the server is to be probed now, and that it is being: because it is
// closed, or because it holds requests and has long said nothing.
func (s *server) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := probeTimeout
	if s.closed {
		wait = min(pauseMost, 500*time.Millisecond<<min(s.probes, 4))
	} else if s.inFlight == 0 || now.Sub(s.heard) < silence {
		return false
	}
	if s.probing || now.Sub(s.probed) < wait {
		return false
	}
	s.probing, s.probed = true, now
	return true
}

// probe asks whether the server is there, and closes or opens it by the answer.
func (s *server) probe(ctx context.Context, t *transport) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := t.call(ctx, http.MethodGet, join(s.url, "/health"), nil, nil)
	s.mu.Lock()
	s.probing = false
	// A server without that path is there.
	if err == nil || ClassOf(err) == RefusalForAll {
		s.reopen()
		s.mu.Unlock()
		return
	}
	s.probes++
	silent := !s.closed && s.probes >= silentProbes
	s.last = err
	s.mu.Unlock()
	if silent {
		s.trouble(fmt.Errorf("it answers nothing, not even /health: %w", err), true)
	}
}
