// Package expression makes reward logic of a CEL expression.
//
// It reads an expression over the variables that Variables lists and returns a
// reward.Logic. It promises that a wrong expression is refused when it is
// compiled, with line and column; that an evaluation costs at most CostLimit;
// and that an evaluation that fails pays nothing: the trajectory stays ungraded.
package expression
