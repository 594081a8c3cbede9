package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The tests of this file use plain folders in place of a cgroup file system:
// the kernel's files are made beforehand, and what is written to them is read.

func file(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestReadMounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mountinfo")
	file(t, path, `30 1 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro
31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
garbage
`)
	got, err := readMounts(path)
	if err != nil {
		t.Fatal(err)
	}
	for controller, want := range map[string]string{"": "/sys/fs/cgroup/unified", "cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct", "memory": "/sys/fs/cgroup/memory"} {
		if got[controller] != want {
			t.Errorf("%q is mounted at %q, want %q", controller, got[controller], want)
		}
	}
}

func TestReadOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cgroup")
	file(t, path, "4:memory:/a/b\n2:cpu,cpuacct:/\n0::/user.slice\n")
	got, err := readOwn(path)
	if err != nil {
		t.Fatal(err)
	}
	if got["memory"] != "/a/b" || got["cpuacct"] != "/" || got[""] != "/user.slice" {
		t.Errorf("got %v", got)
	}
}

func TestV1(t *testing.T) {
	base := t.TempDir()
	m := mounts{}
	for _, c := range []string{"memory", "cpu", "cpuacct", "pids"} {
		m[c] = filepath.Join(base, c)
		file(t, filepath.Join(m[c], "own", "x"), "")
	}
	mgr := detect(m, groups{"memory": "/own", "cpu": "/own", "cpuacct": "/own", "pids": "/not-visible-here"}, "sandboxd-t", 1)
	if mgr.Version() != V1 || !mgr.Has("memory") || !mgr.Has("cpu") || mgr.Why() != "" {
		t.Fatalf("got %+v", mgr)
	}
	if _, err := os.Stat(filepath.Join(base, "memory/own/sandboxd-t")); err != nil {
		t.Error("the parent is not below the daemon's own group:", err)
	}
	if _, err := os.Stat(filepath.Join(base, "pids/sandboxd-t")); err != nil {
		t.Error("where the own group cannot be seen, the mount's root is used:", err)
	}
	for f, c := range map[string]string{"memory.limit_in_bytes": "memory/own", "memory.memsw.limit_in_bytes": "memory/own", "memory.max_usage_in_bytes": "memory/own",
		"cpu.cfs_period_us": "cpu/own", "cpu.cfs_quota_us": "cpu/own", "cpu.shares": "cpu/own", "pids.max": "pids"} {
		file(t, filepath.Join(base, c, "sandboxd-t/id", f), "")
	}
	g, err := mgr.Create("id", Limits{MemoryBytes: 1 << 20, CPUs: 1.5, HostProcesses: 9})
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[string]string{"memory/own/sandboxd-t/id/memory.limit_in_bytes": "1048576", "cpu/own/sandboxd-t/id/cpu.cfs_quota_us": "150000", "pids/sandboxd-t/id/pids.max": "9"} {
		if got := read(t, filepath.Join(base, f)); got != want {
			t.Errorf("%s is %q, want %q", f, got, want)
		}
	}
	file(t, filepath.Join(base, "memory/own/sandboxd-t/id/memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
	file(t, filepath.Join(base, "cpuacct/own/sandboxd-t/id/cpuacct.usage"), "5000000\n")
	file(t, filepath.Join(base, "memory/own/sandboxd-t/id/memory.max_usage_in_bytes"), "77\n")
	if u := g.Usage(); u != (Usage{CPU: 5 * time.Millisecond, PeakMemory: 77, OOMKills: 3}) {
		t.Errorf("usage is %+v", u)
	}
	if files := g.ProcsFiles(); len(files) != 4 {
		t.Errorf("joins through %v, want one file per hierarchy", files)
	}
}

func TestV2(t *testing.T) {
	base := t.TempDir()
	own := filepath.Join(base, "system.slice/sandboxd.service")
	file(t, filepath.Join(own, "cgroup.controllers"), "cpuset cpu io memory pids\n")
	file(t, filepath.Join(own, "cgroup.type"), "domain\n")
	file(t, filepath.Join(own, "cgroup.subtree_control"), "")
	file(t, filepath.Join(own, "sandboxd-t-daemon/cgroup.procs"), "")
	file(t, filepath.Join(own, "sandboxd-t/cgroup.subtree_control"), "")
	mgr := detect(mounts{"": base}, groups{"": "/system.slice/sandboxd.service"}, "sandboxd-t", 4711)
	if mgr.Version() != V2 || !mgr.Has("memory") || !mgr.Has("cpu") || !mgr.Has("pids") {
		t.Fatalf("got %+v", mgr)
	}
	if got := read(t, filepath.Join(own, "sandboxd-t-daemon/cgroup.procs")); got != "4711" {
		t.Errorf("the daemon must leave its group before it can pass controllers on; the leaf holds %q", got)
	}
	dir := filepath.Join(own, "sandboxd-t/id")
	for _, f := range []string{"memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "pids.max", "cpu.weight"} {
		file(t, filepath.Join(dir, f), "")
	}
	g, err := mgr.Create("id", Limits{MemoryBytes: 1 << 20, CPUs: 0.5, HostProcesses: 9})
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[string]string{"memory.max": "1048576", "memory.swap.max": "0", "memory.oom.group": "1", "cpu.max": "50000 100000", "pids.max": "9"} {
		if got := read(t, filepath.Join(dir, f)); got != want {
			t.Errorf("%s is %q, want %q", f, got, want)
		}
	}
	file(t, filepath.Join(dir, "cpu.stat"), "usage_usec 1500\nuser_usec 1000\n")
	file(t, filepath.Join(dir, "memory.peak"), "88\n")
	file(t, filepath.Join(dir, "memory.events"), "low 0\noom 1\noom_kill 2\n")
	if u := g.Usage(); u != (Usage{CPU: 1500 * time.Microsecond, PeakMemory: 88, OOMKills: 2}) {
		t.Errorf("usage is %+v", u)
	}
	if files := g.ProcsFiles(); len(files) != 1 || !strings.HasSuffix(files[0], "/id/cgroup.procs") {
		t.Errorf("joins through %v, want the one group", files)
	}
}

func TestNoneSaysWhy(t *testing.T) {
	for name, m := range map[string]mounts{
		"nothing mounted":   {},
		"hybrid without us": {"": t.TempDir()},
	} {
		mgr := detect(m, groups{}, "sandboxd-t", 1)
		if mgr.Version() != None || mgr.Why() == "" || mgr.Has("memory") {
			t.Errorf("%s: got %+v, want none with a reason", name, mgr)
		}
		g, err := mgr.Create("id", Limits{MemoryBytes: 1})
		if g != nil || err != nil {
			t.Errorf("%s: made %v, %v; want nothing", name, g, err)
		}
		g.Kill()
		g.ResetPeak()
		if g.Usage() != (Usage{}) || g.Remove() != nil || len(g.ProcsFiles()) > 0 {
			t.Errorf("%s: a missing group must do nothing", name)
		}
	}
}
