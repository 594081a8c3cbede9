// Package proctree looks at a process and what descends from it, by /proc.
//
// Promises: it reads only. Processes that come and go while it looks may be missed.
package proctree

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc/PID/stat, on every Linux of today.
const clockTick = 10 * time.Millisecond

// Of lists root and its descendants, root first.
func Of(root int) []int {
	tree := []int{root}
	for seen, i := map[int]bool{root: true}, 0; i < len(tree); i++ {
		for _, child := range Children(tree[i]) {
			if !seen[child] {
				seen[child] = true
				tree = append(tree, child)
			}
		}
	}
	return tree
}

// Children lists the processes that pid's threads have started or adopted and not
// yet waited for.
func Children(pid int) []int {
	var children []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		data, _ := os.ReadFile(file)
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// Usage is the CPU time of a tree, in steps of 10 ms, and the highest resident
// memory that any one of its processes had (they map the same pages, so a sum would
// count them twice).
func Usage(root int) (cpu time.Duration, peak int64) {
	for _, pid := range Of(root) {
		if s, ok := Read(pid); ok {
			cpu += s.CPU
		}
		peak = max(peak, statusKiB(pid, "VmHWM:")<<10)
	}
	return cpu, peak
}

// AnonymousMemory is what a process holds that no file and no other process shares.
func AnonymousMemory(pid int) int64 { return statusKiB(pid, "RssAnon:") << 10 }

// Stat is a part of /proc/PID/stat.
type Stat struct {
	// State is one letter, as in ps: T is stopped, Z a zombie.
	State byte
	// CPU is user and system time, with those of children that were waited for.
	CPU time.Duration
}

// Read looks at one process; ok is false if there is none.
func Read(pid int) (s Stat, ok bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Stat{}, false
	}
	// The command in parentheses may contain anything; fields follow the last
	// one. The first of them is field 3.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 15 {
		return Stat{}, false
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(string(fields[field-3]), 10, 64)
		return n
	}
	s = Stat{State: fields[0][0]}
	for field := 14; field <= 17; field++ {
		s.CPU += time.Duration(number(field)) * clockTick
	}
	return s, true
}

func statusKiB(pid int, name string) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib
		}
	}
	return 0
}
