package advantage

import "github.com/spf13/pflag"

// Register declares the rule as flags: of the grouper, and of whoever makes advantages as
// it does.
func (r *Rule) Register(f *pflag.FlagSet) {
	f.BoolVar(&r.DivideByDeviation, "divide-by-deviation", r.DivideByDeviation,
		"also divide advantages by the standard deviation of the group's rewards")
}
