package daemon

import (
	"context"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/state"
)

// leakCalls is how many calls the leak test makes; the full test is
// go test ./sandboxd/internal/daemon -run Leak -leak-calls 2000
var leakCalls = flag.Int("leak-calls", 60, "calls of the leak test")

// After kill -9 of the daemon its sandboxes are dead at once, and its successor
// removes what they left.
func TestKillNineLeavesNothing(t *testing.T) {
	runscPath := needGVisor(t)
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
	start := func() (*exec.Cmd, *client.Client) {
		cmd := exec.Command(binary, "--state-dir="+cfg.StateDir, "--cache-dir="+cfg.CacheDir, "--runsc="+runscPath, "--pool=bare=2")
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c, err := client.New(client.Config{Address: cfg.Socket})
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); c.Ready(t.Context()) != nil; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("not ready within a minute")
			}
		}
		return cmd, c
	}
	cmd, c := start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = c.Run(ctx, client.Request{Code: "import os\nos.fork()\nwhile True: pass", TimeoutMS: 300_000})
	}()
	for running := 0; running == 0; time.Sleep(10 * time.Millisecond) {
		h, err := c.Health(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		running = h.Running
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	c.Close()

	// The parent-death signal ends them without anybody's help.
	var alive []string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if alive = runtimesOf(cfg.StateDir); len(alive) == 0 {
			break
		}
	}
	if len(alive) > 0 {
		t.Errorf("processes %v survive the daemon", alive)
	}

	cmd, c = start()
	defer c.Close()
	if r, err := c.Run(t.Context(), client.Request{Code: "print(1)"}); err != nil || r.Outcome != api.OK {
		t.Errorf("the successor got %+v, %v", r, err)
	}
	// The pool's two, once the call's own is gone and its place is filled again.
	folders := 0
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		folders = 0
		for _, place := range state.RunPlaces(cfg.StateDir) {
			entries, _ := os.ReadDir(place)
			folders += len(entries)
		}
		if folders <= 3 {
			break
		}
	}
	if folders > 3 {
		t.Errorf("%d sandbox folders, want the pool's at most", folders)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the successor ended with %v, want 0", err)
	}
	if left := runtimesOf(cfg.StateDir); len(left) > 0 {
		t.Errorf("processes %v survive the successor", left)
	}
	// The killed daemon's parent control groups were taken over and are gone
	// with the successor.
	closed, err := state.Open(cfg.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), closed.GroupName()) {
			t.Errorf("control group %s survives the successor", path)
		}
		return nil
	})
}

// A process that a predecessor left running is swept, and nobody else's.
func TestSweepKillsOnlyItsOwn(t *testing.T) {
	dirs := [2]*state.Dir{}
	cmds := [2]*exec.Cmd{}
	for i := range dirs {
		d, err := state.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		defer os.RemoveAll(d.Run)
		// A stand-in for runsc: the same mark on its command line.
		cmds[i] = exec.Command("/bin/sh", "-c", "read x", "--root="+filepath.Join(d.Run, d.Prefix()+"x"))
		if _, err := cmds[i].StdinPipe(); err != nil { // kept open: it reads for ever
			t.Fatal(err)
		}
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
		dirs[i] = d
		if err := os.MkdirAll(filepath.Join(d.Run, d.Prefix()+"x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	gone := make(chan error, 1)
	go func() { gone <- cmds[0].Wait() }()
	groups := cgroup.Disabled("test")
	swept, err := dirs[0].Sweep(groups, testLog(t))
	if err != nil || swept.Processes != 1 || swept.Folders != 1 {
		t.Errorf("swept %+v, %v; want one process and one folder", swept, err)
	}
	<-gone
	if len(dirs[1].Processes()) != 1 {
		t.Error("the other directory's process is gone too")
	}
	_ = cmds[1].Process.Kill()
	_ = cmds[1].Wait()
}

// What the daemon holds does not grow with the number of calls.
func TestLeak(t *testing.T) {
	d := startDaemon(t, "--pool=bare=2")
	programs := []api.Request{
		{Code: "print(1)"},
		{Code: "1/0"},
		{Code: "import os; os.kill(os.getpid(), 9)"},
		{Code: "print('x' * 100_000)"},
		{Code: "while True: pass", TimeoutMS: 50},
	}
	run := func(n int) {
		for i := range n {
			r := call(t, d, programs[i%len(programs)])
			if r.Outcome == api.InfraError {
				t.Fatalf("call %d: %s", i, r.Message)
			}
		}
		d.Service().Wait()
	}
	run(20)
	d.settle(t)
	before := holdings(t, d)
	run(*leakCalls)
	d.settle(t)
	after := holdings(t, d)
	t.Logf("after 20 calls %+v; after %d more %+v", before, *leakCalls, after)
	if after.processes > before.processes || after.groups > before.groups || after.folders > before.folders ||
		after.mounts > before.mounts || after.descriptors > before.descriptors || after.goroutines > before.goroutines {
		t.Errorf("something grew: before %+v, after %+v", before, after)
	}
	// The heap after a collection; a megabyte is room for the runtime's own.
	if after.heap > before.heap+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before.heap, after.heap)
	}
}

type held struct {
	processes, groups, folders, mounts, descriptors, goroutines int
	heap                                                        uint64
}

func holdings(t *testing.T, d *Daemon) held {
	t.Helper()
	entries, err := os.ReadDir(d.dir.Run)
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	mine := 0 // others may mount what they like meanwhile
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, d.dir.Path) || strings.Contains(line, "runsc") || strings.Contains(line, "gvisor") {
			mine++
		}
	}
	// Whoever looks for dead processes has a folder of /proc open for a moment: what is
	// leaked is there at every look.
	descriptors := math.MaxInt
	for range 20 {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		descriptors = min(descriptors, len(fds))
		time.Sleep(20 * time.Millisecond)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return held{
		processes: len(processesNaming(d.dir.Prefix())), groups: len(groupFolders(d)), folders: len(entries),
		mounts: mine, descriptors: descriptors, goroutines: runtime.NumGoroutine(), heap: m.HeapAlloc,
	}
}

// A daemon of a machine without control groups says what is missing, in every
// result, and the address space takes the memory limit's place.
func TestWithoutControlGroups(t *testing.T) {
	cfg := testConfig(t, "--runsc="+needGVisor(t))
	cfg.noCgroups = true
	d, err := New(t.Context(), cfg, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		nothingLeft(t, d)
	}()
	if err := d.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	busy := call(t, d, api.Request{Code: "import time\nx = b'x' * (50 << 20)\nt = time.process_time()\nwhile time.process_time() - t < 0.3: pass"})
	// How much of the 300 ms the host sees depends on how busy it is.
	if busy.CPUMS <= 0 || busy.PeakMemory < 10<<20 {
		t.Errorf("cpu %.0f ms, peak memory %d; want some of each by the host's account", busy.CPUMS, busy.PeakMemory)
	}
	for name, want := range map[string]api.Outcome{
		"print(1)":                     api.OK,
		"x = bytearray(4 << 30)":       api.OutOfMemory,
		"while True: pass":             api.Timeout,
		"while True: print('x' * 999)": api.OutputLimit,
	} {
		patience := int64(30_000)
		if want == api.Timeout {
			patience = 1000
		}
		r := call(t, d, api.Request{Code: name, TimeoutMS: patience})
		if r.Outcome != want {
			t.Errorf("%s: got %s (%s), want %s", name, r.Outcome, r.Message, want)
		}
		if missing := strings.Join(r.Protections.Missing, "\n"); !strings.Contains(missing, "memory:") || !strings.Contains(missing, "cpu:") {
			t.Errorf("the result does not say what is missing: %q", missing)
		}
		goneWithoutTrace(t, d, r.SandboxID)
	}
	if h, ready := d.Health(); !ready || h.Status != "degraded" {
		t.Errorf("health is %q, ready %v; want degraded and ready", h.Status, ready)
	}
}

// A broken runtime opens the breaker instead of failing call after call, and a
// repaired one closes it.
func TestBreakerStopsIntake(t *testing.T) {
	runscPath := needGVisor(t)
	dir := t.TempDir()
	link := filepath.Join(dir, "runsc")
	if err := os.Symlink(runscPath, link); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t, "--runsc="+link, "--breaker-threshold=2", "--breaker-window=4", "--breaker-cooldown=50ms")
	cfg.Pool = nil // every call boots
	d, err := New(t.Context(), cfg, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho out of order >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	relink := func(to string) {
		t.Helper()
		if err := os.Symlink(to, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	relink(broken)
	for range 2 {
		if r := call(t, d, api.Request{Code: "print(1)"}); r.Outcome != api.InfraError || !strings.Contains(r.Message, "out of order") {
			t.Fatalf("got %s %q, want infra_error with the reason", r.Outcome, r.Message)
		}
	}
	if _, err := d.Service().Run(t.Context(), api.Request{Code: "print(1)"}); err == nil || !strings.Contains(err.Error(), "circuit breaker") {
		t.Fatalf("got %v, want the open breaker", err)
	}
	if h, ready := d.Health(); ready || h.Status != "tripped" {
		t.Errorf("health is %q, ready %v; want tripped", h.Status, ready)
	}
	relink(runscPath)
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() { defer close(watched); d.Watch(ctx) }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, ready := d.Health(); ready {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the breaker does not close again")
		}
	}
	cancel()
	<-watched
	if r := call(t, d, api.Request{Code: "print(1)"}); r.Outcome != api.OK {
		t.Errorf("after the repair: %s", r.Outcome)
	}
}
