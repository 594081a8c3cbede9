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
	// ByReward takes a group for degenerate only if all rewards are equal. Otherwise it
	// is also degenerate if all answers are right or all are wrong, however a shaped
	// reward tells them apart.
	ByReward bool
}

// Member is what a graded member brings into its group.
type Member struct {
	Reward float64
	// Correct: the answer is equivalent to the reference.
	Correct bool
}

// Result is what a group's rewards come to.
type Result struct {
	// Advantages has one value per reward.
	Advantages []float64
	// Mean is 0 without rewards.
	Mean float64
	// Degenerate: there is nothing to tell the members apart, every advantage is 0.
	Degenerate bool
	// ByCorrectness: degenerate though the rewards differ.
	ByCorrectness bool
}

// Tolerance is by how much the advantages of a group may sum to other than 0.
const Tolerance = 1e-6

// Balanced says whether the advantages of a group's graded members sum to 0, within
// Tolerance; of advantages above 1, whose own rounding is beyond that, within Tolerance
// times the largest.
func Balanced(advantages []float64) bool {
	var sum, lost, largest float64
	for _, a := range advantages {
		// Neumaier's compensated sum: what rounding took from it is added at the end.
		t := sum + a
		if math.Abs(sum) >= math.Abs(a) {
			lost += (sum - t) + a
		} else {
			lost += (a - t) + sum
		}
		sum, largest = t, max(largest, math.Abs(a))
	}
	return math.Abs(sum+lost) <= Tolerance*max(1, largest)
}

// Usable says whether a reward can stand in a group: finite and within MaxReward.
func Usable(reward float64) bool { return math.Abs(reward) <= MaxReward }

// Of computes the advantages of members whose rewards are all Usable.
func (r Rule) Of(members []Member) Result {
	res := Result{Advantages: make([]float64, len(members))}
	if equal(members, func(m Member) float64 { return m.Reward }) {
		res.Degenerate = true
		if len(members) > 0 {
			// Not sum/n, which may differ from the rewards in the last bit.
			res.Mean = members[0].Reward
		}
		return res
	}
	n := float64(len(members))
	var sum float64
	for _, m := range members {
		sum += m.Reward
	}
	res.Mean = sum / n
	if !r.ByReward && equal(members, func(m Member) bool { return m.Correct }) {
		res.Degenerate, res.ByCorrectness = true, true
		return res
	}
	for i, m := range members {
		res.Advantages[i] = m.Reward - res.Mean
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

func equal[T comparable](members []Member, of func(Member) T) bool {
	for _, m := range members {
		if of(m) != of(members[0]) {
			return false
		}
	}
	return true
}
