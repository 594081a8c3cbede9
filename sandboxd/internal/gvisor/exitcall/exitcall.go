// Package exitcall hears of a program's exit the moment that it happens.
//
// gVisor's kernel answers a wait only after it has taken the process's memory
// apart, which takes 5 to 15 ms and is no concern of the caller: the sandbox is
// about to be killed as a whole. But the kernel can also report system calls to
// a socket as they happen, and exit_group of process 1 is the end of a program,
// with its status, after its last byte of output.
//
// Reads: reports from the sandboxes of this daemon, over a socket in the state
// folder. Writes: the configuration that makes gVisor send them. Promises: a
// report comes from gVisor's kernel, out of the program's reach; a sandbox can
// report for itself only, since a connection belongs to the process that opened
// it, which is the runtime that the daemon started. A program that dies by a
// signal makes no such call: its end is told by package control.
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
)

// Listener receives the reports of all sandboxes. Make it with Listen.
type Listener struct {
	config string
	socket *net.UnixListener
	work   sync.WaitGroup

	mu      sync.Mutex
	waiting map[int]chan int // by the runtime's process number
	open    map[*net.UnixConn]bool
	closed  bool
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
	l := &Listener{config: filepath.Join(dir, "exits.json"), waiting: map[int]chan int{}, open: map[*net.UnixConn]bool{}}
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

// Expect returns a channel that receives the exit status of the program in the
// sandbox whose runtime is process pid. Call Forget once the sandbox is gone. A
// nil Listener never reports.
func (l *Listener) Expect(pid int) <-chan int {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	status := make(chan int, 1)
	l.waiting[pid] = status
	return status
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
			l.serve(conn)
			l.mu.Lock()
			delete(l.open, conn)
			l.mu.Unlock()
			_ = conn.Close()
		})
	}
}

// serve reads one sandbox's reports until it is gone.
func (l *Listener) serve(conn *net.UnixConn) {
	pid, err := peer(conn)
	if err != nil {
		return
	}
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
		if group, status, ok := decode(buf[:n]); ok && group == 1 {
			l.tell(pid, status)
		}
	}
}

func (l *Listener) tell(pid, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.waiting[pid] <- status:
	default: // nobody waits, or it was told before
	}
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
