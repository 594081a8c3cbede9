package worked

import (
	"bufio"
	"bytes"
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

// Load reads a problems file: one JSON object {question, answer} a line. A line that
// is no such object is an error naming it; a row whose marks give no program is
// counted in Refused and its question stays unknown.
func Load(data []byte) (*Library, error) {
	lib := &Library{byQuestion: map[string]*Solution{}}
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, maxRow)
	for n := 1; sc.Scan(); n++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		row, err := ParseRow(sc.Bytes())
		if err != nil {
			return nil, fmt.Errorf("problems, line %d: %w", n, err)
		}
		s, err := Parse(row)
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
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("problems: %w", err)
	}
	return lib, nil
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
