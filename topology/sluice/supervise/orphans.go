package supervise

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// endOrphans kills what a dead child left behind and the kernel gave to us, and
// collects it. Call it when every child is stopped: then each process whose parent we
// are is such an orphan.
func endOrphans() {
	for range 100 {
		pids := childrenOf(os.Getpid())
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			var status syscall.WaitStatus
			_, _ = syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// collectOrphans collects ended processes that the kernel gave to us.
func (s *Supervisor) collectOrphans() {
	s.mu.Lock()
	deaths := s.deaths
	s.mu.Unlock()
	if deaths == 0 && os.Getpid() != 1 {
		return // no child has died, so there can be no orphan; process 1 inherits others'
	}
	for _, pid := range childrenOf(os.Getpid()) {
		s.mu.Lock()
		ours := s.ours[pid]
		s.mu.Unlock()
		if !ours {
			var status syscall.WaitStatus
			_, _ = syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		}
	}
}

// forget notes that a process of ours has been waited for.
func (s *Supervisor) forget(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ours, pid)
	s.deaths++
}

func childrenOf(parent int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid …: the name may hold anything, the last ) ends it.
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}
