package deciding

import (
	"math/big"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// reach is the largest number in both sides. Kinks may lie there.
func (c *comparer) reach(sides ...*expr.Node) *big.Rat {
	far := big.NewRat(1, 1)
	for _, n := range sides {
		n.Any(func(k *expr.Node) bool {
			if k.Op != expr.OpNum && k.Op != expr.OpPow || expr.HasOp(k, expr.OpSym) {
				return false
			}
			if r, err := c.Exact(k, nil); err == nil {
				if r = new(big.Rat).Abs(r); r.Cmp(far) > 0 && r.Cmp(evaluation.MaxReach) < 0 {
					far = r
				}
			}
			return false
		})
	}
	return far
}
