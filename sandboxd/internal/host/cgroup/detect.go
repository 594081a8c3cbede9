package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Version is the kind of hierarchy in use.
type Version string

// The kinds of hierarchy.
const (
	None Version = "none"
	V1   Version = "cgroup v1"
	V2   Version = "cgroup v2"
)

// Limits of one sandbox's group. Zero leaves a limit out.
type Limits struct {
	// MemoryBytes bounds everything the sandbox holds, gVisor included.
	MemoryBytes int64
	// CPUs is the quota in cores.
	CPUs float64
	// HostProcesses bounds processes and threads on the host. gVisor needs
	// several hundred for itself.
	HostProcesses int64
}

// Manager makes groups. The zero value makes none.
type Manager struct {
	version Version
	// parents maps a controller to the daemon's parent group; on v2 every
	// controller has the same.
	parents map[string]string
	why     string
}

// Has tells whether a controller ("memory", "cpu", "pids") is usable.
func (m *Manager) Has(controller string) bool { return m.parents[controller] != "" }

// Version is the hierarchy in use.
func (m *Manager) Version() Version {
	if m.version == "" {
		return None
	}
	return m.version
}

// Why says what stood in the way if a controller is missing.
func (m *Manager) Why() string { return m.why }

// Disabled returns a manager that makes no groups, and says why.
func Disabled(why string) *Manager { return &Manager{version: None, why: why} }

// Detect finds what this machine allows. name is the parent group's name, unique
// to the daemon's state directory.
func Detect(name string) *Manager {
	mounts, err := readMounts("/proc/self/mountinfo")
	if err != nil {
		return Disabled(err.Error())
	}
	own, err := readOwn("/proc/self/cgroup")
	if err != nil {
		return Disabled(err.Error())
	}
	return detect(mounts, own, name, os.Getpid())
}

// mounts maps a v1 controller to its mount point; "" is the v2 mount.
type mounts map[string]string

// groups maps a v1 controller to the daemon's own group; "" is the v2 group.
type groups map[string]string

func detect(m mounts, own groups, name string, pid int) *Manager {
	var failures []string
	if v1 := m["memory"]; v1 != "" {
		mgr := &Manager{version: V1, parents: map[string]string{}}
		for _, controller := range []string{"memory", "cpu", "cpuacct", "pids"} {
			dir, err := parentV1(m[controller], own[controller], name)
			if err != nil {
				failures = append(failures, fmt.Sprintf("%s: %v", controller, err))
				continue
			}
			mgr.parents[controller] = dir
		}
		mgr.why = strings.Join(failures, "; ")
		if mgr.Has("memory") || mgr.Has("cpu") {
			return mgr
		}
	}
	if m[""] != "" {
		mgr, err := parentV2(m[""], own[""], name, pid)
		if err == nil {
			return mgr
		}
		failures = append(failures, err.Error())
	}
	if len(failures) == 0 {
		failures = append(failures, "no cgroup file system is mounted")
	}
	return Disabled(strings.Join(failures, "; "))
}

func parentV1(mount, own, name string) (string, error) {
	if mount == "" {
		return "", errors.New("controller is not mounted")
	}
	base := filepath.Join(mount, own)
	if _, err := os.Stat(base); err != nil {
		base = mount // inside a container the own path may not be visible
	}
	dir := filepath.Join(base, name)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	// A hierarchy mounted read-only or delegated to somebody else lets the
	// folder exist and still refuses to have groups made in it.
	probe := filepath.Join(dir, "probe")
	if err := os.Mkdir(probe, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, os.Remove(probe)
}

// parentV2 makes the parent below the daemon's own group. v2 forbids a group
// with processes to pass controllers on, so the daemon moves into a leaf first;
// if others share the group, that fails and is said.
func parentV2(mount, own, name string, pid int) (*Manager, error) {
	base := filepath.Join(mount, own)
	if _, err := os.Stat(base); err != nil {
		base = mount
	}
	available, err := os.ReadFile(filepath.Join(base, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	offered := map[string]bool{}
	for c := range strings.FieldsSeq(string(available)) {
		offered[c] = true
	}
	if !offered["memory"] && !offered["cpu"] {
		return nil, fmt.Errorf("cgroup v2 at %s offers neither memory nor cpu", base)
	}
	// Only the true root has no cgroup.type; it may keep its processes.
	if _, err := os.Stat(filepath.Join(base, "cgroup.type")); err == nil {
		leaf := filepath.Join(base, name+"-daemon")
		if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := write(leaf, "cgroup.procs", fmt.Sprint(pid)); err != nil {
			return nil, err
		}
	}
	parent := filepath.Join(base, name)
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	mgr := &Manager{version: V2, parents: map[string]string{}}
	var failures []string
	for _, c := range []string{"memory", "cpu", "pids"} {
		if !offered[c] {
			failures = append(failures, c+": not offered")
			continue
		}
		err := write(base, "cgroup.subtree_control", "+"+c)
		if err == nil {
			err = write(parent, "cgroup.subtree_control", "+"+c)
		}
		if err != nil {
			failures = append(failures, fmt.Sprintf("%s: %v", c, err))
			continue
		}
		mgr.parents[c] = parent
	}
	mgr.why = strings.Join(failures, "; ")
	if len(mgr.parents) == 0 {
		return nil, fmt.Errorf("cgroup v2: %s", mgr.why)
	}
	return mgr, nil
}

// readMounts reads a mountinfo file.
func readMounts(path string) (mounts, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := mounts{}
	for s := bufio.NewScanner(f); s.Scan(); {
		before, after, ok := strings.Cut(s.Text(), " - ")
		if !ok {
			continue
		}
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) < 5 || len(right) < 3 {
			continue
		}
		switch right[0] {
		case "cgroup2":
			out[""] = left[4]
		case "cgroup":
			for option := range strings.SplitSeq(right[2], ",") {
				out[option] = left[4]
			}
		}
	}
	return out, nil
}

// readOwn reads a /proc/PID/cgroup file.
func readOwn(path string) (groups, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := groups{}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			out[controller] = parts[2]
		}
	}
	return out, nil
}

func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
