package reward

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrParameter is wrapped when a kind of reward is given a parameter it
	// cannot use.
	ErrParameter = errors.New("reward: bad parameter")
	// ErrSet is wrapped when scorers cannot stand together.
	ErrSet = errors.New("reward: bad set of scorers")
)

// Set is several rewards of one run, of which the first decides the advantage.
type Set struct{ scorers []Scorer }

// NewSet checks the scorers; decides names the one that decides.
func NewSet(decides string, scorers ...Scorer) (*Set, error) {
	set := &Set{}
	seen := map[string]bool{}
	for _, s := range scorers {
		switch {
		case s.Name == "" || s.Version == "":
			return nil, fmt.Errorf("%w: scorer %q version %q: both name and version are needed", ErrSet, s.Name, s.Version)
		case s.Logic == nil:
			return nil, fmt.Errorf("%w: scorer %q has no logic", ErrSet, s.Name)
		case seen[s.Name]:
			return nil, fmt.Errorf("%w: two scorers are named %q", ErrSet, s.Name)
		}
		if err := s.Rules.Validate(); err != nil {
			return nil, fmt.Errorf("%w: scorer %q: %w", ErrSet, s.Name, err)
		}
		seen[s.Name] = true
		if s.Name == decides {
			set.scorers = append([]Scorer{s}, set.scorers...)
		} else {
			set.scorers = append(set.scorers, s)
		}
	}
	if !seen[decides] {
		return nil, fmt.Errorf("%w: %q is to decide, but no scorer has that name", ErrSet, decides)
	}
	return set, nil
}

// Default is the outcome reward alone under the reference rules. They read a box
// wherever it stands; for a policy that thinks aloud a reward file may say
// box: {thought: must_end}, so that a text whose <think> never ends has no answer.
func Default() *Set {
	return &Set{scorers: []Scorer{{Name: "outcome", Version: "1", Logic: Outcome()}}}
}

// Scorers returns the scorers, the deciding one first.
func (s *Set) Scorers() []Scorer { return append([]Scorer(nil), s.scorers...) }

// Batch is how many trajectories to score at once so that every Batcher gets as many as it
// takes; 0 if there is none.
func (s *Set) Batch() int {
	most := 0
	for _, sc := range s.scorers {
		if b, ok := sc.Logic.(Batcher); ok {
			most = max(most, b.Batch())
		}
	}
	return most
}

// Score returns one Result per scorer, the deciding one first. If the first
// has an error the trajectory is ungraded.
func (s *Set) Score(ctx context.Context, in Input) []Result {
	return s.ScoreAll(ctx, []Input{in})[0]
}

// ScoreAll does the same for a batch: out[i] belongs to in[i]. Scorers with
// equal rules share one judgement of each text.
func (s *Set) ScoreAll(ctx context.Context, in []Input) [][]Result {
	out := make([][]Result, len(in))
	for i := range out {
		out[i] = make([]Result, 0, len(s.scorers))
	}
	judged := map[Rules][]judgement{}
	for _, scorer := range s.scorers {
		all, done := judged[scorer.Rules]
		if !done {
			all = scorer.Rules.judgeAll(in)
			judged[scorer.Rules] = all
		}
		for i, r := range scorer.scoreJudged(ctx, all) {
			out[i] = append(out[i], r)
		}
	}
	return out
}
