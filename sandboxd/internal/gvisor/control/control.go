// Package control asks a running gVisor sandbox when its program ended.
//
// Reads and writes: the sandbox's control socket, which speaks one JSON object
// per request and per answer. The runtime's own process tells the same by its
// exit status, but only after it has taken the sandbox apart, some 20 ms later.
// Promises: an answer comes from gVisor's kernel, out of the program's reach,
// and tells an exit status from a signal exactly; no answer is no harm, since
// the runtime's exit follows anyway.
package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// ErrRefused occurs when the sandbox answers with an error.
var ErrRefused = errors.New("sandbox refused the request")

// dialTimeout bounds the connection to a socket of this machine.
const dialTimeout = 2 * time.Second

// Conn is a connection to one sandbox.
type Conn struct {
	conn net.Conn
	id   string
}

// Dial connects to sandbox id, whose runtime has the root folder root.
func Dial(root, id string) (*Conn, error) {
	var errs []error
	name := "runsc-" + id + ".sock"
	// A root folder that cannot hold a socket makes runsc use the first of the
	// others that it can write.
	for _, dir := range []string{root, "/var/run", "/run", "/tmp"} {
		conn, err := dialIn(dir, name)
		if err == nil {
			return &Conn{conn: conn, id: id}, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("control socket: %w", errors.Join(errs...))
}

// dialIn connects to a socket by way of its folder's descriptor, as runsc made it:
// a socket's path has 107 bytes, and a state folder's may have more.
func dialIn(dir, name string) (net.Conn, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return net.DialTimeout("unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name), dialTimeout)
}

// Wait returns when the sandbox's process 1 has ended, with its status. Close
// makes it fail.
func (c *Conn) Wait() (syscall.WaitStatus, error) {
	result, err := c.ask("containerManager.Wait", c.id)
	if err != nil {
		return 0, err
	}
	var status uint32
	if err := json.Unmarshal(result, &status); err != nil {
		return 0, fmt.Errorf("control answer: %w", err)
	}
	return syscall.WaitStatus(status), nil
}

// ask calls a method.
func (c *Conn) ask(method string, arg any) (json.RawMessage, error) {
	request, err := json.Marshal(struct {
		Method string `json:"method"`
		Arg    any    `json:"arg"`
	}{method, arg})
	if err != nil {
		return nil, fmt.Errorf("control request: %w", err)
	}
	if _, err := c.conn.Write(request); err != nil {
		return nil, fmt.Errorf("control request: %w", err)
	}
	var answer struct {
		Success bool            `json:"success"`
		Err     string          `json:"err"`
		Result  json.RawMessage `json:"result"`
	}
	if err := json.NewDecoder(c.conn).Decode(&answer); err != nil {
		return nil, fmt.Errorf("control answer: %w", err)
	}
	if !answer.Success {
		return nil, fmt.Errorf("%w: %s", ErrRefused, answer.Err)
	}
	return answer.Result, nil
}

// Ping asks for a sign of life, for at most patience.
func (c *Conn) Ping(patience time.Duration) error {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("control request: %w", err)
	}
	_, err := c.ask("containerManager.Processes", c.id)
	return err
}

// Signal sends a signal to a process of the sandbox, for at most patience.
func (c *Conn) Signal(process int, signal syscall.Signal, patience time.Duration) error {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("control request: %w", err)
	}
	_, err := c.ask("containerManager.Signal", struct {
		CID        string
		Signo, PID int32
	}{c.id, int32(signal), int32(process)})
	return err
}

// Close ends the connection. An open one delays the sandbox's orderly end.
func (c *Conn) Close() error { return c.conn.Close() }
