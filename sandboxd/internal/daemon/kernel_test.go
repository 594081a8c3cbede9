package daemon

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/proctree"
)

// A kernel that is killed, crashes or is stopped from outside is never the
// program's fault, whichever of its processes is hit.
func TestDeadKernelIsNotTheProgramsFault(t *testing.T) {
	d := startDaemon(t, "--pool=bare=1", "--breaker-threshold=100", "--breaker-window=100", "--breaker-rate=0")
	for _, who := range []struct {
		name  string
		index func(tree []int) int // in the sandbox's tree of processes
	}{
		{"the runtime", func([]int) int { return 0 }},
		{"the kernel", func([]int) int { return 1 }},
		{"the program's address space", busiest},
	} {
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGTERM, syscall.SIGSTOP} {
			if who.name == "the runtime" && signal == syscall.SIGSTOP {
				continue // it only waits: the program goes on
			}
			if who.name == "the program's address space" && signal == syscall.SIGSEGV {
				continue // there it is what a fault of the program is too
			}
			t.Run(fmt.Sprint(who.name, " ", signal), func(t *testing.T) {
				d.settle(t)
				hit := make(chan []int, 1)
				go func() {
					runtime := aRunning(d)
					if runtime == 0 {
						hit <- nil
						return
					}
					tree := proctree.Of(runtime)
					_ = syscall.Kill(tree[who.index(tree)], signal)
					hit <- tree
				}()
				r := call(t, d, api.Request{Code: "print('begun', flush=True)\nwhile True: pass", TimeoutMS: 4000})
				tree := <-hit
				if tree == nil {
					t.Fatal("no sandbox was seen running")
				}
				if r.Outcome != api.InfraError || r.ExitCode != -1 || r.Message == "" {
					t.Errorf("got %s (%s), exit code %d, %q, after process %d of %v was hit; want infra_error", r.Outcome, r.Cause, r.ExitCode, r.Message, who.index(tree), tree)
				}
				t.Logf("%s: %s", r.Cause, r.Message)
				goneWithoutTrace(t, d, r.SandboxID)
			})
		}
	}
}

// busiest is the place of the process in which the program runs, on gVisor's
// platform, and spins.
func busiest(tree []int) int {
	best, most := 0, time.Duration(-1)
	for i, pid := range tree {
		if s, ok := proctree.Read(pid); ok && i > 1 && s.CPU > most {
			best, most = i, s.CPU
		}
	}
	return best
}

// aRunning waits for the sandbox whose program spins and returns its runtime; 0 if
// there is none.
func aRunning(d *Daemon) int {
	spent := map[int]time.Duration{}
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		for _, pid := range d.dir.Processes() {
			cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if !strings.Contains(string(cmdline), "\x00restore\x00") {
				continue
			}
			now, _ := proctree.Usage(pid)
			if before, seen := spent[pid]; seen && now-before > 100*time.Millisecond {
				return pid
			} else if !seen {
				spent[pid] = now
			}
		}
	}
	return 0
}

// A program that breaks gVisor's kernel has not been killed, and has not failed.
func TestProgramThatBreaksTheKernel(t *testing.T) {
	d := startDaemon(t, "--pool=bare=1", "--memory=1GiB")
	// Alternating protections take a mapping of the host's each, and there are
	// vm.max_map_count of them.
	const bomb = `
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
n = 160_000
m = mmap.mmap(-1, n * 4096)
base = ctypes.addressof(ctypes.c_char.from_buffer(m))
for i in range(n): m[i * 4096] = 1
print('begun', flush=True)
for i in range(0, n, 2): libc.mprotect(base + i * 4096, 4096, 1)
print('survived')
`
	for _, cold := range []bool{false, true} {
		r := call(t, d, api.Request{Code: bomb, TimeoutMS: 60_000, Cold: cold})
		t.Logf("cold %v: %s %s %q %q %q", cold, r.Outcome, r.Cause, r.Message, r.Stdout.Text(), r.Stderr.Text())
		if r.Outcome != api.InfraError || r.Cause != api.CauseDied || !strings.Contains(r.Message, "gVisor's kernel died") {
			t.Errorf("cold %v: got %s %s %q, want infra_error with gVisor's panic", cold, r.Outcome, r.Cause, r.Message)
		}
		goneWithoutTrace(t, d, r.SandboxID)
	}
}
