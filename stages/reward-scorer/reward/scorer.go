package reward

import (
	"context"
	"fmt"

	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
)

// Logic is the plug-in: it pays for judged facts. It must be deterministic and
// safe for concurrent use.
type Logic interface {
	// Pay returns the reward of each trajectory, in order. A Payment with Err
	// set leaves that trajectory ungraded.
	Pay(ctx context.Context, judged []Judged) []Payment
}

// Batcher is a Logic that is better asked for many trajectories at once.
type Batcher interface {
	Logic
	// Batch is how many it takes at once.
	Batch() int
}

// Payment is one reward, or the reason that there is none.
type Payment struct {
	Reward float64
	Err    error
}

// LogicFunc makes a Logic of a function of one trajectory.
type LogicFunc func(Judged) (float64, error)

// Pay implements Logic.
func (f LogicFunc) Pay(_ context.Context, judged []Judged) []Payment {
	paid := make([]Payment, len(judged))
	for i, j := range judged {
		paid[i].Reward, paid[i].Err = f(j)
	}
	return paid
}

// Scorer is a named, versioned reward.
type Scorer struct {
	// Name and Version travel with every score.
	Name, Version string
	Rules         Rules
	Logic         Logic
}

// Output is one score.
type Output struct {
	Reward      float64
	Correct     bool
	ValidFormat bool
	Answer      string
	Verdict     mathverify.Verdict
	Scorer      string
	Version     string
}

// Result is an Output, or the reason that the trajectory is ungraded.
type Result struct {
	Output
	// Err, if set, wraps ErrUngraded, ErrInput or the scorer's own error. The
	// Output then has no meaning but for Scorer and Version.
	Err error
}

// Score scores one trajectory.
func (s Scorer) Score(ctx context.Context, in Input) (Output, error) {
	r := s.ScoreAll(ctx, []Input{in})[0]
	return r.Output, r.Err
}

// ScoreAll scores a batch, in order. One trajectory's failure does not touch
// the others.
func (s Scorer) ScoreAll(ctx context.Context, in []Input) []Result {
	return s.scoreJudged(ctx, s.Rules.judgeAll(in))
}

type judgement struct {
	judged Judged
	err    error
}

func (r Rules) judgeAll(in []Input) []judgement {
	out := make([]judgement, len(in))
	for i := range in {
		out[i].judged, out[i].err = r.Judge(in[i])
	}
	return out
}

func (s Scorer) scoreJudged(ctx context.Context, all []judgement) []Result {
	results := make([]Result, len(all))
	batch := make([]Judged, 0, len(all))
	place := make([]int, 0, len(all))
	for i, j := range all {
		results[i] = Result{Output: Output{Scorer: s.Name, Version: s.Version}, Err: j.err}
		if j.err == nil {
			batch, place = append(batch, j.judged), append(place, i)
		}
	}
	if len(batch) == 0 {
		return results
	}
	paid := s.Logic.Pay(ctx, batch)
	if len(paid) != len(batch) {
		for _, i := range place {
			results[i].Err = fmt.Errorf("reward: %s@%s returned %d rewards for %d trajectories", s.Name, s.Version, len(paid), len(batch))
		}
		return results
	}
	for k, i := range place {
		j, p := batch[k], paid[k]
		switch {
		case p.Err != nil:
			results[i].Err = fmt.Errorf("reward: %s@%s: %w", s.Name, s.Version, p.Err)
		case !advantage.Usable(p.Reward):
			results[i].Err = fmt.Errorf("reward: %s@%s gave %v: want a number from %g to %g, or its advantages are beyond float32", s.Name, s.Version, p.Reward, -advantage.MaxReward, advantage.MaxReward)
		default:
			results[i].Reward, results[i].Correct, results[i].ValidFormat = p.Reward, j.Correct, j.ValidFormat
			results[i].Answer, results[i].Verdict = j.Answer, j.Verdict
		}
	}
	return results
}
