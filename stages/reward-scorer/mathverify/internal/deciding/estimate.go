package deciding

import (
	"math/big"
	"strconv"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// estimated compares if a side holds something that can only be estimated.
func (c *comparer) estimated(g, p *expr.Node) (result, bool) {
	if !expr.HasOp(g, expr.OpBig) && !expr.HasOp(p, expr.OpBig) {
		return result{}, false
	}
	names := expr.SymbolsOf(evaluation.Free(g), evaluation.Free(p))
	rounds := 1
	if len(names) > 0 {
		rounds = 2
	}
	seed := expr.Mix(g.Hash[0] ^ p.Hash[0])
	for round := range rounds {
		vars := evaluation.Env{}
		for i, name := range names {
			seed = expr.Mix(seed + uint64(i) + 1)
			vars[name] = pick(seed, ranges[2+round*4%len(ranges)])
		}
		v := &evaluation.Numeric{Arith: &evaluation.Arith{Budget: &c.Budget, Prec: evaluation.EstimatePrecision}, Vars: vars, Complex: expr.HasOp(g, expr.OpI) || expr.HasOp(p, expr.OpI), Estimate: true}
		x, err := v.Eval(g)
		if err != nil {
			return result{}, false
		}
		y, err := v.Eval(p)
		if err != nil || !x.Real || !y.Real {
			return result{}, false
		}
		d := new(big.Float).Abs(v.Sub(x.Re, y.Re).Mid)
		size := 1
		for _, s := range []*big.Float{x.Re.Mid, y.Re.Mid} {
			if s.Sign() != 0 {
				size = max(size, s.MantExp(nil))
			}
		}
		if rounded := expr.Inexact(g) || expr.Inexact(p); rounded && moderate(x.Re.Mid) && moderate(y.Re.Mid) {
			dr, _ := d.Rat(nil)
			xr, _ := x.Re.Mid.Rat(nil)
			yr, _ := y.Re.Mid.Rat(nil)
			if !c.within(dr, xr, yr) {
				return result{}, false
			}
			continue
		}
		if d.Sign() != 0 && d.MantExp(nil) > size+evaluation.AgreeValues {
			return result{}, false
		}
		if c.height(g)+c.height(p) > -evaluation.AgreeValues {
			return result{}, false // parts of them may be smaller than what is compared
		}
	}
	if expr.Inexact(g) || expr.Inexact(p) {
		return equal(MethodTolerance, "the same within the tolerance for decimals, by a numerical estimate"), true
	}
	return equal(MethodInterval, "equal to "+strconv.Itoa(-evaluation.AgreeValues)+" binary places, by a numerical estimate"), true
}
