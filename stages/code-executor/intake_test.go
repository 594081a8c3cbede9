package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/sandboxd/sandboxtest"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
)

// withIntake starts an executor on a daemon, as its command line would.
func withIntake(w *kafkatest.World, d *sandboxtest.Daemon, intake string) (*kafkatest.Running, *stage.Env) {
	e := newExecutor()
	e.sandboxes = daemon{d.Client("t.")}
	e.cfg = config{address: "/x", attempts: 3, lock: 30 * time.Second, patience: time.Minute, intake: intake}
	if err := e.cfg.validate(); err != nil {
		w.T.Fatal(err)
	}
	env := w.Env(name)
	return w.Start(e.run, env), env
}

// Brokers without share groups are served by a classic group, chosen by itself or asked
// for; asking them for a share group ends the process with what to do instead.
func TestBrokersWithoutShareGroups(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	for _, intake := range []string{"", "classic"} {
		t.Run(fmt.Sprintf("intake=%q", intake), func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) {
				d := sandboxtest.New(sandboxtest.Config{Slots: 5, Program: takes})
				d.Start()
				defer d.Kill()
				s, env := withIntake(w, d, intake)
				defer s.Stop()
				for i := range 30 {
					put(w, codeCall(i, "2s"))
				}
				got := executions(w.Await("code-results", 30))
				for id, e := range got {
					if e.GetStdout() != "2s" || e.GetDelivery() != 1 {
						t.Errorf("%s: %v", id, e)
					}
				}
				if len(got) != 30 || !env.Health.IsReady() {
					t.Errorf("%d calls answered, ready: %v", len(got), env.Health.IsReady())
				}
			}, kfake.MaxVersions(kversion.V3_9_0()))
		})
	}
	t.Run("intake=share", func(t *testing.T) {
		kafkatest.Run(t, func(w *kafkatest.World) {
			d := sandboxtest.New(sandboxtest.Config{})
			d.Start()
			defer d.Kill()
			s, _ := withIntake(w, d, "share")
			if err := s.Ended(); !errors.Is(err, kafka.ErrUnsupported) || !strings.Contains(err.Error(), "classic") {
				t.Errorf("ended with %v, want ErrUnsupported that names the classic intake", err)
			}
		}, kfake.MaxVersions(kversion.V3_9_0()))
	})
}

// A group has one kind: an executor of the other would do every call twice.
func TestIntakesDoNotMix(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	for _, c := range []struct{ first, second string }{{"share", "classic"}, {"classic", "share"}} {
		t.Run(c.first+" then "+c.second, func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) {
				d := sandboxtest.New(sandboxtest.Config{Program: takes})
				d.Start()
				defer d.Kill()
				s, _ := withIntake(w, d, c.first)
				defer s.Stop()
				put(w, codeCall(0, "1s"))
				w.Await("code-results", 1)
				other, _ := withIntake(w, d, c.second)
				if err := other.Ended(); !errors.Is(err, kafka.ErrConfig) || !strings.Contains(err.Error(), "--intake "+c.first) {
					t.Errorf("ended with %v, want ErrConfig that names --intake %s", err, c.first)
				}
			})
		})
	}
}

// In the classic intake too a call whose connection was cut is repeated and says so.
func TestClassicIntakeRepeatsWhatWasCut(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	kafkatest.Run(t, func(w *kafkatest.World) {
		d := sandboxtest.New(sandboxtest.Config{Slots: 4, Program: takes})
		d.Start()
		defer d.Kill()
		s, _ := withIntake(w, d, "classic")
		defer s.Stop()
		for i := range 3 {
			put(w, codeCall(i, "20s"))
		}
		time.Sleep(15 * time.Second)
		if h := d.Health(); h.Running != 3 {
			t.Fatalf("%d calls run, want 3: the test proves nothing", h.Running)
		}
		d.Kill()
		time.Sleep(4 * time.Second)
		d.Start()
		for id, e := range executions(w.Await("code-results", 3)) {
			if e.GetUnknownRuns() != 1 {
				t.Errorf("%s says %d unknown runs, want 1", id, e.GetUnknownRuns())
			}
		}
	})
}

// A call that finds no place goes back to its topic, unspent, and an executor whose
// sandboxd has one takes it; the one without is not ready and says why.
func TestACallThatFindsNoPlaceGoesToAnotherExecutor(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	kafkatest.Run(t, func(w *kafkatest.World) {
		full := sandboxtest.New(sandboxtest.Config{Slots: 2, Reservable: 1, Program: takes})
		full.Start()
		defer full.Kill()
		s, env := withIntake(w, full, "share")
		defer s.Stop()
		time.Sleep(20 * time.Second)
		// Somebody else's calls take every place, one after the other, for ever.
		other := full.Client("t.")
		hog, stop := context.WithCancel(context.Background())
		defer stop()
		for range 6 {
			go func() {
				for hog.Err() == nil {
					_, _ = other.Run(hog, client.Request{Code: "25s"})
				}
			}()
		}
		time.Sleep(3 * time.Minute)
		if env.Health.IsReady() {
			t.Error("ready without a place at sandboxd for minutes")
		}
		put(w, codeCall(0, "1s"))
		free := sandboxtest.New(sandboxtest.Config{Program: takes})
		free.Start()
		defer free.Kill()
		second, _ := withIntake(w, free, "share")
		defer second.Stop()
		got := executions(w.Await("code-results", 1))["call-0"]
		if got.GetUnknownRuns() != 0 || got.GetDelivery() != 1 {
			t.Errorf("it ran as %v, want its first attempt", got)
		}
		stop()
		time.Sleep(time.Minute)
		if !env.Health.IsReady() {
			t.Error("not ready though there are places again")
		}
	})
}
