package daemon

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
)

// The daemon hears of an exit as it happens, not once gVisor has tidied up.
// (Either may be noticed first on a busy machine, so one of several will do.)
func TestExitIsHeardAsItHappens(t *testing.T) {
	d := startDaemon(t)
	for _, cold := range []bool{false, true} {
		heard := map[string]int{}
		for range 10 {
			box, err := d.pool.Take(t.Context(), "bare", cold)
			if err != nil {
				t.Fatal(err)
			}
			s := box.(*sandbox.Instance)
			r, err := s.Run(t.Context(), "print('to the last byte'); raise SystemExit(7)", 10*time.Second)
			if err != nil || r.ExitCode != 7 || r.Stdout.Text() != "to the last byte\n" {
				t.Errorf("cold %v: exit code %d, stdout %q, %v", cold, r.ExitCode, r.Stdout.Text(), err)
			}
			if err := s.Destroy(); err != nil {
				t.Error(err)
			}
			if heard[s.HeardBy()]++; s.HeardBy() == sandbox.HeardExit {
				break
			}
		}
		if heard[sandbox.HeardExit] == 0 {
			t.Errorf("cold %v: ends were heard by %v, never by the exit call", cold, heard)
		}
	}
}

// gVisor's kernel runs with the collector settings that the prewarmer gives it.
func TestKernelsCollectLess(t *testing.T) {
	d := startDaemon(t)
	tuned := 0
	for _, pid := range processesNaming(d.dir.Prefix()) {
		env, err := os.ReadFile("/proc/" + pid + "/environ")
		if err == nil && strings.Contains(string(env), "GOGC=600") {
			tuned++
		}
	}
	if tuned == 0 {
		t.Errorf("no process of the waiting sandbox runs with GOGC=600")
	}
}

// A child's exit is not the program's, and a thread's is nobody's.
func TestOnlyTheProgramsExitEndsIt(t *testing.T) {
	d := startDaemon(t)
	const code = `
import os, threading, time
pid = os.fork()
if pid == 0:
    os._exit(5)
os.waitpid(pid, 0)
t = threading.Thread(target=print, args=("thread",))
t.start()
t.join()
time.sleep(0.1)
print("program")
`
	box, err := d.pool.Take(t.Context(), "bare", false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := box.Run(t.Context(), code, 10*time.Second)
	if err != nil || r.ExitCode != 0 || r.Stdout.Text() != "thread\nprogram\n" {
		t.Errorf("exit code %d, stdout %q, %v", r.ExitCode, r.Stdout.Text(), err)
	}
	if err := box.Destroy(); err != nil {
		t.Error(err)
	}
}
