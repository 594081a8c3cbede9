package advantage

import (
	"errors"

	"github.com/spf13/pflag"
)

// Register declares the rule as flags: of the grouper, and of whoever makes advantages as
// it does.
func (r *Rule) Register(f *pflag.FlagSet) {
	f.Var(degenerateFlag{&r.ByReward}, "degenerate-by",
		"when a group has nothing to teach: correctness (all answers right or all wrong, or all rewards equal) or reward (all rewards equal); say reward where equivalence to the reference answer is not what the reward measures")
	f.BoolVar(&r.DivideByDeviation, "divide-by-deviation", r.DivideByDeviation,
		"also divide advantages by the standard deviation of the group's rewards")
}

// degenerateFlag is Rule.ByReward as a flag.
type degenerateFlag struct{ byReward *bool }

func (degenerateFlag) Type() string { return "correctness|reward" }

func (f degenerateFlag) String() string {
	if f.byReward != nil && *f.byReward {
		return "reward"
	}
	return "correctness"
}

func (f degenerateFlag) Set(text string) error {
	if text != "correctness" && text != "reward" {
		return errors.New("want correctness or reward")
	}
	*f.byReward = text == "reward"
	return nil
}
