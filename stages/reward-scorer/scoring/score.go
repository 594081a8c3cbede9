package scoring

import (
	"context"
	"fmt"

	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

// Score gives every trajectory, by its facts (InputOf), the results of all rewards of
// the set. It never panics: where a reward does, its trajectories are scored one by one,
// so that only the one that cannot be scored stays without a reward.
func Score(ctx context.Context, set *reward.Set, in []reward.Input) (results [][]reward.Result) {
	results, err := attempt(ctx, set, in)
	if err == nil {
		return results
	}
	for i := range in {
		one, err := attempt(ctx, set, in[i:i+1])
		if err != nil {
			one = [][]reward.Result{failed(set, err)}
		}
		results = append(results, one[0])
	}
	return results
}

func attempt(ctx context.Context, set *reward.Set, in []reward.Input) (results [][]reward.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			results, err = nil, fmt.Errorf("the reward panicked: %v", p)
		}
	}()
	return set.ScoreAll(ctx, in), nil
}

// failed is what every scorer has to say of a trajectory that none could look at.
func failed(set *reward.Set, err error) []reward.Result {
	var all []reward.Result
	for _, sc := range set.Scorers() {
		all = append(all, reward.Result{Output: reward.Output{Scorer: sc.Name, Version: sc.Version}, Err: err})
	}
	return all
}
