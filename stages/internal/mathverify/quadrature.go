package mathverify

import (
	"math"
	"math/big"
)

// quadrature compares a definite integral with a decimal. The integral is
// summed by the tanh-sinh rule at two step widths; only if both agree far below
// the tolerance is the decimal taken for it. A difference is not proved so, and
// is left undecided.
func (c *comparer) quadrature(g, p *node) (result, bool) {
	n, decimal := g, p
	if n.op != opBig {
		n, decimal = p, g
	}
	if n.op != opBig || n.name != "int" || !isLiteral(decimal) || len(symbolsOf(n.kids[0], n.kids[1])) > 0 {
		return result{}, false
	}
	lo, okLo := c.float(n.kids[0], nil)
	hi, okHi := c.float(n.kids[1], nil)
	if !okLo || !okHi || math.Abs(lo) > 1e6 || math.Abs(hi) > 1e6 {
		return result{}, false
	}
	name := n.kids[2].name
	f := func(x float64) (float64, bool) { return c.float(n.kids[3], env{name: new(big.Rat).SetFloat64(x)}) }
	coarse, ok := tanhSinh(f, lo, hi, 1.0/8)
	if !ok {
		return result{}, false
	}
	fine, ok := tanhSinh(f, lo, hi, 1.0/16)
	if !ok || math.Abs(fine-coarse) > 1e-11*(1+math.Abs(fine)) {
		return result{}, false
	}
	value := new(big.Rat).SetFloat64(fine)
	if d := new(big.Rat).Sub(value, decimal.num); c.within(d, value, decimal.num) {
		return equal(MethodTolerance, "the integral, by quadrature, within the tolerance for decimals"), true
	}
	return result{}, false
}

// float evaluates an expression to double precision.
func (c *comparer) float(n *node, vars env) (float64, bool) {
	v := &numeric{arith: &arith{budget: &c.budget, prec: 64}, vars: vars}
	x, err := v.eval(n)
	if err != nil || !x.real {
		return 0, false
	}
	f, _ := x.re.mid.Float64()
	return f, !math.IsInf(f, 0)
}

// tanhSinh integrates f from lo to hi with the double exponential rule. The
// nodes never touch the ends, where f may be undefined.
func tanhSinh(f func(float64) (float64, bool), lo, hi, step float64) (float64, bool) {
	middle, half := (lo+hi)/2, (hi-lo)/2
	var sum float64
	for k := -int(3 / step); k <= int(3/step); k++ {
		t := float64(k) * step
		u := math.Pi / 2 * math.Sinh(t)
		x := middle + half*math.Tanh(u)
		if x <= min(lo, hi) || x >= max(lo, hi) {
			continue
		}
		y, ok := f(x)
		if !ok {
			return 0, false
		}
		ch := math.Cosh(u)
		sum += y * math.Pi / 2 * math.Cosh(t) / (ch * ch)
	}
	return sum * step * half, true
}
