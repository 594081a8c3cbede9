package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluice-rl/sluice/stages/reward-scorer/jsonlines"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
)

// Summary counts what was compared.
type Summary struct {
	Lines, Bad                  int // all lines, and those that could not be read
	Equal, Different, Undecided int
}

type pair struct {
	ID       json.RawMessage `json:"id"`
	Gold     references      `json:"gold"`
	Pred     *string         `json:"pred"`
	Decimals *int            `json:"decimals"`
	Strict   *bool           `json:"strict"`
	Sets     *bool           `json:"set_against_inequality"`
}

// references are one or several, each a text or a number.
type references []string

var errGold = errors.New("gold: want a string, a number or a list of them")

// UnmarshalJSON implements json.Unmarshaler.
func (r *references) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	var one jsonlines.Text
	if json.Unmarshal(raw, &one) == nil {
		*r = references{string(one)}
		return nil
	}
	var many []jsonlines.Text
	if json.Unmarshal(raw, &many) != nil || len(many) == 0 {
		return errGold
	}
	for _, t := range many {
		*r = append(*r, string(t))
	}
	return nil
}

type checked struct {
	ID       json.RawMessage    `json:"id"`
	Verdict  mathverify.Outcome `json:"verdict"`
	Method   string             `json:"method"`
	Reason   string             `json:"reason"`
	GoldRead string             `json:"gold_read"`
	PredRead string             `json:"pred_read"`
	Micros   int64              `json:"micros"`
}

type failed struct {
	ID    json.RawMessage `json:"id"`
	Error string          `json:"error"`
}

// Lines compares pairs and answers each line. What a pair says of its own options
// replaces that option for it.
func Lines(r io.Reader, w io.Writer, o mathverify.Options) (Summary, error) {
	var s Summary
	if err := o.Validate(); err != nil {
		return s, err
	}
	err := jsonlines.Answer(r, w, jsonlines.Usual, func(batch []jsonlines.Line) []any {
		out := make([]any, len(batch))
		for i, l := range batch {
			out[i] = s.check(l, o)
		}
		return out
	})
	return s, err
}

func (s *Summary) check(l jsonlines.Line, o mathverify.Options) any {
	s.Lines++
	var p pair
	err := l.Err
	if err == nil {
		err = jsonlines.Object(l.Text, &p, func() []*string {
			texts := []*string{p.Pred}
			for i := range p.Gold {
				texts = append(texts, &p.Gold[i])
			}
			return texts
		})
	}
	if err == nil && (len(p.Gold) == 0 || p.Pred == nil) {
		err = errors.New(`gold or pred is missing; want {"id", "gold", "pred"}`)
	}
	replace(&o.Decimals, p.Decimals)
	replace(&o.Strict, p.Strict)
	replace(&o.SetAgainstInequality, p.Sets)
	if err == nil {
		err = o.Validate()
	}
	if err != nil {
		s.Bad++
		return failed{p.ID, fmt.Sprintf("line %d: %v", l.N, err)}
	}
	start := time.Now()
	v := mathverify.Any(p.Gold, *p.Pred, o)
	switch v.Outcome {
	case mathverify.Equal:
		s.Equal++
	case mathverify.Different:
		s.Different++
	case mathverify.Undecided:
		s.Undecided++
	}
	return checked{p.ID, v.Outcome, v.Method, v.Reason, v.GoldRead, v.PredRead, time.Since(start).Microseconds()}
}

func replace[T any](to, by *T) {
	if by != nil {
		*to = *by
	}
}
