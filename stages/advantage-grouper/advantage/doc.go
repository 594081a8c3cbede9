// Package advantage turns the rewards of one group into advantages.
//
// It reads reward and correctness of the group's graded members, in order of sample
// index; it writes one advantage for each. It promises: the advantage is the reward minus
// the mean over exactly these members; advantages sum to 0 (Balanced); nothing is divided
// by a standard deviation unless asked for; all arithmetic is float64, in the order given,
// so that equal inputs give equal bits.
//
// A degenerate group teaches nothing: every advantage is exactly 0, without a residue of
// rounding. It is degenerate if all rewards are equal, and by default also if all answers
// are right or all are wrong. With a plain reward the two are the same. A shaped reward
// (a bonus for short answers, for format, for the use of a tool) tells four wrong answers
// apart as -1, -0.9, -0.8, -0.7, and a group of them would train the policy, at full
// weight, towards the shape of an answer that is wrong: on hard problems, where most
// groups are all wrong, the shape is then nearly all that is learned. So correctness
// decides unless Rule.ByReward says otherwise. Say so where the reward itself is the
// measure of an answer (a judge, partial credit) and equivalence to the reference is not:
// there every group would look all wrong.
package advantage
