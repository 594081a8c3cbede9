package dataset

import (
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// DevAuto lets Prepare choose how many questions are kept apart: a tenth, at most 50.
const DevAuto = -1

// normalQuestion is a question as repeats of it are found: in compatibility form, lower
// case, white space of any length one space.
func normalQuestion(q string) string {
	return strings.Join(strings.Fields(strings.ToLower(norm.NFKC.String(q))), " ")
}

// dedupe leaves of each question its first row, and counts those that give a question
// another answer than its first row does.
func (m *Manifest) dedupe(rows []numbered, keep bool) []numbered {
	first := map[string]string{}
	var kept []numbered
	for _, r := range rows {
		q := normalQuestion(r.Question)
		answer, seen := first[q]
		switch {
		case !seen:
			first[q] = r.Answer
		case answer != r.Answer:
			m.ConflictingAnswers++
			fallthrough
		default:
			m.RepeatedQuestions++
		}
		if !seen || keep {
			kept = append(kept, r)
		}
	}
	m.Questions = len(first)
	return kept
}

// split keeps apart the first dev questions of the shuffled rows, and leaves out of both
// files the rows that repeat one of them: none of dev is trained on. Without repeats it is
// the first dev rows, and the rest.
func (m *Manifest) split(shuffled []numbered, dev int) (devRows, train []numbered, err error) {
	if dev == DevAuto {
		dev = min(50, m.Questions/10)
	}
	if dev < 0 || dev >= m.Questions {
		return nil, nil, fmt.Errorf("%w: dev size %d with %d questions in %d usable rows of %d: want --dev 0 to %d, so that something is left to train on, or --dev auto",
			ErrSplit, dev, m.Questions, len(shuffled), m.Rows, m.Questions-1)
	}
	apart := map[string]bool{}
	for _, r := range shuffled {
		q := normalQuestion(r.Question)
		switch {
		case apart[q]:
			m.DevRepeatsLeftOut++
		case len(devRows) < dev:
			apart[q] = true
			devRows = append(devRows, r)
		default:
			train = append(train, r)
		}
	}
	m.Dev, m.Train = len(devRows), len(train)
	return devRows, train, nil
}
