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
	"path/filepath"
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
	// A root folder with too long a path for a socket makes runsc use the
	// first of the others that it can write.
	for _, dir := range []string{root, "/var/run", "/run", "/tmp"} {
		conn, err := net.DialTimeout("unix", filepath.Join(dir, name), dialTimeout)
		if err == nil {
			return &Conn{conn: conn, id: id}, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("control socket: %w", errors.Join(errs...))
}

// Wait returns when the sandbox's process 1 has ended, with its status. Close
// makes it fail.
func (c *Conn) Wait() (syscall.WaitStatus, error) {
	request, err := json.Marshal(struct {
		Method string `json:"method"`
		Arg    string `json:"arg"`
	}{"containerManager.Wait", c.id})
	if err != nil {
		return 0, fmt.Errorf("control request: %w", err)
	}
	if _, err := c.conn.Write(request); err != nil {
		return 0, fmt.Errorf("control request: %w", err)
	}
	var answer struct {
		Success bool   `json:"success"`
		Err     string `json:"err"`
		Result  uint32 `json:"result"`
	}
	if err := json.NewDecoder(c.conn).Decode(&answer); err != nil {
		return 0, fmt.Errorf("control answer: %w", err)
	}
	if !answer.Success {
		return 0, fmt.Errorf("%w: %s", ErrRefused, answer.Err)
	}
	return syscall.WaitStatus(answer.Result), nil
}

// Close ends the connection. An open one delays the sandbox's orderly end.
func (c *Conn) Close() error { return c.conn.Close() }
