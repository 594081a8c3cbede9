package reaper

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/host/proctree"
)

// A grandchild in a session of its own is collected once it is inherited and dead.
func TestOrphansAreCollected(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// The shell prints the number of a process that outlives it.
	out, err := exec.Command("/bin/sh", "-c", "setsid sleep 0.2 >/dev/null & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		if time.Now().After(deadline) {
			s, _ := proctree.Read(pid)
			t.Fatalf("process %d is still there, in state %c", pid, s.State)
		}
	}
}

// What this program has started is left to who waits for it.
func TestOwnChildrenAreLeftAlone(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, group := range []bool{false, true} {
		cmd := exec.Command("/bin/sh", "-c", "exit 7")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: group}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for s, ok := proctree.Read(cmd.Process.Pid); !ok || s.State != 'Z'; s, ok = proctree.Read(cmd.Process.Pid) {
			time.Sleep(time.Millisecond)
		}
		r.collect()
		if err := cmd.Wait(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 7 {
			t.Errorf("group of its own %v: somebody else waited for it: %v", group, err)
		}
	}
}

func TestOrphan(t *testing.T) {
	own := family{group: 10, session: 5}
	for _, tt := range []struct {
		name string
		pid  int
		its  family
		want bool
	}{
		{"a child as exec starts it", 20, family{10, 5}, false},
		{"a child in a group of its own", 20, family{20, 5}, false},
		{"a grandchild in its parent's group", 21, family{20, 5}, true},
		{"gVisor's kernel", 22, family{22, 22}, true},
	} {
		if got := orphan(tt.pid, tt.its, own); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
