package keep

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
)

// box stands for a sandbox; renewing takes a second.
type box struct {
	id     string
	err    error
	exited chan struct{}
}

func (b *box) ID() string              { return b.id }
func (b *box) Image() string           { return "bare" }
func (b *box) Warm() bool              { return true }
func (b *box) Started() bool           { return true }
func (b *box) Exited() <-chan struct{} { return b.exited }
func (b *box) Destroy() error          { return nil }
func (b *box) Run(context.Context, string, time.Duration) (api.Result, error) {
	return api.Result{}, nil
}
func (b *box) Renew(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return b.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type world struct {
	*Keeper
	mu   sync.Mutex
	gone map[string]int
}

func (w *world) destroyed(id string) int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone[id]
}

func with(t *testing.T, cfg Config, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{gone: map[string]int{}}
		w.Keeper = New(cfg, func(b sandbox.Sandbox) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.gone[b.ID()]++
		}, slog.New(slog.DiscardHandler))
		test(t, w)
		w.Close()
		w.Close()
		for id, n := range w.gone {
			if n != 1 {
				t.Errorf("%s was destroyed %d times", id, n)
			}
		}
	})
}

func sandboxNamed(id string) *box { return &box{id: id, exited: make(chan struct{})} }

var usual = Config{Most: 2, Calls: 3, Idle: time.Minute, RenewTime: 10 * time.Second}

func (w *world) take(t *testing.T, key string) string {
	t.Helper()
	b, _ := w.Take(t.Context(), key)
	if b == nil {
		return ""
	}
	return b.ID()
}

func TestATrajectoryGetsItsOwnBack(t *testing.T) {
	with(t, usual, func(t *testing.T, w *world) {
		w.Keep("a", sandboxNamed("1"), 1)
		w.Keep("b", sandboxNamed("2"), 1)
		begin := time.Now()
		if got := w.take(t, "a"); got != "1" || time.Since(begin) != time.Second {
			t.Errorf("got %q after %s, want 1 once it is renewed", got, time.Since(begin))
		}
		if got := w.take(t, "a"); got != "" {
			t.Errorf("got %q, which somebody has already", got)
		}
		if got := w.take(t, "c"); got != "" {
			t.Errorf("got %q, which is another's", got)
		}
		if w.destroyed("1")+w.destroyed("2") != 0 {
			t.Error("destroyed in use")
		}
	})
}

func TestWhatIsGivenUp(t *testing.T) {
	with(t, usual, func(t *testing.T, w *world) {
		w.Keep("a", sandboxNamed("used up"), 3)
		if w.destroyed("used up") != 1 || w.Len() != 0 {
			t.Error("kept after its last call")
		}
		broken := sandboxNamed("broken")
		broken.err = errors.New("it does not answer")
		w.Keep("a", broken, 1)
		if got := w.take(t, "a"); got != "" || w.destroyed("broken") != 1 {
			t.Errorf("got %q, which could not be renewed", got)
		}
		dead := sandboxNamed("dead")
		w.Keep("a", dead, 1)
		time.Sleep(2 * time.Second)
		close(dead.exited)
		if got := w.take(t, "a"); got != "" || w.destroyed("dead") != 1 {
			t.Errorf("got %q, which is dead", got)
		}
		w.Keep("a", sandboxNamed("old"), 1)
		time.Sleep(time.Second)
		w.Keep("b", sandboxNamed("newer"), 1)
		time.Sleep(time.Second)
		w.Keep("c", sandboxNamed("new"), 1)
		time.Sleep(time.Second)
		if w.destroyed("old") != 1 || w.destroyed("newer") != 0 || w.Len() != 2 {
			t.Errorf("%d are kept, the oldest destroyed %d times", w.Len(), w.destroyed("old"))
		}
		time.Sleep(time.Minute)
		if w.destroyed("newer") != 1 || w.destroyed("new") != 1 || w.Len() != 0 {
			t.Error("kept although nobody comes")
		}
	})
}

// Of two sandboxes of one trajectory, whose calls ran at once, one is kept.
func TestTwoOfOneTrajectory(t *testing.T) {
	with(t, usual, func(t *testing.T, w *world) {
		w.Keep("a", sandboxNamed("1"), 1)
		w.Keep("a", sandboxNamed("2"), 1)
		if got := w.take(t, "a"); got != "2" || w.destroyed("1") != 1 {
			t.Errorf("got %q, 1 destroyed %d times", got, w.destroyed("1"))
		}
	})
}

func TestACallerThatLeavesLosesNone(t *testing.T) {
	with(t, usual, func(t *testing.T, w *world) {
		w.Keep("a", sandboxNamed("1"), 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if b, _ := w.Take(ctx, "a"); b != nil {
			t.Error("got one without waiting")
		}
		time.Sleep(2 * time.Second)
		if w.destroyed("1") != 1 {
			t.Error("it is lost")
		}
	})
}

func TestNoneIsKeptAfterTheEnd(t *testing.T) {
	with(t, usual, func(t *testing.T, w *world) {
		w.Keep("a", sandboxNamed("1"), 1)
		w.Close()
		w.Keep("b", sandboxNamed("2"), 1)
		if w.destroyed("1") != 1 || w.destroyed("2") != 1 {
			t.Errorf("destroyed %v", w.gone)
		}
	})
	var none *Keeper
	if b, _ := none.Take(t.Context(), "a"); b != nil || none.Len() != 0 {
		t.Error("a nil keeper keeps something")
	}
	none.Close()
}
