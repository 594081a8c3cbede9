package archive

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// ErrSelection: a range or filter cannot be used.
var ErrSelection = errors.New("cannot select")

// Span is offsets [From, To).
type Span struct{ From, To int64 }

// Selection says which records are meant. The zero value means all.
type Selection struct {
	// Runs, Questions and DataSources name what is meant; empty: all.
	Runs, Questions, DataSources []string
	// FirstStep to LastStep are meant, both included; 0: no bound.
	FirstStep, LastStep uint64
	// Since and Before bound the record's time, Before excluded; zero: no bound.
	Since, Before time.Time
	// Offsets bounds the offsets by partition; a partition that is not named is
	// not meant. Nil: all.
	Offsets map[int32]Span
}

// Check refuses a selection that can have nothing in it.
func (s Selection) Check() error {
	if !s.Since.IsZero() && !s.Before.IsZero() && !s.Since.Before(s.Before) {
		return fmt.Errorf("--since %s is not before --before %s", s.Since.Format(time.RFC3339), s.Before.Format(time.RFC3339))
	}
	return nil
}

// Placed says whether a record's time and offset are meant.
func (s Selection) Placed(r Record) bool {
	if !s.Since.IsZero() && r.Time.Before(s.Since) || !s.Before.IsZero() && !r.Time.Before(s.Before) {
		return false
	}
	if s.Offsets == nil {
		return true
	}
	span, named := s.Offsets[r.Partition]
	return named && r.Offset >= span.From && r.Offset < span.To
}

// Said says whether what a record says of itself is meant: run, step, question and data
// source. A record about a whole step is of no question.
func (s Selection) Said(r Record) bool {
	if !s.filters() {
		return true
	}
	f := r.Facts()
	if len(s.Runs) > 0 && !slices.Contains(s.Runs, f.GetGroup().GetRunId()) ||
		len(s.Questions) > 0 && !slices.Contains(s.Questions, f.GetQuestionId()) ||
		len(s.DataSources) > 0 && !slices.Contains(s.DataSources, f.GetDataSource()) {
		return false
	}
	if s.FirstStep == 0 && s.LastStep == 0 {
		return true
	}
	step := f.GetGroup().GetStep()
	return f.HasStep && step >= s.FirstStep && (s.LastStep == 0 || step <= s.LastStep)
}

func (s Selection) filters() bool {
	return len(s.Runs) > 0 || s.ByProblem() || s.FirstStep > 0 || s.LastStep > 0
}

// ByProblem says whether whole steps are out of the question.
func (s Selection) ByProblem() bool { return len(s.Questions) > 0 || len(s.DataSources) > 0 }

// Register makes the flags of a selection.
func (s *Selection) Register(f *pflag.FlagSet) {
	f.StringSliceVar(&s.Runs, "run", nil, "only these runs, by id, comma between them")
	f.StringSliceVar(&s.Questions, "question", nil, "only these questions, by id, comma between them")
	f.StringSliceVar(&s.DataSources, "data-source", nil, "only problems of these data sources, comma between them")
	f.Var(textFlag{&s.FirstStep, &s.LastStep, setSteps, "steps"}, "steps", "only these steps, both ends included: 7, 10-20, 10- or -20")
	f.Var(timeFlag{&s.Since}, "since", "only records written at or after this time: RFC 3339, such as 2026-11-01T12:00:00Z")
	f.Var(timeFlag{&s.Before}, "before", "only records written before this time: RFC 3339")
	f.Var(offsetsFlag{&s.Offsets}, "offsets", "only these offsets, the second excluded, of these partitions: 0:100-200,3:0-50")
}

type textFlag struct {
	first, last *uint64
	set         func(text string) (uint64, uint64, error)
	kind        string
}

func (t textFlag) Type() string { return t.kind }
func (t textFlag) String() string {
	if t.first == nil || *t.first == 0 && *t.last == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d", *t.first, *t.last)
}
func (t textFlag) Set(text string) (err error) {
	*t.first, *t.last, err = t.set(text)
	return err
}

// setSteps reads "7", "10-20", "10-" or "-20".
func setSteps(text string) (first, last uint64, err error) {
	a, b, isRange := strings.Cut(text, "-")
	if !isRange {
		b = a
	}
	if a != "" {
		if first, err = strconv.ParseUint(a, 10, 64); err == nil && first == 0 {
			err = errors.New("steps count from 1")
		}
	}
	if err == nil && b != "" {
		last, err = strconv.ParseUint(b, 10, 64)
	}
	if err == nil && (text == "" || text == "-" || b != "" && last < max(first, 1)) {
		err = errors.New("the range is empty")
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w: steps %q: want 7, 10-20, 10- or -20: %w", ErrSelection, text, err)
	}
	return first, last, nil
}

type timeFlag struct{ t *time.Time }

func (t timeFlag) Type() string { return "time" }
func (t timeFlag) String() string {
	if t.t == nil || t.t.IsZero() {
		return ""
	}
	return t.t.Format(time.RFC3339Nano)
}
func (t timeFlag) Set(text string) error {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("%w: time %q: want RFC 3339, such as 2026-11-01T12:00:00Z", ErrSelection, text)
	}
	*t.t = at
	return nil
}

type offsetsFlag struct{ m *map[int32]Span }

func (o offsetsFlag) Type() string   { return "offsets" }
func (o offsetsFlag) String() string { return "" }
func (o offsetsFlag) Set(text string) error {
	m := map[int32]Span{}
	for part := range strings.SplitSeq(text, ",") {
		var p int32
		var s Span
		var rest string
		if n, _ := fmt.Sscanf(part+"\n", "%d:%d-%d%s", &p, &s.From, &s.To, &rest); n != 3 || p < 0 || s.From < 0 || s.To <= s.From {
			return fmt.Errorf("%w: offsets %q: want PARTITION:FROM-TO, FROM below TO, such as 0:100-200", ErrSelection, part)
		}
		if _, twice := m[p]; twice {
			return fmt.Errorf("%w: offsets: partition %d stands twice", ErrSelection, p)
		}
		m[p] = s
	}
	*o.m = m
	return nil
}
