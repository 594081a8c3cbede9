package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/state"
	"github.com/sluice-rl/sluice/topology/process"
)

// need skips a test without something that it needs; under CI it fails.
func need(t testing.TB, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("CI is set, so this test must run: it needs %s: %v", what, err)
	default:
		t.Skipf("needs %s: %v", what, err)
	}
}

// needGVisor skips, with its reason, where these tests cannot run. Under CI
// they must run: there a missing runsc is a failure.
func needGVisor(t testing.TB) (runsc string) {
	t.Helper()
	refuse := func(why string) {
		t.Helper()
		if os.Getenv("CI") != "" {
			t.Fatalf("CI is set, so this test must run: %s", why)
		}
		t.Skip("needs gVisor: " + why)
	}
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Skip("needs root; the rootless path has a test of its own")
		}
		refuse("not root")
	}
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		refuse("no /usr/bin/python3")
	}
	if err := exec.Command("/usr/bin/python3", "-c", "import numpy, sympy").Run(); err != nil {
		refuse("python3-numpy and python3-sympy are not installed")
	}
	// Tests run in their package's folder, four below the module's.
	beside, err := filepath.Abs("../../../.tools/bin/runsc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(beside); err == nil {
		return beside
	}
	path, err := exec.LookPath("runsc")
	if err != nil {
		refuse("no runsc in .tools/bin or on PATH; run `make tools`")
	}
	return path
}

// testConfig is a daemon of small size on a state folder of its own.
func testConfig(t testing.TB, args ...string) *Config {
	t.Helper()
	flags := &process.Flags{}
	cfg := Flags(flags)
	// The root file system takes seconds to build and never changes between
	// tests; it is the one thing they share.
	cache := filepath.Join(os.TempDir(), "sandboxd-test-rootfs")
	defaults := []string{"--state-dir=" + t.TempDir(), "--cache-dir=" + cache, "--pool=bare=1", "--slots=4"}
	if err := flags.Parse(append(defaults, args...)...); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Complete(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// startDaemon returns a daemon that takes calls; it is closed with the test and
// must leave nothing behind.
func startDaemon(t testing.TB, args ...string) *Daemon {
	t.Helper()
	cfg := testConfig(t, append([]string{"--runsc=" + needGVisor(t)}, args...)...)
	d, err := New(t.Context(), cfg, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		nothingLeft(t, d)
	})
	if err := d.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.settle(t)
	return d
}

// settle waits until nothing is being destroyed and the pool is full.
func (d *Daemon) settle(t testing.TB) {
	t.Helper()
	d.Service().Wait()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		full := true
		for _, img := range d.pool.State() {
			if img.Error != "" {
				t.Fatalf("image %s: %s", img.Name, img.Error)
			}
			full = full && img.Ready == img.Target
		}
		if full {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the pool does not fill: %+v", d.pool.State())
		}
	}
}

func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// call runs one program.
func call(t testing.TB, d *Daemon, req api.Request) api.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := d.Service().Run(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// goneWithoutTrace checks that a call's sandbox left no process, folder or
// control group.
func goneWithoutTrace(t testing.TB, d *Daemon, id string) {
	t.Helper()
	d.Service().Wait()
	if _, err := os.Stat(filepath.Join(d.dir.Run, id)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of sandbox %s is still there", id)
	}
	for _, mark := range []string{id} {
		for _, pid := range processesNaming(mark) {
			t.Errorf("process %s of sandbox %s survives", pid, id)
		}
	}
	for _, dir := range groupFolders(d) {
		if strings.HasSuffix(dir, "/"+id) {
			t.Errorf("control group %s survives", dir)
		}
	}
}

// nothingLeft checks the same for a closed daemon as a whole.
func nothingLeft(t testing.TB, d *Daemon) {
	t.Helper()
	for _, pid := range processesNaming(d.dir.Prefix()) {
		t.Errorf("process %s survives the daemon", pid)
	}
	for _, dir := range groupFolders(d) {
		t.Errorf("control group %s survives the daemon", dir)
	}
	entries, _ := os.ReadDir(d.dir.Run)
	for _, e := range entries {
		t.Errorf("folder %s survives the daemon", e.Name())
	}
	for _, dir := range []string{"/var/run", "/tmp"} {
		sockets, _ := filepath.Glob(filepath.Join(dir, "runsc-"+d.dir.Prefix()+"*"))
		for _, s := range sockets {
			t.Errorf("socket %s survives the daemon", s)
		}
	}
}

// processesNaming lists live processes with mark in their command line.
func processesNaming(mark string) (pids []string) {
	cmdlines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range cmdlines {
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), mark) {
			pids = append(pids, strings.Split(path, "/")[2])
		}
	}
	return pids
}

// runtimesOf lists the runtime processes of the daemon with this state folder.
func runtimesOf(stateDir string) (pids []string) {
	for _, place := range state.RunPlaces(stateDir) {
		pids = append(pids, processesNaming("--root="+place)...)
	}
	return pids
}

// groupFolders lists the control groups of the daemon's sandboxes, in every
// hierarchy.
func groupFolders(d *Daemon) (dirs []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), d.dir.Prefix()) {
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs
}
