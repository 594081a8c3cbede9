package sandbox

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// opening is a stream while the worker still speaks: it waits for one line after
// another, and passes on everything after the last. What stands before the first is
// thrown away: of the program before, if there was one.
type opening struct {
	to io.Writer

	mu    sync.Mutex
	buf   []byte
	lines []string // still to come
	first bool     // the first is
	heard map[string]chan struct{}
	rest  map[string]string
}

// newOpening takes the lines in their order. One that does not end in a line feed is
// only the beginning of a line.
func newOpening(to io.Writer, lines ...string) *opening {
	o := &opening{to: to, lines: lines, first: true, heard: map[string]chan struct{}{}, rest: map[string]string{}}
	for _, line := range lines {
		o.heard[line] = make(chan struct{})
	}
	return o
}

// reached is closed when the worker has written line, one of those that
// newOpening was given.
func (o *opening) reached(line string) <-chan struct{} { return o.heard[line] }

// tail is how a line that was reached goes on.
func (o *opening) tail(line string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rest[line]
}

// maxOpening bounds what a worker may say before the program runs.
const maxOpening = 64 << 10

func (o *opening) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lines) == 0 {
		return o.to.Write(p)
	}
	o.buf = append(o.buf, p...)
	for len(o.lines) > 0 {
		if !o.next() {
			return len(p), o.bound()
		}
	}
	_, _ = o.to.Write(o.buf)
	o.buf = nil
	return len(p), nil
}

// next looks for the next line.
func (o *opening) next() bool {
	line := o.lines[0]
	_, rest, ok := bytes.Cut(o.buf, []byte(line))
	if !ok {
		return false
	}
	if line[len(line)-1] != '\n' {
		var more []byte
		if more, rest, ok = bytes.Cut(rest, []byte("\n")); !ok {
			return false
		}
		o.rest[line] = string(more)
	}
	close(o.heard[line])
	o.buf, o.lines, o.first = rest, o.lines[1:], false
	return true
}

func (o *opening) bound() error {
	if len(o.buf) <= maxOpening {
		return nil
	}
	if !o.first {
		return errors.New("worker says too much before it is ready")
	}
	o.buf = append([]byte(nil), o.buf[len(o.buf)-len(o.lines[0]):]...)
	return nil
}
