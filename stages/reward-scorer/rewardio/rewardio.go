package rewardio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/reward-scorer/jsonlines"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/scoring"
)

// Summary counts what was done.
type Summary struct {
	Lines, Bad                  int // all lines, and those that could not be read
	Equal, Different, Undecided int // verdicts of the deciding score
	// Texts without a deciding reward, those of them on which the reward
	// failed (the others' end says nothing of the policy), and the last failure.
	Ungraded, Failed int
	LastFailure      error
}

// AllFailed: there was something to score, and the deciding reward failed on all of it.
func (s Summary) AllFailed() bool { return s.Failed > 0 && s.Ungraded == s.Lines-s.Bad }

type failed struct {
	ID    json.RawMessage `json:"id"`
	Error string          `json:"error"`
}

// unread answers a line that cannot be read.
func (s *Summary) unread(l jsonlines.Line, id json.RawMessage, err error) any {
	s.Bad++
	return failed{id, fmt.Sprintf("line %d: %v", l.N, err)}
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
	Reference       *jsonlines.Text `json:"reference"`
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
		most = jsonlines.Usual
	}
	err := jsonlines.Answer(r, w, most, func(batch []jsonlines.Line) []any {
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

func readResponse(l jsonlines.Line) (response, error) {
	p := response{EndReason: schemas.EnumText(sluicev1.EndReason_END_REASON_ANSWER), Turns: 1}
	if l.Err != nil {
		return p, l.Err
	}
	err := jsonlines.Object(l.Text, &p, func() []*string { return []*string{p.Text, (*string)(p.Reference)} })
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
		FinalText: *p.Text, Reference: string(*p.Reference), EndReason: p.end, CodeCalls: p.CodeCalls, CodeErrors: p.CodeErrors,
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
