package advantage

import "math"

// MaxReward bounds the rewards that Of can take: an advantage is at most twice as large,
// and trainers get it as a float32.
const MaxReward = 1e38

// MinDeviation is the standard deviation below which Rule.DivideByDeviation takes a
// group's rewards for equal: a smaller one is noise, and would be blown up to full size.
const MinDeviation = 1e-3

// Rule is how advantages are made. The zero value is the default.
type Rule struct {
	// DivideByDeviation also divides by the population standard deviation of the
	// group's rewards. It makes groups of unequal spread weigh the same, and so
	// weighs problems that are nearly always or never solved up.
	DivideByDeviation bool
}

// Result is what a group's rewards come to.
type Result struct {
	// Advantages has one value per reward.
	Advantages []float64
	// Mean is 0 without rewards.
	Mean float64
	// Degenerate: there is nothing to tell the members apart, every advantage is 0.
	Degenerate bool
}

// Usable says whether a reward can stand in a group: finite and within MaxReward.
func Usable(reward float64) bool { return math.Abs(reward) <= MaxReward }

// Of computes the advantages of rewards that are all Usable.
func (r Rule) Of(rewards []float64) Result {
	res := Result{Advantages: make([]float64, len(rewards)), Degenerate: equal(rewards)}
	if res.Degenerate {
		if len(rewards) > 0 {
			// Not sum/n, which may differ from the rewards in the last bit.
			res.Mean = rewards[0]
		}
		return res
	}
	n := float64(len(rewards))
	var sum float64
	for _, x := range rewards {
		sum += x
	}
	res.Mean = sum / n
	for i, x := range rewards {
		res.Advantages[i] = x - res.Mean
	}
	if r.DivideByDeviation {
		res.divide(n)
	}
	return res
}

func (res *Result) divide(n float64) {
	var squares float64
	for _, a := range res.Advantages {
		squares += a * a
	}
	deviation := math.Sqrt(squares / n)
	if deviation < MinDeviation {
		clear(res.Advantages)
		res.Degenerate = true
		return
	}
	for i := range res.Advantages {
		res.Advantages[i] /= deviation
	}
}

func equal(rewards []float64) bool {
	for _, x := range rewards {
		if x != rewards[0] {
			return false
		}
	}
	return true
}
