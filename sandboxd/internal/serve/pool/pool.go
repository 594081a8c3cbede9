// Package pool keeps warm single-use sandboxes ready and makes new ones off the
// callers' path.
//
// Promises: a sandbox is handed out once; one that died while waiting is never
// handed out; makers work at a fixed concurrency and serve waiting callers
// before they refill; a caller waits at most WarmWait for a warm sandbox
// and then gets a booted one, which is counted. It knows neither gVisor nor
// HTTP.
package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/image"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/metrics"
)

// ErrClosed occurs when a sandbox is asked for after Close.
var ErrClosed = errors.New("pool is closed")

// Maker makes sandboxes.
type Maker interface {
	Build(ctx context.Context, img image.Image) error
	// Restore makes a warm sandbox. hurry is closed as soon as somebody waits for
	// it; until then it is to be made at leisure.
	Restore(ctx context.Context, name string, hurry <-chan struct{}) (sandbox.Sandbox, error)
	Boot(ctx context.Context) (sandbox.Sandbox, error)
}

// Config says how many sandboxes to keep.
type Config struct {
	// Targets is how many sandboxes of each image to keep ready; an image
	// that is not named here is not built.
	Targets map[string]int
	// Makers is how many sandboxes may be in the making at once.
	Makers int
	// WarmWait bounds a caller's wait for a warm sandbox.
	WarmWait time.Duration
}

// failuresToPause is how many restores in a row may fail before those who wait are
// sent to cold sandboxes: of many thousand restores some fail, and the next one
// does not. failuresToRebuild is how many may fail before the image is built anew;
// failurePause is the pause after a failure. An image that cannot be
// built is tried again after buildRetry, then after twice that, up to
// maxBuildRetry.
const (
	failuresToPause   = 2
	failuresToRebuild = 3
	failurePause      = time.Second
	buildRetry        = 5 * time.Second
	maxBuildRetry     = 5 * time.Minute
)

// refillDelay is how long a stock waits before it makes up for a sandbox that
// was taken while nobody waits for one: making the next costs a fraction of a
// second of CPU, and most programs are over before it has begun.
const refillDelay = 25 * time.Millisecond

// Pool is safe for concurrent use. Make it with New, then Start.
type Pool struct {
	cfg     Config
	maker   Maker
	metrics *metrics.Metrics
	log     *slog.Logger

	ctx    context.Context
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	stocks  []*stock // smallest image first
	started bool     // Build was called
	closed  bool
}

// stock holds one image's sandboxes.
type stock struct {
	image    image.Image
	target   int
	ready    []sandbox.Sandbox
	making   int
	hurry    chan struct{} // of those in the making while nobody waits; nil if there are none
	waiting  []chan sandbox.Sandbox
	failures int       // restores in a row; reset by success and by a build
	pauseTo  time.Time // no restore before
	refillAt time.Time // no restore before if nobody waits

	built       bool
	building    bool
	err         error // why the last build failed
	buildErrors int   // in a row
	buildAt     time.Time
}

// New returns a pool that makes nothing yet.
func New(cfg Config, images []image.Image, maker Maker, m *metrics.Metrics, log *slog.Logger) *Pool {
	p := &Pool{cfg: cfg, maker: maker, metrics: m, log: log}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.changed = sync.NewCond(&p.mu)
	for _, img := range images {
		if target, ok := cfg.Targets[img.Name]; ok {
			p.stocks = append(p.stocks, &stock{image: img, target: target})
		}
	}
	return p
}

// Build starts the makers and builds every image, smallest first; it returns
// once the first is built, and the others follow. Until then their callers wait
// as for any warm sandbox. While an image cannot be built, its programs start
// cold; the makers try again.
func (p *Pool) Build(ctx context.Context) {
	p.mu.Lock()
	p.started = true
	p.mu.Unlock()
	for range p.cfg.Makers {
		p.work.Go(p.make)
	}
	if len(p.stocks) == 0 {
		return
	}
	p.build(ctx, p.stocks[0])
	p.work.Go(func() {
		for _, s := range p.stocks[1:] {
			if p.ctx.Err() != nil {
				return
			}
			p.build(p.ctx, s)
		}
	})
}

func (p *Pool) build(ctx context.Context, s *stock) {
	p.mu.Lock()
	s.building = true
	p.mu.Unlock()
	err := p.maker.Build(ctx, s.image)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.changed.Broadcast()
	s.building, s.built, s.err, s.failures = false, err == nil, err, 0
	if err == nil {
		s.buildErrors = 0
		return
	}
	s.turnAway()
	if ctx.Err() != nil || p.closed {
		return
	}
	pause := min(buildRetry<<min(s.buildErrors, 10), maxBuildRetry)
	s.buildErrors++
	s.buildAt = time.Now().Add(pause)
	time.AfterFunc(pause, p.changed.Broadcast)
	p.metrics.BuildFailures.WithLabelValues(s.image.Name).Inc()
	p.log.Error("image could not be built: its programs start cold", "image", s.image.Name, "failures", s.buildErrors, "again_in", pause, "err", err)
}

// Take returns a sandbox for a program that wants image name.
func (p *Pool) Take(ctx context.Context, name string, cold bool) (sandbox.Sandbox, error) {
	if cold {
		return p.boot(ctx)
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	s := p.choose(name)
	if s == nil {
		p.mu.Unlock()
		p.metrics.ColdFallbacks.Inc()
		return p.boot(ctx)
	}
	if box := s.pop(); box != nil {
		p.gauge(s)
		if len(s.ready)+s.making == s.target-1 { // it was full until now
			s.refillAt = time.Now().Add(refillDelay)
		}
		time.AfterFunc(refillDelay, p.changed.Broadcast)
		p.mu.Unlock()
		return box, nil
	}
	delivery := make(chan sandbox.Sandbox, 1)
	s.waiting = append(s.waiting, delivery)
	if s.hurry != nil {
		close(s.hurry)
		s.hurry = nil
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	return p.await(ctx, s, delivery)
}

// await waits for a maker's delivery; nil says that the image is failing.
func (p *Pool) await(ctx context.Context, s *stock, delivery chan sandbox.Sandbox) (sandbox.Sandbox, error) {
	// While the image is being built there is nothing to be impatient about:
	// booting in the meantime would take the CPU from the build.
	for pending := true; pending && ctx.Err() == nil; {
		pending = p.pending(s) // if so now, there will be another round
		patience := time.NewTimer(p.cfg.WarmWait)
		select {
		case box := <-delivery:
			patience.Stop()
			if box != nil {
				return box, nil
			}
			pending = false // turned away
		case <-patience.C:
		case <-ctx.Done():
		}
		patience.Stop()
	}
	p.mu.Lock()
	for i, d := range s.waiting {
		if d == delivery {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	select {
	case box := <-delivery: // delivered at the same moment
		if box != nil {
			return box, nil
		}
	default:
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p.metrics.ColdFallbacks.Inc()
	return p.boot(ctx)
}

// pending says that a stock's image is still to be built.
func (p *Pool) pending(s *stock) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !s.built && s.err == nil && !p.closed
}

func (p *Pool) boot(ctx context.Context) (sandbox.Sandbox, error) {
	begin := time.Now()
	box, err := p.maker.Boot(ctx)
	if err != nil {
		p.metrics.MakeFailures.WithLabelValues(image.Cold).Inc()
		return nil, err
	}
	p.metrics.Made.WithLabelValues(image.Cold).Observe(time.Since(begin).Seconds())
	return box, nil
}

// choose returns the stock to take from: the smallest sufficient image with a
// sandbox ready, else the smallest that is built, else the smallest that is
// still to be built, else none.
func (p *Pool) choose(name string) *stock {
	var fallback, pending *stock
	for _, candidate := range image.Larger(name) {
		for _, s := range p.stocks {
			if s.image.Name != candidate {
				continue
			}
			if !s.built {
				if pending == nil && s.err == nil && p.started {
					pending = s
				}
				continue
			}
			if len(s.ready) > 0 {
				return s
			}
			if fallback == nil && s.failures < failuresToPause {
				fallback = s
			}
		}
	}
	if fallback == nil {
		return pending
	}
	return fallback
}

// turnAway sends a stock's waiters to cold sandboxes.
func (s *stock) turnAway() {
	for _, d := range s.waiting {
		d <- nil
	}
	s.waiting = nil
}

// pop returns a living sandbox, the one waiting longest.
func (s *stock) pop() sandbox.Sandbox {
	for len(s.ready) > 0 {
		box := s.ready[0]
		s.ready = s.ready[1:]
		select {
		case <-box.Exited():
			go func() { _ = box.Destroy() }()
		default:
			return box
		}
	}
	return nil
}

// State describes the stocks for health.
func (p *Pool) State() []api.ImageHealth {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []api.ImageHealth{}
	for _, s := range p.stocks {
		h := api.ImageHealth{Name: s.image.Name, Ready: len(s.ready), Target: s.target}
		if s.err != nil {
			h.Error = s.err.Error()
			h.RetryMS = max(time.Until(s.buildAt).Milliseconds(), 0)
		}
		out = append(out, h)
	}
	return out
}

func (p *Pool) gauge(s *stock) {
	p.metrics.Ready.WithLabelValues(s.image.Name).Set(float64(len(s.ready)))
}

// Close stops the makers and destroys what stands ready. It may be called twice.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.cancel(ErrClosed)
	p.changed.Broadcast()
	p.mu.Unlock()
	p.work.Wait()
	p.mu.Lock()
	var boxes []sandbox.Sandbox
	for _, s := range p.stocks {
		boxes = append(boxes, s.ready...)
		s.ready = nil
		s.turnAway()
	}
	p.mu.Unlock()
	errs := make([]error, len(boxes))
	var group sync.WaitGroup
	for i, box := range boxes {
		group.Go(func() { errs[i] = box.Destroy() })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("empty the pool: %w", err)
	}
	return nil
}
