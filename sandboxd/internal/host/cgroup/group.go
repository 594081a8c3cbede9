package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrBusy occurs when a group still holds processes that cannot be killed.
var ErrBusy = errors.New("control group still has processes")

// Group is one sandbox's control group. A nil Group does nothing.
type Group struct {
	version Version
	dirs    map[string]string // controller to folder
}

// Usage is what a group has used so far.
type Usage struct {
	CPU        time.Duration
	PeakMemory int64
	// OOMKills counts processes that the kernel killed for the memory limit.
	OOMKills int64
}

// Create makes a group with its limits. It returns nil without error where the
// machine allows none.
func (m *Manager) Create(id string, l Limits) (*Group, error) {
	if len(m.parents) == 0 {
		return nil, nil
	}
	g := &Group{version: m.version, dirs: map[string]string{}}
	for controller, parent := range m.parents {
		dir := filepath.Join(parent, id)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(fmt.Errorf("make control group: %w", err), g.Remove())
		}
		g.dirs[controller] = dir
	}
	if err := g.limit(l); err != nil {
		return nil, errors.Join(fmt.Errorf("set limits: %w", err), g.Remove())
	}
	return g, nil
}

func (g *Group) limit(l Limits) error {
	const period = 100_000 // microseconds
	quota := int64(l.CPUs * period)
	var errs []error
	set := func(controller, file string, value any) {
		if dir := g.dirs[controller]; dir != "" {
			errs = append(errs, write(dir, file, fmt.Sprint(value)))
		}
	}
	optional := func(controller, file string, value any) {
		if dir := g.dirs[controller]; dir != "" {
			_ = write(dir, file, fmt.Sprint(value)) // absent without swap accounting or on older kernels
		}
	}
	if l.MemoryBytes > 0 && g.version == V1 {
		set("memory", "memory.limit_in_bytes", l.MemoryBytes)
		optional("memory", "memory.memsw.limit_in_bytes", l.MemoryBytes)
		optional("memory", "memory.swappiness", 0)
	}
	if l.MemoryBytes > 0 && g.version == V2 {
		set("memory", "memory.max", l.MemoryBytes)
		optional("memory", "memory.swap.max", 0)
		optional("memory", "memory.oom.group", 1)
	}
	if quota > 0 && g.version == V1 {
		set("cpu", "cpu.cfs_period_us", period)
		set("cpu", "cpu.cfs_quota_us", quota)
	}
	if quota > 0 && g.version == V2 {
		set("cpu", "cpu.max", fmt.Sprintf("%d %d", quota, period))
	}
	if l.HostProcesses > 0 {
		set("pids", "pids.max", l.HostProcesses)
	}
	return errors.Join(errs...)
}

// SetBackground gives the group little or normal weight against its siblings:
// sandboxes being made must not slow down programs being run.
func (g *Group) SetBackground(background bool) {
	if g == nil || g.dirs["cpu"] == "" {
		return
	}
	v1, v2 := "1024", "100"
	if background {
		v1, v2 = "128", "12"
	}
	if g.version == V1 {
		_ = write(g.dirs["cpu"], "cpu.shares", v1)
		return
	}
	_ = write(g.dirs["cpu"], "cpu.weight", v2)
}

// ProcsFiles lists the files into which a process writes "0" or its number to
// join. The list has no duplicates.
func (g *Group) ProcsFiles() []string {
	if g == nil {
		return nil
	}
	set := map[string]bool{}
	for _, dir := range g.dirs {
		set[filepath.Join(dir, "cgroup.procs")] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// ResetPeak starts the measurement of peak memory anew, where the kernel can.
func (g *Group) ResetPeak() {
	if g == nil || g.dirs["memory"] == "" {
		return
	}
	if g.version == V1 {
		_ = write(g.dirs["memory"], "memory.max_usage_in_bytes", "0")
		return
	}
	_ = write(g.dirs["memory"], "memory.peak", "0")
}

// Usage reads what the group used. What cannot be read is zero.
func (g *Group) Usage() Usage {
	if g == nil {
		return Usage{}
	}
	var u Usage
	u.CPU = g.CPU()
	if g.version == V1 {
		u.PeakMemory = readInt(g.dirs["memory"], "memory.max_usage_in_bytes", "")
		u.OOMKills = readInt(g.dirs["memory"], "memory.oom_control", "oom_kill")
		return u
	}
	u.PeakMemory = readInt(g.dirs["memory"], "memory.peak", "")
	u.OOMKills = readInt(g.dirs["memory"], "memory.events", "oom_kill")
	return u
}

// Memory reads what the group holds at this moment; 0 if it cannot be read.
func (g *Group) Memory() int64 {
	switch {
	case g == nil:
		return 0
	case g.version == V1:
		return readInt(g.dirs["memory"], "memory.usage_in_bytes", "")
	}
	return readInt(g.dirs["memory"], "memory.current", "")
}

// CPU reads the CPU time that the group used; 0 if it cannot be read.
func (g *Group) CPU() time.Duration {
	switch {
	case g == nil:
		return 0
	case g.version == V1:
		return time.Duration(readInt(g.dirs["cpuacct"], "cpuacct.usage", ""))
	}
	return time.Duration(readInt(g.dirs["cpu"], "cpu.stat", "usage_usec")) * time.Microsecond
}

// Kill kills every process of the group.
func (g *Group) Kill() {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		if write(dir, "cgroup.kill", "1") == nil {
			return
		}
	}
	for _, dir := range g.dirs {
		killAll(dir)
	}
}

// killAll signals until nobody new appears: a process may fork in between.
func killAll(dir string) {
	for range 50 {
		pids := readPIDs(dir)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Remove deletes the group. Processes in it must be dead or dying: it waits a
// short while for the kernel to let go of them.
func (g *Group) Remove() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, dir := range g.dirs {
		errs = append(errs, removeDir(dir))
	}
	return errors.Join(errs...)
}

func removeDir(dir string) error {
	var err error
	for wait := time.Millisecond; wait < 2*time.Second; wait *= 2 {
		err = syscall.Rmdir(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(wait)
	}
	return fmt.Errorf("%w: %s: %w", ErrBusy, dir, err)
}

// Sweep kills and removes every group that a predecessor left under the same
// parent, and returns how many there were.
func (m *Manager) Sweep() (int, error) {
	left := map[string]bool{}
	var errs []error
	for _, parent := range m.parents {
		entries, err := os.ReadDir(parent)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			left[e.Name()] = true
			dir := filepath.Join(parent, e.Name())
			_ = write(dir, "cgroup.kill", "1")
			killAll(dir)
			errs = append(errs, removeDir(dir))
		}
	}
	return len(left), errors.Join(errs...)
}

// Close removes the parent groups; children must be gone.
func (m *Manager) Close() {
	for _, dir := range m.parents {
		_ = syscall.Rmdir(dir)
	}
}

func readPIDs(dir string) []int {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for field := range strings.FieldsSeq(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// readInt reads a single number, or the number after key in a list of pairs.
func readInt(dir, file, key string) int64 {
	if dir == "" {
		return 0
	}
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0
	}
	text := strings.TrimSpace(string(data))
	if key != "" {
		found := ""
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == key {
				found = value
			}
		}
		text = found
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// TotalCPU is the CPU time of all sandboxes so far, those that are gone
// included; 0 where nothing counts it.
func (m *Manager) TotalCPU() time.Duration {
	if m.version == V1 {
		return time.Duration(readInt(m.parents["cpuacct"], "cpuacct.usage", ""))
	}
	return time.Duration(readInt(m.parents["cpu"], "cpu.stat", "usage_usec")) * time.Microsecond
}
