package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/sandboxtest"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
)

var schedules = flag.Int("schedules", 12, "how many random schedules of executors, daemon, kills and scaling are tried")

// fleet is executors around one sandboxd: its real HTTP and admission, scripted programs,
// a real share group, all in virtual time.
type fleet struct {
	*kafkatest.World
	t      *testing.T
	daemon *sandboxtest.Daemon
	slots  int
	alive  []*member
	put    int
	seed   uint64
}

type member struct {
	*kafkatest.Running
	env  *stage.Env
	line *kafkatest.Lifeline
}

// takes is a program that takes as long as its text says.
func takes(ctx context.Context, code string) api.Result {
	d, _ := time.ParseDuration(code)
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return api.Result{Outcome: api.OK, Stdout: api.Stream{Kept: []byte(code), Total: int64(len(code))}}
}

func newFleet(t *testing.T, w *kafkatest.World, slots int) *fleet {
	return &fleet{World: w, t: t, slots: slots, daemon: sandboxtest.New(sandboxtest.Config{Slots: slots, Program: takes})}
}

func (f *fleet) scaleUp() *member {
	f.seed++
	e := newExecutor()
	e.sandboxes = daemon{f.daemon.Client("t.")}
	e.cfg = config{attempts: 3, lock: 30 * time.Second, patience: time.Minute, slots: f.slots - 1}
	env := f.Env(name)
	env.Kafka.Instance = fmt.Sprint("executor-", f.seed)
	m := &member{env: env, line: f.Mortal(env, f.seed)}
	m.Running = f.Start(e.run, env)
	f.alive = append(f.alive, m)
	return m
}

// takeOut removes a member at random from those alive.
func (f *fleet) takeOut(r *rand.Rand) *member {
	i := r.IntN(len(f.alive))
	m := f.alive[i]
	f.alive = append(f.alive[:i:i], f.alive[i+1:]...)
	return m
}

func (f *fleet) calls(n int, took string) {
	for range n {
		put(f.World, codeCall(f.put, took))
		f.put++
	}
}

// finished is how many different calls have come to an end.
func (f *fleet) finished() int {
	ended := map[string]bool{}
	for id := range executions(f.Await("code-results", 0)) {
		ended[id] = true
	}
	for _, m := range f.Await("trajectories", 0) {
		ended[fmt.Sprintf("call-%d", m.(*sluicev1.Trajectory).GetCopy()-1)] = true
	}
	return len(ended)
}

// running is how many programs run in places that were reserved.
func (f *fleet) running() int {
	h := f.daemon.Health()
	return h.Reserved - h.Idle
}

// done wants every call to end within a time that leaves room for a lock, the pauses and
// the programs, and no more.
func (f *fleet) done(within time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(within); f.finished() < f.put; {
		if time.Now().After(end) {
			f.t.Fatalf("%d of %d calls have ended after %v; sandboxd says %+v", f.finished(), f.put, within, f.daemon.Health())
		}
		f.Settle("code-results")
	}
}

func (f *fleet) stop() {
	for _, m := range f.alive {
		m.Stop()
	}
	f.daemon.Kill()
}

// The smallest way in which a run once stood still for ever: the calls that one executor
// holds lose their places with the daemon, and the idle slots of others have them all
// when it comes back.
func TestCallsInHandComeBeforeIdleExecutors(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	kafkatest.Run(t, func(w *kafkatest.World) {
		f := newFleet(t, w, 5)
		defer f.stop()
		f.daemon.Start()
		f.scaleUp()
		time.Sleep(20 * time.Second) // its slots have found their group
		f.calls(3, "25s")
		for start := time.Now(); time.Since(start) < 20*time.Second && f.running() != 3; {
			time.Sleep(100 * time.Millisecond)
		}
		if n := f.running(); n != 3 {
			t.Fatalf("%d calls run, want 3: the test proves nothing", n)
		}
		f.daemon.Kill()
		f.scaleUp()
		f.scaleUp()
		time.Sleep(4 * time.Second)
		f.daemon.Start()
		f.done(2 * time.Minute)
		for id, e := range executions(f.Await("code-results", 3)) {
			if e.GetUnknownRuns() != 1 {
				t.Errorf("%s ran after a cut and says %d unknown runs, want 1", id, e.GetUnknownRuns())
			}
		}
	})
}

// Executors, their slots, sandboxd, calls, kills and scaling, on random schedules: while
// one executor and the daemon live, the calls move, whoever held them before.
func TestSomeCallAlwaysMoves(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	for seed := range uint64(*schedules) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) {
				r := rand.New(rand.NewPCG(seed, 1))
				f := newFleet(t, w, 2+r.IntN(4))
				defer f.stop()
				f.seed = seed * 1000
				f.daemon.Start()
				f.scaleUp()
				up := true
				for range 12 + r.IntN(12) {
					switch r.IntN(6) {
					case 0:
						if up = !up; up {
							f.daemon.Start()
						} else {
							f.daemon.Kill()
						}
					case 1:
						if len(f.alive) < 4 {
							f.scaleUp()
						}
					case 2:
						if len(f.alive) > 0 {
							m := f.takeOut(r)
							m.Kill(m.line)
						}
					case 3:
						if len(f.alive) > 1 {
							f.takeOut(r).Stop()
						}
					default:
						f.calls(1+r.IntN(4), fmt.Sprint(time.Duration(1+r.IntN(8))*time.Second))
					}
					time.Sleep(time.Duration(r.Int64N(int64(8 * time.Second))))
					if h := f.daemon.Health(); h.WaitingCalls > 0 && h.Idle > 0 {
						t.Errorf("a call waits while a reservation is idle: %+v", h)
					}
				}
				f.daemon.Start()
				if len(f.alive) == 0 {
					f.scaleUp()
				}
				f.done(4 * time.Minute)
			})
		})
	}
}
