package daemon

import (
	"fmt"
	"strconv"
	"strings"
)

// size is a flag value in bytes, written as 512MiB, 64KiB or a plain number.
type size int64

var units = []struct {
	suffix string
	factor int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}}

// String writes the largest unit that loses nothing.
func (s *size) String() string {
	n := int64(*s)
	for _, u := range []int{2, 1, 0} {
		if f := units[u].factor; n != 0 && n%f == 0 {
			return strconv.FormatInt(n/f, 10) + units[u].suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// Set reads a size.
func (s *size) Set(text string) error {
	number, factor := strings.TrimSpace(text), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = rest, u.factor
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > (1<<62)/factor {
		return fmt.Errorf("size %q: want a number with KiB, MiB, GiB or nothing", text)
	}
	*s = size(n * factor)
	return nil
}

// Type names the value in --help.
func (s *size) Type() string { return "size" }
