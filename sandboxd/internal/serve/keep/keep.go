// Package keep holds the sandboxes of trajectories between their calls.
//
// Promises: a sandbox is given only to the trajectory that it was kept for, to one
// call at a time; it is renewed first, so that nothing of the call before lives in it;
// after so many calls, when nobody has come for it for a while, or when another one
// needs its place, it is destroyed. It knows neither gVisor nor HTTP.
package keep

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
)

// Renewable is a sandbox that can run another program.
type Renewable interface {
	sandbox.Sandbox
	Renew(ctx context.Context) error
}

// Config bounds what is kept.
type Config struct {
	// Most is how many sandboxes are kept at once.
	Most int
	// Calls is how many programs one may run.
	Calls int
	// Idle is how long one waits for the next call.
	Idle time.Duration
	// RenewTime bounds how long it takes to make one ready for the next call.
	RenewTime time.Duration
}

// Keeper is safe for concurrent use. Make it with New; Close must be called.
type Keeper struct {
	cfg     Config
	log     *slog.Logger
	destroy func(sandbox.Sandbox)
	work    sync.WaitGroup

	mu     sync.Mutex
	held   map[string]*entry
	closed bool
}

// entry is one kept sandbox.
type entry struct {
	box   Renewable
	calls int
	since time.Time
	timer *time.Timer
	ready chan struct{} // closed once it was renewed, or was not
	fit   bool          // it was
}

// New returns an empty keeper. destroy is called with each sandbox that is given up.
func New(cfg Config, destroy func(sandbox.Sandbox), log *slog.Logger) *Keeper {
	return &Keeper{cfg: cfg, destroy: destroy, log: log, held: map[string]*entry{}}
}

// Take returns the sandbox that is kept under key, and how many programs it has run;
// nil if there is none. It waits for one that is being renewed. A nil Keeper has none.
func (k *Keeper) Take(ctx context.Context, key string) (sandbox.Sandbox, int) {
	if k == nil {
		return nil, 0
	}
	k.mu.Lock()
	e := k.held[key]
	k.remove(key, e)
	k.mu.Unlock()
	if e == nil {
		return nil, 0
	}
	select {
	case <-e.ready:
	case <-ctx.Done():
		k.work.Go(func() {
			<-e.ready
			k.destroy(e.box)
		})
		return nil, 0
	}
	select {
	case <-e.box.Exited():
		e.fit = false
	default:
	}
	if !e.fit {
		k.destroy(e.box)
		return nil, 0
	}
	return e.box, e.calls
}

// Keep takes over a sandbox that has run its calls-th program. It keeps it under key,
// or destroys it.
func (k *Keeper) Keep(key string, box sandbox.Sandbox, calls int) {
	again, ok := box.(Renewable)
	if !ok || calls >= k.cfg.Calls {
		k.destroy(box)
		return
	}
	e := &entry{box: again, calls: calls, since: time.Now(), ready: make(chan struct{})}
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		k.destroy(box)
		return
	}
	// Two calls of a trajectory at once have two sandboxes, of which one is kept.
	gone := []*entry{k.held[key]}
	k.remove(key, gone[0])
	for len(k.held) >= k.cfg.Most {
		oldest, o := k.oldest()
		k.remove(oldest, o)
		gone = append(gone, o)
	}
	k.held[key] = e
	e.timer = time.AfterFunc(k.cfg.Idle, func() { k.expire(key, e) })
	k.work.Go(func() { k.renew(key, e) })
	k.mu.Unlock()
	k.giveUp(gone)
}

func (k *Keeper) renew(key string, e *entry) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), k.cfg.RenewTime, errors.New("not ready in time for another program"))
	defer cancel()
	err := e.box.Renew(ctx)
	e.fit = err == nil
	close(e.ready)
	if err == nil {
		return
	}
	if !errors.Is(err, sandbox.ErrNotRenewable) {
		k.log.Warn("sandbox is not used again", "sandbox", e.box.ID(), "err", err)
	}
	k.expire(key, e)
}

// expire gives an entry up if nobody has taken it.
func (k *Keeper) expire(key string, e *entry) {
	k.mu.Lock()
	mine := k.held[key] == e
	if mine {
		k.remove(key, e)
	}
	k.mu.Unlock()
	if mine {
		k.giveUp([]*entry{e})
	}
}

// remove takes an entry, which may be nil, out. k.mu is held.
func (k *Keeper) remove(key string, e *entry) {
	if e != nil {
		e.timer.Stop()
		delete(k.held, key)
	}
}

func (k *Keeper) oldest() (key string, e *entry) {
	for name, other := range k.held {
		if e == nil || other.since.Before(e.since) {
			key, e = name, other
		}
	}
	return key, e
}

// giveUp destroys entries once nobody works on them.
func (k *Keeper) giveUp(entries []*entry) {
	for _, e := range entries {
		if e != nil {
			k.work.Go(func() {
				<-e.ready
				k.destroy(e.box)
			})
		}
	}
}

// Len is how many sandboxes are kept.
func (k *Keeper) Len() int {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.held)
}

// Close gives everything up, and what is kept from now on too. It may be called twice.
func (k *Keeper) Close() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.closed = true
	var all []*entry
	for key, e := range k.held {
		k.remove(key, e)
		all = append(all, e)
	}
	k.mu.Unlock()
	k.giveUp(all)
	k.work.Wait()
}
