package mathverify

import (
	"math/big"
)

// kinked says whether n has parts whose formula changes from place to place, so
// that agreement at a few points near zero says nothing about points far away:
// |x-100| is 100-x there.
func kinked(n *node) bool {
	return n.any(func(k *node) bool {
		if k.op == opPow { // the exponent is a fraction
			return k.kids[1].op == opMul && hasOp(k.kids[0], opAdd) && len(symbolsOf(k.kids[0])) > 0 && len(symbolsOf(k.kids[1])) == 0
		}
		if k.op != opFunc {
			return false
		}
		switch k.name {
		case "abs", "max", "min", "floor", "ceil", "mod", "asin", "acos", "atan", "acot":
			return len(symbolsOf(k)) > 0
		case "root":
			return hasOp(k.kids[0], opAdd) && len(symbolsOf(k.kids[0])) > 0
		}
		return false
	})
}

// maxReach bounds the points of kinked expressions.
var maxReach = big.NewRat(1_000_000_000_000, 1)

// reach is the largest number in both sides. Kinks may lie there.
func (c *comparer) reach(sides ...*node) *big.Rat {
	far := big.NewRat(1, 1)
	for _, n := range sides {
		n.any(func(k *node) bool {
			if k.op != opNum && k.op != opPow || hasOp(k, opSym) {
				return false
			}
			if r, err := c.exact(k, nil); err == nil {
				if r = new(big.Rat).Abs(r); r.Cmp(far) > 0 && r.Cmp(maxReach) < 0 {
					far = r
				}
			}
			return false
		})
	}
	return far
}
