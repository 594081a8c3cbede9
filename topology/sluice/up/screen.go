package up

import (
	"fmt"
	"io"
	"sync"

	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

// screen is the terminal, shared by the view and by all that have something to say.
type screen struct {
	mu    sync.Mutex
	out   io.Writer
	block *terminal.Block
}

func newScreen(out io.Writer, plain bool) *screen {
	if plain {
		// A writer that is no file is never redrawn.
		out = struct{ io.Writer }{out}
	}
	return &screen{out: out, block: terminal.NewBlock(out)}
}

func (s *screen) InPlace() bool { return s.block.InPlace() }

// Say prints a line above the view.
func (s *screen) Say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.block.Say("%s", fmt.Sprintf(format, args...))
}

func (s *screen) redraw(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.block.Draw(lines)
}

// finish leaves the last view as it is; what is printed next comes below.
func (s *screen) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.block.Leave()
}
