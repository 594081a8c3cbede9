// Package boxed finds the answer that a policy put into a \boxed{…} near the
// end of its final text.
//
// It reads plain text and a Config; it writes nothing and never fails: a text
// without a usable box yields a Box whose Found is false and whose Reason says
// why. With the zero Config the rule is the reference recipe's: only the last
// 300 code points are looked at, the last `\boxed{` in them counts, its braces
// must balance, and if they do not there is no box, even if an earlier one in
// the same window is sound.
package boxed
