package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
)

// clockTick is the unit of times in /proc/PID/stat, on every Linux of today.
const clockTick = 10 * time.Millisecond

// treeUsage looks at a process and its descendants: their CPU time together, in
// steps of 10 ms, and the highest resident memory that any one of them had (they
// map the same pages, so a sum would count them twice). Processes that come and go while
// it looks are missed; it stands in where there is no control group.
func treeUsage(root int) cgroup.Usage {
	var u cgroup.Usage
	queue := []int{root}
	for seen := map[int]bool{}; len(queue) > 0; {
		pid := queue[0]
		queue = queue[1:]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		u.CPU += cpuOf(pid)
		u.PeakMemory = max(u.PeakMemory, peakOf(pid))
		children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, file := range children {
			data, _ := os.ReadFile(file)
			for field := range strings.FieldsSeq(string(data)) {
				if child, err := strconv.Atoi(field); err == nil {
					queue = append(queue, child)
				}
			}
		}
	}
	return u
}

// cpuOf reads user and system time, with those of children that were waited for.
func cpuOf(pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The command in parentheses may contain anything; fields follow the last
	// one. The first of them is field 3.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	var ticks int64
	for field := 14; field <= 17 && field-3 < len(fields); field++ {
		n, _ := strconv.ParseInt(string(fields[field-3]), 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}

func peakOf(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
