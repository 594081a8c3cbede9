package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Block is a block of lines at the end of a terminal that is drawn again in place.
// Lines printed with Say scroll by above it. It is not safe for concurrent use.
type Block struct {
	out   io.Writer
	tty   bool
	width int
	drawn int
	lines []string
}

// NewBlock draws to out; in place only if out is a terminal that can.
func NewBlock(out io.Writer) *Block {
	b := &Block{out: out}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return b
	}
	b.tty = true
	b.width = 80
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
		b.width = w
	}
	return b
}

// InPlace reports whether the block is redrawn; if not, Draw does nothing and the
// caller says a line now and then.
func (b *Block) InPlace() bool { return b.tty }

// Draw replaces the block by these lines, cut to the terminal's width.
func (b *Block) Draw(lines []string) {
	if !b.tty {
		return
	}
	b.lines = lines
	var s strings.Builder
	b.up(&s)
	for _, line := range lines {
		s.WriteString(Shorten(line, b.width-1) + "\x1b[K\n")
	}
	s.WriteString("\x1b[J")
	b.drawn = len(lines)
	io.WriteString(b.out, s.String())
}

// Say prints a line above the block.
func (b *Block) Say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if !b.tty {
		fmt.Fprintln(b.out, line)
		return
	}
	var s strings.Builder
	b.up(&s)
	s.WriteString("\x1b[J" + line + "\n")
	b.drawn = 0
	io.WriteString(b.out, s.String())
	b.Draw(b.lines)
}

// Leave ends the block where it stands: what is printed next comes below it.
func (b *Block) Leave() { b.lines, b.drawn = nil, 0 }

func (b *Block) up(s *strings.Builder) {
	if b.drawn > 0 {
		fmt.Fprintf(s, "\x1b[%dA\r", b.drawn)
	}
}

// Colours reports whether text to out may be coloured: it is a terminal and NO_COLOR
// is not set.
func Colours(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
