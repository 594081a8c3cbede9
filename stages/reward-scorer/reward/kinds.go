package reward

import (
	"fmt"
	"math"
)

// Outcome pays +1 for an answer equivalent to the reference, -1 for any other
// and for none.
func Outcome() Logic {
	return LogicFunc(func(j Judged) (float64, error) {
		if j.Correct {
			return 1, nil
		}
		return -1, nil
	})
}

// ZeroOne pays 1 for an answer equivalent to the reference, 0 otherwise.
func ZeroOne() Logic {
	return LogicFunc(func(j Judged) (float64, error) {
		if j.Correct {
			return 1, nil
		}
		return 0, nil
	})
}

// FormatBonus pays like Outcome plus bonus if there is a box, so that a policy
// that does not yet solve anything learns to box its answers.
func FormatBonus(bonus float64) (Logic, error) {
	if math.IsNaN(bonus) || math.IsInf(bonus, 0) || bonus < 0 || bonus >= 2 {
		return nil, fmt.Errorf("%w: bonus is %v; want at least 0 and below 2, or a boxed wrong answer would pay as much as a right one", ErrParameter, bonus)
	}
	return LogicFunc(func(j Judged) (float64, error) {
		reward := -1.0
		if j.Correct {
			reward = 1
		}
		if j.ValidFormat {
			reward += bonus
		}
		return reward, nil
	}), nil
}

// RetoolShaped pays +1 for a right answer; for a wrong one or none it pays
// -1 + perTurn·(turns-1), but never more than limit. The released ReTool recipe
// is perTurn 0.1 and limit -0.6: it counts messages, two per call, and adds 0.05
// for each beyond two, which is 0.1 for each turn of the policy beyond the
// first.
func RetoolShaped(perTurn, limit float64) (Logic, error) {
	if math.IsNaN(perTurn) || perTurn < 0 || perTurn > 2 {
		return nil, fmt.Errorf("%w: per_turn is %v; want 0 to 2", ErrParameter, perTurn)
	}
	if math.IsNaN(limit) || limit < -1 || limit >= 1 {
		return nil, fmt.Errorf("%w: limit is %v; want at least -1 and below 1, the reward of a right answer", ErrParameter, limit)
	}
	return LogicFunc(func(j Judged) (float64, error) {
		if j.Correct {
			return 1, nil
		}
		return min(limit, -1+perTurn*float64(max(0, j.Turns-1))), nil
	}), nil
}
