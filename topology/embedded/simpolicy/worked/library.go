package worked

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// maxRow bounds one line of a problems file.
const maxRow = 1 << 20

// Library finds the worked solution of a question. It is not changed after Load and
// may be shared.
type Library struct {
	byQuestion map[string]*Solution
	keys       []string // of ordered, the questions without superfluous space
	ordered    []*Solution
	// Refused are the rows without a usable program, with the reason.
	Refused []Refusal
}

// Refusal says why a row is not in the library.
type Refusal struct {
	// Line counts from 1.
	Line   int
	Reason error
}

// ErrNoRows: a problems file has no row with a usable worked solution.
var ErrNoRows = errors.New("no row has a usable worked solution")

// Load reads a problems file: one JSON object {question, answer} a line. A line that
// is no such object, or whose marks give no program, is counted in Refused and left
// out. It is ErrNoRows, with the first refusal, if nothing is left.
func Load(data []byte) (*Library, error) {
	lib := &Library{byQuestion: map[string]*Solution{}}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		s, err := solve(line)
		if err != nil {
			lib.Refused = append(lib.Refused, Refusal{Line: n, Reason: err})
			continue
		}
		key := normal(s.Question)
		if _, twice := lib.byQuestion[key]; twice {
			lib.Refused = append(lib.Refused, Refusal{Line: n, Reason: fmt.Errorf("%w: the same question stood before", ErrNoProgram)})
			continue
		}
		lib.byQuestion[key] = &s
		lib.keys = append(lib.keys, key)
		lib.ordered = append(lib.ordered, &s)
	}
	switch {
	case len(lib.ordered) > 0:
		return lib, nil
	case len(lib.Refused) > 0:
		first := lib.Refused[0]
		return nil, fmt.Errorf("%w (rows refused: %d): line %d: %w", ErrNoRows, len(lib.Refused), first.Line, first.Reason)
	}
	return nil, fmt.Errorf("%w: the file is empty", ErrNoRows)
}

// solve reads one line and makes its solution.
func solve(line []byte) (Solution, error) {
	if len(line) > maxRow {
		return Solution{}, fmt.Errorf("a line of %d bytes, at most %d", len(line), maxRow)
	}
	row, err := ParseRow(line)
	if err != nil {
		return Solution{}, err
	}
	return Parse(row)
}

// Find returns the solution of the question that a user message asks, nil if there
// is none. The message may hold more than the question (a request to box the answer).
func (l *Library) Find(message string) *Solution {
	m := normal(message)
	if s, ok := l.byQuestion[m]; ok {
		return s
	}
	var best *Solution
	for i, s := range l.ordered {
		if (best == nil || len(s.Question) > len(best.Question)) && strings.Contains(m, l.keys[i]) {
			best = s
		}
	}
	return best
}

// All returns the solutions in the file's order.
func (l *Library) All() []*Solution { return l.ordered }

// Len counts the solutions.
func (l *Library) Len() int { return len(l.ordered) }

// normal folds white space, which data preparation may have touched.
func normal(s string) string { return strings.Join(strings.Fields(s), " ") }
