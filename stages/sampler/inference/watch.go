package inference

import (
	"fmt"
	"strings"
	"time"
)

// watch probes servers that are away or silent, and tells when readiness changes.
func (c *Client) watch() {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range c.all() {
			if s.due(time.Now()) {
				go s.probe(c.ctx, c.transport)
			}
		}
		c.tellReady()
	}
}

func (c *Client) all() []*server {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*server
	for _, s := range c.servers {
		all = append(all, s)
	}
	return all
}

func (c *Client) tellReady() {
	r := c.Report()
	away, degraded := r.AllAway(), !r.Well()
	c.mu.Lock()
	before := c.told
	c.told.away, c.told.degraded = away, degraded
	c.mu.Unlock()
	tell := func(was, is bool, f func(error)) {
		switch {
		case is && !was:
			f(reportError{c})
		case was && !is:
			f(nil)
		}
	}
	tell(before.away, away, c.cfg.Away)
	tell(before.degraded, degraded, c.cfg.Degraded)
}

// Report is what waits for which server.
type Report struct {
	// Servers is how many matter: those that were checked and those that turns wait for.
	Servers int
	// Away are the servers that do not take requests on.
	Away []Away
	// Waiting is how many turns have failed at least once and wait for an answer, Oldest
	// the one that has waited longest.
	Waiting int
	Oldest  Waiting
}

// Away is a server that does not take requests on.
type Away struct {
	URL   string
	For   time.Duration
	Error string
}

// Waiting is a turn that waits for an answer after a failure.
type Waiting struct {
	ID, URL string
	For     time.Duration
	// Attempts is how many requests servers took on for it.
	Attempts int
	Error    string
}

// Well says whether there is nothing that a person should look at.
func (r Report) Well() bool { return len(r.Away) == 0 && r.Oldest.For < stuckAfter }

// AllAway says whether no server takes requests on.
func (r Report) AllAway() bool { return r.Servers > 0 && len(r.Away) == r.Servers }

// String is the report in one line.
func (r Report) String() string {
	var parts []string
	for _, a := range r.Away {
		parts = append(parts, fmt.Sprintf("%s is away for %v: %s", a.URL, a.For.Round(time.Second), a.Error))
	}
	if r.Waiting > 0 {
		o := r.Oldest
		parts = append(parts, fmt.Sprintf("%d turns wait after a failure, the oldest %s for %v after %d attempts at %s: %s",
			r.Waiting, o.ID, o.For.Round(time.Second), o.Attempts, o.URL, o.Error))
	}
	return strings.Join(parts, "; ")
}

// Report says what waits now.
func (c *Client) Report() Report {
	var r Report
	wanted := map[string]bool{}
	c.mu.Lock()
	for t := range c.turns {
		t.mu.Lock()
		wanted[t.url] = true
		if !t.failing.IsZero() {
			r.Waiting++
			if age := time.Since(t.failing); age >= r.Oldest.For {
				r.Oldest = Waiting{ID: t.ID, URL: t.url, For: age, Attempts: t.attempts, Error: t.last.Error()}
			}
		}
		t.mu.Unlock()
	}
	c.mu.Unlock()
	for _, s := range c.all() {
		pinned, since, err := s.state()
		if !pinned && !wanted[s.url] {
			continue // a run that has ended named it
		}
		r.Servers++
		if !since.IsZero() {
			r.Away = append(r.Away, Away{s.url, time.Since(since), err.Error()})
		}
	}
	return r
}

// reportError is why a client is not ready, as it is when it is read.
type reportError struct{ c *Client }

func (e reportError) Error() string { return e.c.Report().String() }
