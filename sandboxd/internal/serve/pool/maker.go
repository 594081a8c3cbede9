package pool

import (
	"slices"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/metrics"
)

// make is one maker: it makes whatever is needed most, until the pool closes.
func (p *Pool) make() {
	for {
		s, build, hurry := p.next()
		if s == nil {
			return
		}
		if build {
			p.log.Warn("image is built anew", "image", s.image.Name)
			p.build(p.ctx, s)
			continue
		}
		begin := time.Now()
		box, err := p.maker.Restore(p.ctx, s.image.Name, hurry)
		if err != nil {
			p.failed(s, err)
			continue
		}
		p.metrics.Made.WithLabelValues(s.image.Name).Observe(time.Since(begin).Seconds())
		p.made(s, box)
	}
}

// next waits until something must be made, and claims it: a sandbox, or an
// image. hurry is closed when somebody waits for the sandbox. nil: the pool closed.
func (p *Pool) next() (s *stock, build bool, hurry <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed {
		now := time.Now()
		if s := p.toBuild(now); s != nil {
			s.building = true
			return s, true, nil
		}
		if s := p.neediest(now); s != nil {
			s.making++
			return s, false, s.pace()
		}
		p.changed.Wait()
	}
	return nil, false, nil
}

// pace returns the channel that is closed once somebody waits for what is begun
// now; it is closed already if somebody does.
func (s *stock) pace() <-chan struct{} {
	if len(s.waiting) > 0 {
		return urgent
	}
	if s.hurry == nil {
		s.hurry = make(chan struct{})
	}
	return s.hurry
}

// urgent is closed.
var urgent = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// toBuild returns a stock whose image is due for another build: it could not be
// built, or nothing can be restored from it. Restores still under way come first.
func (p *Pool) toBuild(now time.Time) *stock {
	for _, s := range p.stocks {
		if s.building || s.making > 0 {
			continue
		}
		if s.err != nil && !now.Before(s.buildAt) || s.failures >= failuresToRebuild && !now.Before(s.pauseTo) {
			return s
		}
	}
	return nil
}

// neediest returns the stock with the most unserved waiters, else the one
// filled least, else nil.
func (p *Pool) neediest(now time.Time) *stock {
	var best *stock
	var bestWaiting int
	var bestFill float64
	for _, s := range p.stocks {
		if !s.built || s.building || s.failures >= failuresToRebuild || now.Before(s.pauseTo) {
			continue
		}
		waiting := len(s.waiting) - s.making
		fill := float64(len(s.ready)+s.making) / float64(max(s.target, 1))
		if waiting <= 0 && (len(s.ready)+s.making >= s.target || now.Before(s.refillAt)) {
			continue
		}
		if best == nil || waiting > bestWaiting || waiting <= 0 && bestWaiting <= 0 && fill < bestFill {
			best, bestWaiting, bestFill = s, waiting, fill
		}
	}
	return best
}

// made delivers a sandbox to the first waiter or keeps it.
func (p *Pool) made(s *stock, box sandbox.Sandbox) {
	p.mu.Lock()
	s.making--
	s.failures = 0
	if len(s.waiting) > 0 {
		s.waiting[0] <- box // has room for one and gets only one
		s.waiting = s.waiting[1:]
		p.mu.Unlock()
		return
	}
	s.ready = append(s.ready, box)
	p.gauge(s)
	p.mu.Unlock()
	p.work.Go(func() { p.watch(s, box) })
}

// failed has another one made; if it fails again and again, it pauses the image and
// sends its waiters to cold sandboxes.
func (p *Pool) failed(s *stock, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.making--
	if p.closed {
		return
	}
	s.failures++
	p.metrics.MakeFailures.WithLabelValues(s.image.Name).Inc()
	p.log.Error("sandbox could not be restored", "image", s.image.Name, "failures", s.failures, "err", err)
	if s.failures < failuresToPause {
		p.changed.Broadcast()
		return
	}
	s.pauseTo = time.Now().Add(failurePause)
	time.AfterFunc(failurePause, p.changed.Broadcast)
	s.turnAway()
}

// watch replaces a sandbox that dies while it waits.
func (p *Pool) watch(s *stock, box sandbox.Sandbox) {
	select {
	case <-p.ctx.Done():
		return
	case <-box.Exited():
	}
	p.mu.Lock()
	i := slices.Index(s.ready, box)
	if i >= 0 {
		s.ready = slices.Delete(s.ready, i, i+1)
		p.gauge(s)
		p.changed.Broadcast()
	}
	p.mu.Unlock()
	if i >= 0 {
		p.metrics.Replaced.WithLabelValues(metrics.DiedWaiting).Inc()
		p.log.Warn("a waiting sandbox died and is replaced", "sandbox", box.ID(), "image", s.image.Name)
		if err := box.Destroy(); err != nil {
			p.metrics.CleanupFailures.Inc()
		}
	}
}
