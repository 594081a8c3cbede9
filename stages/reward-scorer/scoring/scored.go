package scoring

import (
	"strings"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

// Of joins a trajectory with what the rewards say of it, the deciding one first.
// A trajectory that is ungraded by its end needs none.
func Of(t *sluicev1.Trajectory, results []reward.Result) *sluicev1.Scored {
	s := &sluicev1.Scored{Trajectory: t}
	if why := Ungraded(t); why != "" {
		s.UngradedReason = why
		return s
	}
	for _, r := range results {
		score := &sluicev1.Score{Name: r.Scorer, Version: r.Version}
		if r.Err != nil {
			score.Error = clip(r.Err.Error())
		} else {
			score.Reward = r.Reward
		}
		s.Scores = append(s.Scores, score)
	}
	if why := s.GetScores()[0].GetError(); why != "" {
		s.UngradedReason = why
		return s
	}
	decides := results[0]
	s.Graded, s.Reward = true, decides.Reward
	s.Correct, s.ValidFormat, s.Answer = decides.Correct, decides.ValidFormat, decides.Answer
	s.Verdict = verdictOf(decides.Verdict)
	return s
}

func verdictOf(v mathverify.Verdict) *sluicev1.Verdict {
	if v.Outcome == "" {
		return nil
	}
	out := &sluicev1.Verdict{Method: v.Method, Reason: clip(v.Reason), GoldRead: clip(v.GoldRead), PredRead: clip(v.PredRead)}
	switch v.Outcome {
	case mathverify.Equal:
		out.Outcome = sluicev1.VerdictOutcome_VERDICT_OUTCOME_EQUAL
	case mathverify.Different:
		out.Outcome = sluicev1.VerdictOutcome_VERDICT_OUTCOME_DIFFERENT
	default:
		out.Outcome = sluicev1.VerdictOutcome_VERDICT_OUTCOME_UNDECIDED
	}
	return out
}

// maxText bounds each text that explains a score, in bytes: it repeats what stands in
// the trajectory, which is beside it.
const maxText = 2000

// clip makes a text fit for a record: valid UTF-8 of at most maxText bytes.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + " [...]"
}
