package evaluation

import (
	"math/big"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// Kinked says whether n has parts whose formula changes from place to place, so
// that agreement at a few points near zero says nothing about points far away:
// |x-100| is 100-x there.
func Kinked(n *expr.Node) bool {
	return n.Any(func(k *expr.Node) bool {
		if k.Op == expr.OpPow { // the exponent is a fraction
			return k.Kids[1].Op == expr.OpMul && expr.HasOp(k.Kids[0], expr.OpAdd) && len(expr.SymbolsOf(k.Kids[0])) > 0 && len(expr.SymbolsOf(k.Kids[1])) == 0
		}
		if k.Op != expr.OpFunc {
			return false
		}
		switch k.Name {
		case "abs", "max", "min", "floor", "ceil", "mod", "asin", "acos", "atan", "acot":
			return len(expr.SymbolsOf(k)) > 0
		case "root":
			return expr.HasOp(k.Kids[0], expr.OpAdd) && len(expr.SymbolsOf(k.Kids[0])) > 0
		}
		return false
	})
}

// MaxReach bounds the points of kinked expressions.
var MaxReach = big.NewRat(1_000_000_000_000, 1)
