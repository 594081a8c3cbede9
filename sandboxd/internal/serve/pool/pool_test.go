package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/image"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/metrics"
)

// box is a sandbox that does nothing.
type box struct {
	id, image string
	warm      bool
	exited    chan struct{}
	destroyed bool
	maker     *maker
}

func (b *box) ID() string              { return b.id }
func (b *box) Image() string           { return b.image }
func (b *box) Warm() bool              { return b.warm }
func (b *box) Started() bool           { return false }
func (b *box) Exited() <-chan struct{} { return b.exited }
func (b *box) Run(context.Context, string, time.Duration) (api.Result, error) {
	return api.Result{}, nil
}
func (b *box) Destroy() error {
	b.maker.mu.Lock()
	defer b.maker.mu.Unlock()
	if !b.destroyed {
		b.destroyed = true
		b.maker.alive--
	}
	return nil
}

// maker takes a second per restore and counts.
type maker struct {
	mu                           sync.Mutex
	alive, made, booted, built   int
	inTheMaking, mostInTheMaking int
	restores, failEvery, hurried int
	buildTime                    time.Duration
	buildError, restoreError     error
}

func (m *maker) Build(context.Context, image.Image) error {
	time.Sleep(m.buildTime)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.built++
	return m.buildError
}

func (m *maker) Restore(ctx context.Context, name string, hurry <-chan struct{}) (sandbox.Sandbox, error) {
	m.mu.Lock()
	m.inTheMaking++
	m.mostInTheMaking = max(m.mostInTheMaking, m.inTheMaking)
	m.restores++
	failing := m.failEvery > 0 && m.restores%m.failEvery == 0
	m.mu.Unlock()
	ready := make(chan struct{})
	defer close(ready)
	go func() {
		select {
		case <-hurry:
			m.mu.Lock()
			defer m.mu.Unlock()
			m.hurried++
		case <-ready:
		}
	}()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inTheMaking--
	if m.restoreError != nil {
		return nil, m.restoreError
	}
	if failing {
		return nil, errors.New("one in many")
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return m.add(name, true), nil
}

func (m *maker) Boot(context.Context) (sandbox.Sandbox, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.booted++
	return m.add(image.Cold, false), nil
}

func (m *maker) add(name string, warm bool) *box {
	m.made++
	m.alive++
	return &box{id: fmt.Sprint(m.made), image: name, warm: warm, exited: make(chan struct{}), maker: m}
}

// inPool runs a test in virtual time on a pool that is full.
func inPool(t *testing.T, cfg Config, m *maker, test func(t *testing.T, p *Pool)) {
	synctest.Test(t, func(t *testing.T) {
		if cfg.Makers == 0 {
			cfg.Makers = 1
		}
		if cfg.WarmWait == 0 {
			cfg.WarmWait = 5 * time.Second
		}
		p := New(cfg, image.Standard(), m, metrics.New(), slog.New(slog.DiscardHandler))
		p.Build(t.Context())
		time.Sleep(time.Minute)
		test(t, p)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error("closing twice:", err)
		}
	})
}

func (p *Pool) readyOf(name string) int {
	for _, s := range p.State() {
		if s.Name == name {
			return s.Ready
		}
	}
	return -1
}

func take(t *testing.T, p *Pool, name string) *box {
	t.Helper()
	got, err := p.Take(t.Context(), name, false)
	if err != nil {
		t.Fatal(err)
	}
	return got.(*box)
}

func TestFillsAndRefills(t *testing.T) {
	m := &maker{}
	inPool(t, Config{Targets: map[string]int{image.Bare: 2, image.Sympy: 1}, Makers: 2}, m, func(t *testing.T, p *Pool) {
		if p.readyOf(image.Bare) != 2 || p.readyOf(image.Sympy) != 1 {
			t.Fatalf("the pool holds %+v", p.State())
		}
		b := take(t, p, image.Bare)
		if !b.warm || b.image != image.Bare {
			t.Errorf("got %+v, want a warm bare one", b)
		}
		time.Sleep(10 * time.Second)
		if p.readyOf(image.Bare) != 2 {
			t.Errorf("not refilled: %+v", p.State())
		}
		if m.mostInTheMaking > 2 {
			t.Errorf("%d in the making at once, want at most 2", m.mostInTheMaking)
		}
		_ = b.Destroy()
	})
	if m.alive != 0 {
		t.Errorf("%d sandboxes outlive the pool", m.alive)
	}
}

func TestNoSandboxIsHandedOutTwice(t *testing.T) {
	m := &maker{}
	inPool(t, Config{Targets: map[string]int{image.Bare: 3}, Makers: 2, WarmWait: time.Hour}, m, func(t *testing.T, p *Pool) {
		var mu sync.Mutex
		seen := map[string]bool{}
		var group sync.WaitGroup
		for range 40 {
			group.Go(func() {
				b := take(t, p, image.Bare)
				mu.Lock()
				defer mu.Unlock()
				if seen[b.id] {
					t.Errorf("sandbox %s was handed out twice", b.id)
				}
				seen[b.id] = true
			})
		}
		group.Wait()
		if m.booted != 0 {
			t.Errorf("%d callers were sent to cold sandboxes within their patience", m.booted)
		}
	})
}

func TestALargerImageServesWhenTheRightOneIsEmpty(t *testing.T) {
	inPool(t, Config{Targets: map[string]int{image.Bare: 0, image.Sympy: 1}}, &maker{}, func(t *testing.T, p *Pool) {
		if b := take(t, p, image.Numpy); b.image != image.Sympy {
			t.Errorf("got %s, want sympy: it has numpy", b.image)
		}
	})
}

func TestASmallerImageDoesNot(t *testing.T) {
	m := &maker{}
	inPool(t, Config{Targets: map[string]int{image.Bare: 1}}, m, func(t *testing.T, p *Pool) {
		if b := take(t, p, image.Sympy); b.warm {
			t.Errorf("got a warm %s for sympy, want a cold one", b.image)
		}
	})
}

func TestPatienceEndsInAColdSandbox(t *testing.T) {
	m := &maker{}
	inPool(t, Config{Targets: map[string]int{image.Bare: 0}, WarmWait: 500 * time.Millisecond}, m, func(t *testing.T, p *Pool) {
		begin := time.Now()
		b := take(t, p, image.Bare)
		if b.warm || time.Since(begin) != 500*time.Millisecond {
			t.Errorf("got warm=%v after %s, want a cold one after 500ms", b.warm, time.Since(begin))
		}
	})
}

func TestACallerThatLeavesLosesNoSandbox(t *testing.T) {
	m := &maker{}
	inPool(t, Config{Targets: map[string]int{image.Bare: 0}}, m, func(t *testing.T, p *Pool) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := p.Take(ctx, image.Bare, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		time.Sleep(time.Minute)
	})
	if m.alive != 0 {
		t.Errorf("%d sandboxes are lost", m.alive)
	}
}

func TestADeadSandboxIsReplacedAndNeverHandedOut(t *testing.T) {
	m := &maker{}
	inPool(t, Config{Targets: map[string]int{image.Bare: 1}}, m, func(t *testing.T, p *Pool) {
		p.mu.Lock()
		dead := p.stocks[0].ready[0].(*box)
		p.mu.Unlock()
		close(dead.exited)
		time.Sleep(time.Minute)
		if b := take(t, p, image.Bare); b == dead {
			t.Error("the dead one was handed out")
		}
		if !dead.destroyed {
			t.Error("the dead one was not destroyed")
		}
	})
}

func TestAnImageThatCannotBeBuiltMeansCold(t *testing.T) {
	m := &maker{buildError: errors.New("no checkpoint here")}
	inPool(t, Config{Targets: map[string]int{image.Bare: 1}}, m, func(t *testing.T, p *Pool) {
		if b := take(t, p, image.Bare); b.warm {
			t.Error("got a warm one from an image that was not built")
		}
		if s := p.State(); s[0].Error != "no checkpoint here" {
			t.Errorf("health does not say why: %+v", s)
		}
	})
}

func TestAnImageThatCouldNotBeBuiltIsTriedAgain(t *testing.T) {
	m := &maker{buildError: errors.New("no checkpoint here")}
	inPool(t, Config{Targets: map[string]int{image.Bare: 1}}, m, func(t *testing.T, p *Pool) {
		built := func() int {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.built
		}
		// Within the first minute: at once, and after 5, 15 and 35 seconds.
		if built() != 4 {
			t.Errorf("tried %d times within a minute, want 4", built())
		}
		if s := p.State(); s[0].RetryMS != 15_000 {
			t.Errorf("the next attempt is said to come in %d ms, want 15 s", s[0].RetryMS)
		}
		time.Sleep(24 * time.Hour)
		if perHour := built() / 24; perHour < 11 || perHour > 13 {
			t.Errorf("tried %d times an hour, want 12: every 5 minutes", perHour)
		}
		m.mu.Lock()
		m.buildError = nil
		m.mu.Unlock()
		time.Sleep(10 * time.Minute)
		if b := take(t, p, image.Bare); !b.warm {
			t.Error("still cold after building works again")
		}
		if s := p.State(); s[0].Error != "" || s[0].RetryMS != 0 {
			t.Errorf("health still complains: %+v", s)
		}
	})
}

func TestARefillLeavesTheCPUToTheProgramFirst(t *testing.T) {
	m := &maker{}
	inPool(t, Config{Targets: map[string]int{image.Bare: 2}}, m, func(t *testing.T, p *Pool) {
		made := func() int {
			synctest.Wait()
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.inTheMaking
		}
		take(t, p, image.Bare)
		if n := made(); n != 0 {
			t.Errorf("%d are in the making the moment that one is taken", n)
		}
		time.Sleep(refillDelay)
		if n := made(); n != 1 {
			t.Errorf("%d are in the making after the delay, want 1", n)
		}
		time.Sleep(time.Minute)
		take(t, p, image.Bare)
		take(t, p, image.Bare)
		go func() { _, _ = p.Take(t.Context(), image.Bare, false) }()
		if n := made(); n != 1 {
			t.Errorf("%d are in the making while a caller waits, want 1 at once", n)
		}
		time.Sleep(time.Minute)
	})
}

// What is made for somebody who waits is made in a hurry, whether it was begun
// before or after he came; what nobody waits for is not.
func TestRefillHurriesOnceSomebodyWaits(t *testing.T) {
	m := &maker{}
	inPool(t, Config{Targets: map[string]int{image.Bare: 1}}, m, func(t *testing.T, p *Pool) {
		hurried := func() int {
			synctest.Wait()
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.hurried
		}
		take(t, p, image.Bare)
		time.Sleep(refillDelay)
		if n := hurried(); n != 0 {
			t.Errorf("%d were made in a hurry although nobody waited", n)
		}
		go func() { _, _ = p.Take(t.Context(), image.Bare, false) }()
		go func() { _, _ = p.Take(t.Context(), image.Bare, false) }()
		if n := hurried(); n != 1 {
			t.Errorf("%d hurry while somebody waits for the one in the making, want 1", n)
		}
		time.Sleep(time.Second)
		if n := hurried(); n != 2 {
			t.Errorf("%d hurried, want 2: one was begun while somebody waited", n)
		}
		time.Sleep(time.Minute)
		if n := hurried(); n != 2 {
			t.Errorf("%d hurried, want 2: the last refill was for nobody", n)
		}
	})
}

// A restore that fails now and then costs whoever waits a little time, and no cold
// start.
func TestARestoreThatFailsNowAndThenCostsNoCall(t *testing.T) {
	m := &maker{failEvery: 5}
	inPool(t, Config{Targets: map[string]int{image.Bare: 1}, WarmWait: time.Minute}, m, func(t *testing.T, p *Pool) {
		for i := range 50 {
			if b := take(t, p, image.Bare); !b.warm {
				t.Errorf("caller %d was sent to a cold sandbox", i)
			}
		}
		if m.built != 1 {
			t.Errorf("the image was built %d times, want once", m.built)
		}
	})
}

func TestFailingRestoresRebuildTheImage(t *testing.T) {
	m := &maker{restoreError: errors.New("broken image")}
	inPool(t, Config{Targets: map[string]int{image.Bare: 1}}, m, func(t *testing.T, p *Pool) {
		if b := take(t, p, image.Bare); b.warm {
			t.Error("got a warm one although restoring fails")
		}
		if m.built < 2 {
			t.Errorf("built %d times, want again after %d failures", m.built, failuresToRebuild)
		}
		m.mu.Lock()
		m.restoreError = nil
		m.mu.Unlock()
		time.Sleep(time.Minute)
		if b := take(t, p, image.Bare); !b.warm {
			t.Error("still cold after restoring works again")
		}
	})
}

func TestWaitersComeBeforeShelves(t *testing.T) {
	m := &maker{}
	inPool(t, Config{Targets: map[string]int{image.Bare: 1, image.Sympy: 4}, WarmWait: time.Minute}, m, func(t *testing.T, p *Pool) {
		for range 4 {
			take(t, p, image.Sympy) // four to refill, one second each
		}
		take(t, p, image.Bare)
		begin := time.Now()
		b := take(t, p, image.Bare)
		if b.image != image.Bare || time.Since(begin) > 2*time.Second {
			t.Errorf("got %s after %s, want bare before the stocks are filled", b.image, time.Since(begin))
		}
	})
}

func TestCallersWaitForAnImageThatIsBeingBuilt(t *testing.T) {
	m := &maker{buildTime: 3 * time.Second}
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{Targets: map[string]int{image.Bare: 1, image.Sympy: 1}, Makers: 1, WarmWait: 1500 * time.Millisecond},
			image.Standard(), m, metrics.New(), slog.New(slog.DiscardHandler))
		begin := time.Now()
		p.Build(t.Context())
		if time.Since(begin) != 3*time.Second {
			t.Errorf("Build took %s, want the first image's 3s", time.Since(begin))
		}
		if b := take(t, p, image.Sympy); b.image != image.Sympy || m.booted != 0 {
			t.Errorf("got %s, %d booted; want to wait for the sympy image", b.image, m.booted)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Before Build nobody waits for images that nobody builds.
func TestBeforeBuildCallersGetColdSandboxes(t *testing.T) {
	m := &maker{}
	p := New(Config{Targets: map[string]int{image.Bare: 1}, Makers: 1, WarmWait: time.Hour}, image.Standard(), m, metrics.New(), slog.New(slog.DiscardHandler))
	if b := take(t, p, image.Bare); b.warm {
		t.Error("got a warm one")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
