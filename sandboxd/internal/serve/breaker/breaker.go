// Package breaker stops intake when the infrastructure keeps failing, so that
// callers wait instead of burning their records' deliveries.
//
// Promises: pure; time is an argument. Closed, it lets everything through and
// opens after Threshold failures among the last Window results, or after more than
// SlowThreshold among the last SlowWindow: a failure now and then is a fault of its
// own, and would else never be seen. Open, it lets
// nothing through until Cooldown has passed; then probes may try, and one
// success closes it.
package breaker

import (
	"sync"
	"time"
)

// Config says when to open and for how long.
type Config struct {
	// Window is how many of the last results count.
	Window int
	// Threshold is how many failures among them open the breaker.
	Threshold int
	// SlowWindow and SlowThreshold are the same for failures that are rare; 0 for
	// none. SlowWindow is the longer one.
	SlowWindow, SlowThreshold int
	// Cooldown is the time between opening (or a failed probe) and the next
	// probe.
	Cooldown time.Duration
}

// Breaker is safe for concurrent use. Make it with New.
type Breaker struct {
	cfg    Config
	mu     sync.Mutex
	last   []bool // true is a failure
	open   bool
	until  time.Time
	reason string
}

// New returns a closed breaker.
func New(cfg Config) *Breaker { return &Breaker{cfg: cfg} }

// Report tells a result: reason is "" for a success. It returns true if this
// result opened or closed the breaker.
func (b *Breaker) Report(now time.Time, reason string) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		if reason == "" {
			b.open, b.last, b.reason = false, nil, ""
			return true
		}
		b.until, b.reason = now.Add(b.cfg.Cooldown), reason
		return false
	}
	b.last = append(b.last, reason != "")
	if len(b.last) > max(b.cfg.Window, b.cfg.SlowWindow) {
		b.last = b.last[1:]
	}
	often := b.failures(b.cfg.Window) >= b.cfg.Threshold
	rarely := b.cfg.SlowWindow > 0 && b.failures(b.cfg.SlowWindow) > b.cfg.SlowThreshold
	if !often && !rarely {
		return false
	}
	b.open, b.until, b.reason = true, now.Add(b.cfg.Cooldown), reason
	return true
}

// failures counts those among the last n results.
func (b *Breaker) failures(n int) (failures int) {
	for _, failed := range b.last[max(0, len(b.last)-n):] {
		if failed {
			failures++
		}
	}
	return failures
}

// Open reports whether calls must be refused, why, and for how long yet.
func (b *Breaker) Open(now time.Time) (open bool, reason string, retryAfter time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return false, "", 0
	}
	return true, b.reason, max(b.until.Sub(now), 100*time.Millisecond)
}

// MayProbe reports whether an open breaker's cooldown has passed.
func (b *Breaker) MayProbe(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open && !now.Before(b.until)
}
