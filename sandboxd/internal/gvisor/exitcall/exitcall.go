// Package exitcall hears of a program's exit the moment that it happens.
//
// gVisor's kernel answers a wait only after it has taken the process's memory
// apart, which takes 5 to 15 ms and is no concern of the caller: the sandbox is
// about to be killed as a whole. But the kernel can also report system calls to
// a socket as they happen, and exit_group of its process is the end of a program,
// with its status, after its last byte of output.
//
// Reads: reports from the sandboxes of this daemon, over a socket in the state
// folder. Writes: the configuration that makes gVisor send them. Promises: a
// report comes from gVisor's kernel, out of the program's reach; a sandbox can
// report for itself only, since a connection belongs to the process that opened
// it, which is the runtime that the daemon started. A program that dies by a
// signal makes no such call, but its threads' ends are reported too. A kernel that
// dies reports nothing.
package exitcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
)

// Listener receives the reports of all sandboxes. Make it with Listen.
type Listener struct {
	config string
	socket *net.UnixListener
	work   sync.WaitGroup

	mu      sync.Mutex
	waiting map[int]*expected // by the runtime's process number
	open    map[*net.UnixConn]bool
	closed  bool
}

// ofItself are the signals of which a process can die without anybody's sending
// them: faults, and what timers, limits and broken pipes do.
var ofItself = map[syscall.Signal]bool{
	syscall.SIGILL: true, syscall.SIGTRAP: true, syscall.SIGBUS: true, syscall.SIGFPE: true, syscall.SIGSEGV: true, syscall.SIGSYS: true,
	syscall.SIGPIPE: true, syscall.SIGALRM: true, syscall.SIGVTALRM: true, syscall.SIGPROF: true,
	syscall.SIGXCPU: true, syscall.SIGXFSZ: true, syscall.SIGIO: true,
}

// expected is a program whose end is waited for.
type expected struct {
	group int                 // its process in the sandbox
	end   chan sandbox.Ending // closed when nothing more can come
	told  bool
	left  *int // the status with which its first thread left, if it did
	gone  bool
	sent  bool // somebody inside sent a signal
}

// Listen opens the socket in dir and writes the configuration beside it.
func Listen(dir string) (*Listener, error) {
	path := filepath.Join(dir, "exits.sock")
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove stale exit socket: %w", err)
	}
	config, err := json.Marshal(configuration(path))
	if err != nil {
		return nil, fmt.Errorf("encode exit reports: %w", err)
	}
	l := &Listener{config: filepath.Join(dir, "exits.json"), waiting: map[int]*expected{}, open: map[*net.UnixConn]bool{}}
	if err := os.WriteFile(l.config, config, 0o600); err != nil {
		return nil, fmt.Errorf("configure exit reports: %w", err)
	}
	// Message boundaries are the protocol's framing.
	l.socket, err = net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("exit socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("exit socket: %w", err), l.socket.Close())
	}
	l.work.Go(l.accept)
	return l, nil
}

// ConfigFile is what runsc's --pod-init-config wants. A nil Listener has none.
func (l *Listener) ConfigFile() string {
	if l == nil {
		return ""
	}
	return l.config
}

// Expect returns a channel that receives the end of a program in the sandbox whose
// runtime is process pid, and is closed when the sandbox's kernel is gone. program is
// the number of its process in there; another one may be expected after it. Call
// Forget once the sandbox is gone too. A nil Listener never reports.
func (l *Listener) Expect(pid, program int) <-chan sandbox.Ending {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &expected{group: program, end: make(chan sandbox.Ending, 1)}
	if before := l.waiting[pid]; before != nil && before.gone {
		e.gone = true
		close(e.end)
	}
	l.waiting[pid] = e
	return e.end
}

// Forget ends what Expect began.
func (l *Listener) Forget(pid int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, pid)
}

// Close closes every connection. It may be called twice.
func (l *Listener) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.closed = true
	for conn := range l.open {
		_ = conn.Close()
	}
	l.mu.Unlock()
	err := l.socket.Close() // removes the file too
	l.work.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close exit socket: %w", err)
	}
	return nil
}

func (l *Listener) accept() {
	for {
		conn, err := l.socket.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of one connection: its sandbox's end is told otherwise
		}
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			_ = conn.Close()
			return
		}
		l.open[conn] = true
		l.mu.Unlock()
		l.work.Go(func() {
			if pid, err := peer(conn); err == nil {
				l.serve(conn, pid)
				l.gone(pid)
			}
			l.mu.Lock()
			delete(l.open, conn)
			l.mu.Unlock()
			_ = conn.Close()
		})
	}
}

// serve reads one sandbox's reports until it is gone.
func (l *Listener) serve(conn *net.UnixConn, pid int) {
	buf := make([]byte, 4<<10)
	n, err := conn.Read(buf)
	if err != nil {
		return
	}
	// The greeting is the protocol's version; the same one agrees to it.
	if _, err := conn.Write(buf[:n]); err != nil {
		return
	}
	for {
		n, err := conn.Read(buf)
		if err != nil || n == 0 {
			return
		}
		if r, ok := decode(buf[:n]); ok {
			l.tell(pid, r)
		}
	}
}

// tell passes the first end on.
func (l *Listener) tell(pid int, r report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.waiting[pid]
	switch {
	case e == nil || e.told || e.gone: // nobody waits, or it was told before
	case r.sends:
		e.sent = true
	case r.group != e.group:
	case r.ended:
		e.told = true
		e.end <- sandbox.Ending{Status: r.status, Foreign: r.signal != 0 && !e.sent && !ofItself[r.signal]}
	case r.thread == r.group && e.left == nil:
		e.left = &r.status
	}
}

// gone says that no report can come any more. A program whose first thread left,
// and of which nothing else was heard, has ended with that thread's status.
func (l *Listener) gone(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.waiting[pid]
	if e == nil || e.gone {
		return
	}
	if e.gone = true; !e.told && e.left != nil {
		e.end <- sandbox.Ending{Status: *e.left}
	}
	close(e.end)
}

// peer returns the process that opened the connection.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return int(cred.Pid), nil
}
