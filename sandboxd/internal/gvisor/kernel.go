package gvisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/control"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/exitcall"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/runsc"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/proctree"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
)

// kernel is gVisor's kernel of one sandbox, as the daemon sees it.
type kernel struct {
	*exitcall.Listener
	id, folder string

	memory sync.Once
	file   string // the file that is the program's memory, as /proc shows it
	pid    int    // of the kernel's own process
}

// Connect connects to the control socket.
func (k *kernel) Connect() (sandbox.Connection, error) {
	conn, err := control.Dial(k.folder, k.id)
	if err != nil {
		return nil, err // a nil *Conn must not become a Connection
	}
	return conn, nil
}

// Failure prefers the kernel's panic to the runtime's complaint that it is gone.
func (k *kernel) Failure() string {
	if why := runsc.Panic(k.folder); why != "" {
		return "gVisor's kernel died: " + why
	}
	return runsc.Failure(k.folder)
}

// answerPatience bounds the wait for a living kernel's answer. It shares the
// sandbox's CPU quota with a program that may spin in every thread.
const answerPatience = 5 * time.Second

// Stuck looks for processes that somebody has stopped, and asks the kernel for a
// sign of life.
func (k *kernel) Stuck(runtime int) string {
	for _, pid := range proctree.Of(runtime)[1:] {
		if s, ok := proctree.Read(pid); ok && s.State == 'T' {
			return fmt.Sprintf("gVisor's process %d was stopped from outside", pid)
		}
	}
	conn, err := control.Dial(k.folder, k.id)
	if err != nil {
		// A program that ends at this very moment takes the socket with it.
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
			return ""
		}
		return "gVisor's kernel cannot be reached: " + err.Error()
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Ping(answerPatience); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Sprintf("gVisor's kernel gave no sign of life within %s", answerPatience)
	}
	return ""
}

// Signal goes through the kernel: on the host there is no such process.
func (k *kernel) Signal(program int, signal syscall.Signal) error {
	conn, err := control.Dial(k.folder, k.id)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return conn.Signal(program, signal, answerPatience)
}

// memoryFile is the name of the file from which gVisor maps every page of its
// programs, tmpfs and memfd included.
const memoryFile = "/memfd:runsc-memory"

// Memory is what the kernel has allocated for its programs, and what it holds for
// itself.
func (k *kernel) Memory(runtime int) int64 {
	k.memory.Do(func() { k.file, k.pid = findMemory(runtime) })
	var st syscall.Stat_t
	if k.file == "" || syscall.Stat(k.file, &st) != nil {
		return 0
	}
	return st.Blocks*512 + proctree.AnonymousMemory(k.pid)
}

func findMemory(runtime int) (file string, pid int) {
	for _, pid := range proctree.Of(runtime) {
		descriptors, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, d := range descriptors {
			if name, err := os.Readlink(d); err == nil && strings.HasPrefix(name, memoryFile) {
				return d, pid
			}
		}
	}
	return "", 0
}
