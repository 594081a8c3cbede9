package deciding

import (
	"math/big"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// onClock writes "3 p.m." beside a time of day as one.
func onClock(n, beside *expr.Node) *expr.Node {
	if beside.Op != expr.OpRatio || !n.IsExpr() || n.Unit != "am" && n.Unit != "pm" && n.Unit != "o'clock" {
		return n
	}
	m := &expr.Node{Op: expr.OpRatio, Name: "clock", Kids: []*expr.Node{bare(n), expr.Integer(0)}}
	if n.Unit != "o'clock" {
		m.Unit = n.Unit
	}
	return expr.Seal(m)
}

// clock is a time of day in 24 hours.
func (c *comparer) clock(n *expr.Node) []*expr.Node {
	hour, err := c.Exact(n.Kids[0], nil)
	if err != nil {
		return n.Kids
	}
	noon := hour.Cmp(big.NewRat(12, 1))
	switch {
	case n.Unit == "pm" && noon < 0:
		return append([]*expr.Node{expr.Add(n.Kids[0], expr.Integer(12))}, n.Kids[1:]...)
	case n.Unit == "am" && noon == 0:
		return append([]*expr.Node{expr.Integer(0)}, n.Kids[1:]...)
	}
	return n.Kids
}

// isClock says whether a ratio is a time of day: 8:05 is not 16:10.
func isClock(n *expr.Node) bool { return n.Name == "clock" || n.Unit == "am" || n.Unit == "pm" }
