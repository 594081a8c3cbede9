package daemon

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/proctree"
)

// processOneCalls is how many calls the daemon makes as process 1.
var processOneCalls = flag.Int("process-one-calls", 50, "calls of the test in which the daemon is process 1")

// As process 1 of a container the daemon leaves no dead processes behind.
func TestAsProcessOne(t *testing.T) {
	runscPath := needGVisor(t)
	unshare, err := exec.LookPath("unshare")
	need(t, "unshare", err)
	dir, err := os.MkdirTemp("", "sbd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "sandboxd")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/sandboxd").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	cfg := testConfig(t, "--state-dir="+filepath.Join(dir, "state"))
	cmd := exec.Command(unshare, "--pid", "--fork", "--mount-proc", "--kill-child", binary,
		"--state-dir="+cfg.StateDir, "--cache-dir="+cfg.CacheDir, "--runsc="+runscPath, "--pool=bare=2")
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	c, err := client.New(client.Config{Address: cfg.Socket})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(time.Minute); c.Ready(t.Context()) != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not ready within a minute")
		}
	}
	children := proctree.Children(cmd.Process.Pid)
	if len(children) != 1 {
		t.Fatalf("unshare has children %v, want the daemon", children)
	}
	daemon := children[0]
	if status, err := os.ReadFile("/proc/" + strconv.Itoa(daemon) + "/status"); err != nil || !strings.Contains(string(status), "\t1\n") {
		t.Fatalf("the daemon is not process 1: %v %s", err, status)
	}
	before := descriptors(t, daemon)
	var group sync.WaitGroup
	for worker := range 2 {
		group.Go(func() {
			for i := range *processOneCalls / 2 {
				req := client.Request{Code: "print(1)"}
				want := api.OK
				switch (i + worker) % 10 {
				case 3:
					req.Code, want = "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass", api.OK
				case 6:
					req.Code, req.TimeoutMS, want = "while True: pass", 50, api.Timeout
				case 9:
					req.Code, want = "import os; os.kill(os.getpid(), 9)", api.Killed
				}
				if r, err := c.Run(t.Context(), req); err != nil || r.Outcome != want {
					t.Errorf("call %d: %s %s, %v; want %s", i, r.Outcome, r.Message, err, want)
				}
			}
		})
	}
	group.Wait()
	// Those of the last calls are still being collected.
	var dead []int
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		dead = nil
		for _, pid := range proctree.Children(daemon) {
			if s, ok := proctree.Read(pid); ok && s.State == 'Z' {
				dead = append(dead, pid)
			}
		}
		if len(dead) == 0 {
			break
		}
	}
	if len(dead) > 0 {
		t.Errorf("%d dead processes after %d calls: %v", len(dead), *processOneCalls, dead)
	}
	after := descriptors(t, daemon)
	for deadline := time.Now().Add(20 * time.Second); after > before+spareDescriptors && time.Now().Before(deadline); after = descriptors(t, daemon) {
		time.Sleep(20 * time.Millisecond) // sandboxes that are still being made and ended
	}
	t.Logf("%d calls: %d dead processes, %d descriptors before and %d after", *processOneCalls, len(dead), before, after)
	if after > before+spareDescriptors {
		t.Errorf("the daemon has %d descriptors, %d before the calls", after, before)
	}
	if err := syscall.Kill(daemon, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended = true
	if err := cmd.Wait(); err != nil {
		t.Errorf("the daemon ended with %v, want 0", err)
	}
}

// spareDescriptors are what connections of callers that come and go may hold.
const spareDescriptors = 4

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	open, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
