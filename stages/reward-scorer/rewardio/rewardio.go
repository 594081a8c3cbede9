package rewardio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/scoring"
)

// Summary counts what was done.
type Summary struct {
	Lines, Bad                  int // all lines, and those that could not be read
	Equal, Different, Undecided int // verdicts of Check, or of the deciding score
	// Of ScoreLines: texts without a deciding reward, those of them on which the reward
	// failed (the others' end says nothing of the policy), and the last failure.
	Ungraded, Failed int
	LastFailure      error
}

// AllFailed: there was something to score, and the deciding reward failed on all of it.
func (s Summary) AllFailed() bool { return s.Failed > 0 && s.Ungraded == s.Lines-s.Bad }

type pair struct {
	ID       json.RawMessage `json:"id"`
	Gold     *string         `json:"gold"`
	Pred     *string         `json:"pred"`
	Decimals int             `json:"decimals"`
	Sets     bool            `json:"set_against_inequality"`
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

// Check compares pairs and answers each line, a bad one with {"id", "error"}; a line
// without an id is answered with null for it. A pair may have "decimals", which replaces the number
// of decimals that count for it, and "set_against_inequality", the option of
// that name.
func Check(r io.Reader, w io.Writer, profile mathverify.Profile) (Summary, error) {
	var s Summary
	if err := (mathverify.Options{Profile: profile}).Validate(); err != nil {
		return s, err
	}
	err := lines(r, w, usualBatch, func(batch []line) []any {
		out := make([]any, len(batch))
		for i, l := range batch {
			out[i] = s.check(l, profile)
		}
		return out
	})
	return s, err
}

func (s *Summary) check(l line, profile mathverify.Profile) any {
	s.Lines++
	var p pair
	err := l.err
	if err == nil {
		err = readObject(l.text, &p, func() []*string { return []*string{p.Gold, p.Pred} })
	}
	if err == nil && (p.Gold == nil || p.Pred == nil) {
		err = errors.New("gold or pred is missing; want {\"id\", \"gold\", \"pred\"}")
	}
	o := mathverify.Options{Profile: profile, Decimals: p.Decimals, SetAgainstInequality: p.Sets}
	if err == nil {
		err = o.Validate()
	}
	if err != nil {
		return s.unread(l, p.ID, err)
	}
	start := time.Now()
	v := mathverify.Compare(*p.Gold, *p.Pred, o)
	s.count(v.Outcome)
	return checked{p.ID, v.Outcome, v.Method, v.Reason, v.GoldRead, v.PredRead, time.Since(start).Microseconds()}
}

// unread answers a line that cannot be read.
func (s *Summary) unread(l line, id json.RawMessage, err error) any {
	s.Bad++
	return failed{id, fmt.Sprintf("line %d: %v", l.n, err)}
}

func (s *Summary) count(o mathverify.Outcome) {
	switch o {
	case mathverify.Equal:
		s.Equal++
	case mathverify.Different:
		s.Different++
	case mathverify.Undecided:
		s.Undecided++
	}
}

type response struct {
	ID              json.RawMessage `json:"id"`
	Text            *string         `json:"text"`
	Reference       *string         `json:"reference"`
	EndReason       string          `json:"end_reason"`
	CodeCalls       int             `json:"code_calls"`
	CodeErrors      int             `json:"code_errors"`
	Executions      int             `json:"executions"`
	FirstCallFailed bool            `json:"first_call_failed"`
	Turns           int             `json:"turns"`
	Tokens          int             `json:"tokens"`
	Truncated       bool            `json:"truncated"`
	DataSource      string          `json:"data_source"`
	QuestionID      string          `json:"question_id"`

	end sluicev1.EndReason
}

type scoredLine struct {
	ID json.RawMessage `json:"id"`
	oneScore
	Correct     *bool              `json:"correct"`
	ValidFormat *bool              `json:"valid_format"`
	Answer      string             `json:"answer"`
	Verdict     mathverify.Outcome `json:"verdict"`
	Method      string             `json:"method"`
	Reason      string             `json:"reason"`
	GoldRead    string             `json:"gold_read"`
	PredRead    string             `json:"pred_read"`
	Others      []oneScore         `json:"others,omitempty"`
}

type oneScore struct {
	Scorer  string   `json:"scorer"`
	Version string   `json:"version"`
	Reward  *float64 `json:"reward"`
	Error   string   `json:"error,omitempty"`
}

// ScoreLines scores responses. Beyond text and reference a line may have the
// facts that rewards look at: end_reason (default "answer"), code_calls,
// code_errors, executions, first_call_failed, turns, tokens, truncated,
// data_source, question_id. A reward that failed is null, with its error; so is what it
// would have found out.
func ScoreLines(ctx context.Context, r io.Reader, w io.Writer, rewards *reward.Set) (Summary, error) {
	var s Summary
	most := rewards.Batch()
	if most == 0 {
		most = usualBatch
	}
	err := lines(r, w, most, func(batch []line) []any {
		out := make([]any, len(batch))
		var in []reward.Input
		var ids []json.RawMessage
		var places []int
		for i, l := range batch {
			s.Lines++
			p, err := readResponse(l)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				out[i] = s.unread(l, p.ID, err)
				continue
			}
			in, ids, places = append(in, p.input()), append(ids, p.ID), append(places, i)
		}
		for k, results := range scoring.Score(ctx, rewards, in) {
			out[places[k]] = s.score(ids[k], results)
		}
		return out
	})
	return s, err
}

func readResponse(l line) (response, error) {
	p := response{EndReason: schemas.EnumText(sluicev1.EndReason_END_REASON_ANSWER), Turns: 1}
	if l.err != nil {
		return p, l.err
	}
	err := readObject(l.text, &p, func() []*string { return []*string{p.Text, p.Reference} })
	if err == nil && (p.Text == nil || p.Reference == nil) {
		err = errors.New("text or reference is missing; want {\"id\", \"text\", \"reference\"}")
	}
	if err == nil {
		if p.end, err = schemas.ParseEnum[sluicev1.EndReason](p.EndReason); err != nil {
			err = fmt.Errorf("end_reason %w", err)
		}
	}
	return p, err
}

func (p response) input() reward.Input {
	return reward.Input{
		FinalText: *p.Text, Reference: *p.Reference, EndReason: p.end, CodeCalls: p.CodeCalls, CodeErrors: p.CodeErrors,
		Executions: p.Executions, FirstCallFailed: p.FirstCallFailed, Turns: p.Turns, Tokens: p.Tokens, Truncated: p.Truncated,
		DataSource: p.DataSource, QuestionID: p.QuestionID,
	}
}

// score answers a line by what the rewards said.
func (s *Summary) score(id json.RawMessage, results []reward.Result) any {
	first := results[0]
	if first.Err != nil {
		s.Ungraded++
	}
	if first.Err != nil && !errors.Is(first.Err, reward.ErrUngraded) {
		s.Failed++
		s.LastFailure = first.Err
	}
	v := first.Verdict
	s.count(v.Outcome)
	out := scoredLine{ID: id, oneScore: scoreOf(first), Answer: first.Answer,
		Verdict: v.Outcome, Method: v.Method, Reason: v.Reason, GoldRead: v.GoldRead, PredRead: v.PredRead}
	if first.Err == nil || v.Outcome != "" {
		out.Correct, out.ValidFormat = &first.Correct, &first.ValidFormat
	}
	for _, other := range results[1:] {
		out.Others = append(out.Others, scoreOf(other))
	}
	return out
}

func scoreOf(r reward.Result) oneScore {
	o := oneScore{Scorer: r.Scorer, Version: r.Version}
	if r.Err != nil {
		o.Error = r.Err.Error()
		return o
	}
	o.Reward = &r.Reward
	return o
}
