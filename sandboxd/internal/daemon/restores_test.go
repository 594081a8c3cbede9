package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/metrics"
)

// brokenRuntime puts a script in runsc's place once the daemon has been started: it
// has body decide about each restore, whose number is $n, and passes the rest on. Restores
// that begin together are counted one by one.
func brokenRuntime(t *testing.T, dir, runsc, body string, args ...string) (d *Daemon, breakIt func()) {
	t.Helper()
	link := filepath.Join(dir, "runsc")
	if err := os.Symlink(runsc, link); err != nil {
		t.Fatal(err)
	}
	d = startDaemon(t, append([]string{"--runsc=" + link}, args...)...)
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *\" restore \"*)\n  n=$(flock %s/lock sh -c 'echo x >> %s/count; wc -l < %s/count')\n  %s\nesac\nexec %s \"$@\"\n", dir, dir, dir, body, runsc)
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return d, func() {
		t.Helper()
		if err := os.Symlink(broken, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
}

// Restores that die now and then before they are ready cost nobody a call.
func TestRestoresThatDieEarly(t *testing.T) {
	d, breakIt := brokenRuntime(t, t.TempDir(), needGVisor(t), `[ $((n % 5)) != 0 ] || { echo "urpc method failed: EOF" >&2; exit 128; }`, "--pool=bare=2")
	breakIt()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 10 {
				if r := call(t, d, api.Request{Code: "print(6*7)"}); r.Outcome != api.OK || r.Stdout.Text() != "42\n" {
					t.Errorf("%s: %s %q", r.Outcome, r.Message, r.Stdout.Text())
				}
			}
		})
	}
	group.Wait()
	if n := testutil.ToFloat64(d.metrics.MakeFailures.WithLabelValues("bare")); n == 0 {
		t.Error("no restore failed, so nothing was shown")
	}
	if n := testutil.ToFloat64(d.metrics.ColdFallbacks); n > 0 {
		t.Errorf("%v callers were sent to cold sandboxes", n)
	}
	if h, ready := d.Health(); !ready {
		t.Errorf("health is %q: %s", h.Status, h.Reason)
	}
}

// One that dies after it was ready is replaced before anybody gets it.
func TestRestoresThatDieReady(t *testing.T) {
	dir, runsc := t.TempDir(), needGVisor(t)
	die := filepath.Join(dir, "die")
	d, breakIt := brokenRuntime(t, dir, runsc, `[ $n != 1 ] || { `+runsc+` "$@" <&0 & while [ ! -e `+die+` ]; do sleep 0.05; done; kill -9 $!; exit 137; }`, "--pool=bare=1")
	breakIt()
	if r := call(t, d, api.Request{Code: "print(1)"}); r.Outcome != api.OK {
		t.Fatalf("%s: %s", r.Outcome, r.Message)
	}
	d.settle(t) // the refill is the one that will die
	if err := os.WriteFile(die, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); testutil.ToFloat64(d.metrics.Replaced.WithLabelValues(metrics.DiedWaiting)) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the sandbox that died while it waited was not replaced")
		}
	}
	if r := call(t, d, api.Request{Code: "print(2)"}); r.Outcome != api.OK || r.Stdout.Text() != "2\n" {
		t.Errorf("%s: %s", r.Outcome, r.Message)
	}
}
