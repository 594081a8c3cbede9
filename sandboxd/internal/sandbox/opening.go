package sandbox

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// opening is stdout while the worker still speaks: it waits for one line after
// another, and passes on everything after the last.
type opening struct {
	to io.Writer

	mu    sync.Mutex
	buf   []byte
	lines []string // still to come
	heard map[string]chan struct{}
}

func newOpening(to io.Writer, lines ...string) *opening {
	o := &opening{to: to, lines: lines, heard: map[string]chan struct{}{}}
	for _, line := range lines {
		o.heard[line] = make(chan struct{})
	}
	return o
}

// reached is closed when the worker has written line, one of those that
// newOpening was given.
func (o *opening) reached(line string) <-chan struct{} { return o.heard[line] }

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
		_, rest, ok := bytes.Cut(o.buf, []byte(o.lines[0]))
		if !ok {
			if len(o.buf) > maxOpening {
				return 0, errors.New("worker says too much before it is ready")
			}
			return len(p), nil
		}
		close(o.heard[o.lines[0]])
		o.buf, o.lines = rest, o.lines[1:]
	}
	_, _ = o.to.Write(o.buf)
	o.buf = nil
	return len(p), nil
}
