package supervise

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

const (
	tailLines = 12
	tailBytes = 8 << 10
	tailWidth = 300
)

// tail is the end of the child's log for an error message, made harmless.
func (c *Child) tail() string {
	lines, err := lastLines(c.LogPath())
	if err != nil || len(lines) == 0 {
		return fmt.Sprintf("  its log %s says nothing", c.LogPath())
	}
	return fmt.Sprintf("  the end of %s:\n    %s", c.LogPath(), strings.Join(lines, "\n    "))
}

func lastLines(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(max(size-tailBytes, 0), io.SeekStart); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, tailBytes))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	if len(lines) == 1 && lines[0] == "" {
		return nil, nil
	}
	for i := range lines {
		lines[i] = terminal.Shorten(terminal.Escape(lines[i]), tailWidth)
	}
	return lines, nil
}
