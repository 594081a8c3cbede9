package inference

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Budget bounds what one turn may cost, end to end.
type Budget struct {
	// Attempts is how many requests servers may take on for it without giving a usable
	// answer. 0 means 5.
	Attempts int
	// Time is how long these may take together. Waiting for a server that is away does
	// not count. 0 means 30 min.
	Time time.Duration
}

func (b *Budget) defaults() {
	if b.Attempts == 0 {
		b.Attempts = 5
	}
	if b.Time == 0 {
		b.Time = 30 * time.Minute
	}
}

// doubt is how long a refused request is made again while the server has not shown that
// it takes others: it may be refusing everybody.
const doubt = 10 * time.Second

// Turn is one turn's account: what it has cost so far, and since when it waits. Safe for
// concurrent use.
type Turn struct {
	// ID is the turn as logs and status call it.
	ID string

	mu       sync.Mutex
	attempts int
	spent    time.Duration
	// began is when it was asked for; failing is when its first failure was, zero while
	// there is none; refused the same for refusals.
	began, failing, refused time.Time
	// idle counts aborts in a row without a new token.
	idle int
	url  string
	last error
}

// Attempts is how many requests servers took on for the turn.
func (t *Turn) Attempts() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attempts
}

// Carry is the account of one member of a fork, which shares the cost so far.
func (t *Turn) Carry(id string) *Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &Turn{ID: id, attempts: t.attempts, spent: t.spent, began: time.Now(), failing: t.failing, url: t.url, last: t.last}
}

// answered notes an attempt with an answer.
func (t *Turn) answered(url string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempts++
	t.url, t.failing, t.last = url, time.Time{}, nil
}

// Unusable notes that the answer to the last attempt could not be used for this turn;
// the error is not nil once its budget is used up.
func (t *Turn) Unusable(b Budget, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fail(err)
	return t.over(b)
}

// mostIdleAborts is how often in a row a generation may be aborted before its first new
// token. With the pauses between them that is some minutes of a weight update.
const mostIdleAborts = 60

// Aborted notes that the last attempt was aborted or cut off after so many new tokens; the
// error is not nil once that has gone on for too long. It is no attempt that failed.
func (t *Turn) Aborted(tokens int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempts--
	t.idle++
	if tokens > 0 {
		t.idle = 0
	}
	err := fmt.Errorf("%w: aborted %d times in a row without a token between", ErrAnswer, t.idle)
	if t.idle > 0 {
		t.fail(err)
	}
	if t.idle >= mostIdleAborts {
		return &SpentError{t.attempts, err}
	}
	return nil
}

// failed notes an attempt without one.
func (t *Turn) failed(b Budget, class Class, url string, took time.Duration, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.url = url
	t.fail(err)
	switch class {
	case Absent:
		return nil
	case Refusal, RefusalForAll:
		if t.refused.IsZero() {
			t.refused = time.Now()
		}
		if class == RefusalForAll && time.Since(t.refused) >= b.Time {
			return &SpentError{t.attempts, err}
		}
		return nil
	}
	t.attempts++
	t.spent += took
	return t.over(b)
}

func (t *Turn) fail(err error) {
	if t.failing.IsZero() {
		t.failing = time.Now()
	}
	t.last = err
}

func (t *Turn) over(b Budget) error {
	if t.attempts >= b.Attempts || t.spent >= b.Time {
		return &SpentError{t.attempts, t.last}
	}
	return nil
}

// refusedFor is how long the turn's requests have been refused.
func (t *Turn) refusedFor() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refused.IsZero() {
		return 0
	}
	return time.Since(t.refused)
}

// pause is the growing time between two attempts.
type pause struct{ next time.Duration }

const (
	pauseFirst = 100 * time.Millisecond
	pauseMost  = 5 * time.Second
	// pauseRefused is the most between two tries of what was refused: whether everybody
	// is refused should show within seconds.
	pauseRefused = time.Second
)

// take is how long to wait now: half of it certain, half by chance, so that those who
// failed together do not come back together.
func (p *pause) take() time.Duration {
	p.next = min(max(pauseFirst, 2*p.next), pauseMost)
	return p.next/2 + rand.N(p.next/2)
}
