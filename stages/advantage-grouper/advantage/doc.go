// Package advantage turns the rewards of one group into advantages.
//
// It reads the rewards of the group's graded members, in order of sample index; it
// writes one advantage for each. It promises: the advantage is the reward minus the
// mean over exactly these members; if all rewards are equal every advantage is exactly
// 0, without a residue of rounding; nothing is divided by a standard deviation unless
// asked for; all arithmetic is float64, in the order given, so that equal inputs give
// equal bits.
package advantage
