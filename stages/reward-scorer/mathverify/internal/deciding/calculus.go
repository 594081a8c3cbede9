package deciding

import (
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// differentiate replaces d/dx of sums, products and powers by the derivative;
// other derivatives stay as they are.
func (c *comparer) differentiate(n *expr.Node) *expr.Node {
	return n.Rewrite(func(k *expr.Node) *expr.Node {
		if k.Op != expr.OpBig || k.Name != "diff" || c.Spend(int(k.Size)) != nil {
			return k
		}
		if d := evaluation.Derivative(k.Kids[1], k.Kids[0].Name); d != nil {
			return d
		}
		return k
	})
}
