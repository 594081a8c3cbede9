package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
)

// One of two executors is killed in the midst of its programs: its calls come back to
// the other one, and none is lost or given up.
func TestAKilledExecutorsCallsAreRunByTheOther(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	kafkatest.Run(t, func(w *kafkatest.World) {
		boxes := func() *fakeSandboxes {
			return &fakeSandboxes{slots: 4, program: func(string, int) (client.Result, time.Duration, error) { return printed("42\n"), 2 * time.Second, nil }}
		}
		doomed := newExecutor()
		doomed.sandboxes = boxes()
		doomed.cfg = config{attempts: 3, lock: 30 * time.Second, patience: time.Minute}
		env := w.Env(name)
		line := w.Mortal(env, 1)
		first := w.Start(doomed.run, env)
		second, _ := start(w, boxes())
		defer second.Stop()
		time.Sleep(5 * time.Second)
		const calls = 64
		for i := range calls {
			put(w, codeCall(i, fmt.Sprint(i)))
		}
		time.Sleep(time.Second)
		first.Kill(line)
		w.Await("code-results", calls-4)
		got := executions(w.Settle("code-results"))
		if len(got) != calls {
			t.Errorf("%d calls answered, want %d", len(got), calls)
		}
		again := 0
		for _, e := range got {
			if e.GetDelivery() > 1 {
				again++
			}
		}
		if again == 0 {
			t.Error("no call was delivered again: the killed executor held none")
		}
		if n := len(w.Settle("trajectories")) + len(w.Settle("dead-letters")); n != 0 {
			t.Errorf("%d trajectories or dead letters, want none", n)
		}
	})
}
