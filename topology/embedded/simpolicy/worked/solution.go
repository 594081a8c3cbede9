package worked

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// ErrNoProgram: a row is well formed, but its marks do not amount to a program that
// gives the reference.
var ErrNoProgram = errors.New("the marks give no program")

// maxSteps bounds one program.
const maxSteps = 20

// Solution is one worked problem.
type Solution struct {
	Question string
	// Lines are the program's assignments in order: "step1 = 48 / 2".
	Lines []string
	// Last is the name that the last line assigns.
	Last string
	// Results are the values of the lines, as a person writes them.
	Results []string
	// Answer is the reference, which the last result equals.
	Answer string
}

// Row is one line of a problems file.
type Row struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

// ParseRow reads one line of JSON.
func ParseRow(line []byte) (Row, error) {
	var r Row
	if err := json.Unmarshal(line, &r); err != nil {
		return Row{}, fmt.Errorf("not a JSON object {question, answer}: %w", err)
	}
	if strings.TrimSpace(r.Question) == "" {
		return Row{}, errors.New("question is missing or empty")
	}
	if strings.TrimSpace(r.Answer) == "" {
		return Row{}, errors.New("answer is missing or empty")
	}
	return r, nil
}

// Parse turns a row into a solution. Errors wrap ErrNoProgram.
func Parse(r Row) (Solution, error) {
	fail := func(format string, args ...any) (Solution, error) {
		return Solution{}, fmt.Errorf("%w: %w", ErrNoProgram, fmt.Errorf(format, args...))
	}
	prose, reference, ok := cutLast(r.Answer, "####")
	if !ok {
		return fail("no line \"#### reference\"")
	}
	ref, err := Eval(strings.TrimSpace(reference), nil)
	if err != nil {
		return fail("reference: %w", err)
	}
	marks := marksOf(prose)
	if len(marks) == 0 || len(marks) > maxSteps {
		return fail("%d calculator marks, want 1 to %d", len(marks), maxSteps)
	}
	s := Solution{Question: r.Question, Answer: Decimal(ref)}
	earlier := map[string]string{}
	var last *big.Rat
	for i, m := range marks {
		expr, written, ok := cutLast(m, "=")
		if !ok {
			return fail("mark %q has no result", m)
		}
		value, err := Eval(expr, nil)
		if err != nil {
			return fail("mark %q: %w", m, err)
		}
		said, err := Eval(written, nil)
		if err != nil || said.Cmp(value) != 0 {
			return fail("mark %q: it is %s", m, Decimal(value))
		}
		toks, err := tokenise(expr)
		if err != nil {
			return fail("mark %q: %w", m, err)
		}
		name := fmt.Sprintf("step%d", i+1)
		s.Lines = append(s.Lines, name+" = "+python(toks, earlier))
		s.Results = append(s.Results, Decimal(value))
		s.Last = name
		earlier[Decimal(value)] = name
		last = value
	}
	if last.Cmp(ref) != 0 {
		return fail("the last mark gives %s, the reference is %s", Decimal(last), s.Answer)
	}
	return s, nil
}

func marksOf(prose string) []string {
	var marks []string
	for {
		_, rest, ok := strings.Cut(prose, "<<")
		if !ok {
			return marks
		}
		mark, after, ok := strings.Cut(rest, ">>")
		if !ok {
			return marks
		}
		marks = append(marks, mark)
		prose = after
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Decimal writes a number as a person does: an integer without a point, else up to
// six decimals without trailing zeros.
func Decimal(v *big.Rat) string {
	if v.IsInt() {
		return v.Num().String()
	}
	s := strings.TrimRight(v.FloatString(6), "0")
	s = strings.TrimSuffix(s, ".")
	if s == "-0" {
		return "0"
	}
	return s
}
