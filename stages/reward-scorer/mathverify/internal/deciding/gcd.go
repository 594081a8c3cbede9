package deciding

import (
	"math/big"
	"sort"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// monomial is a rational number times powers of parts without common factors.
type monomial struct {
	factor  *big.Rat
	powers  map[[2]uint64]int64
	parts   map[[2]uint64]*expr.Node
	rounded bool
}

// polynomialDivisors replaces gcd and lcm of expressions that are no rational
// numbers.
func (c *comparer) polynomialDivisors(n *expr.Node) *expr.Node {
	return n.Rewrite(func(k *expr.Node) *expr.Node {
		if k.Op != expr.OpFunc || k.Name != "gcd" && k.Name != "lcm" || len(k.Kids) == 0 {
			return k
		}
		if _, err := c.Exact(k, nil); err == nil {
			return k
		}
		acc, ok := c.monomialOf(k.Kids[0])
		for _, other := range k.Kids[1:] {
			m, good := c.monomialOf(other)
			if ok = ok && good; !ok {
				return k
			}
			acc = merge(k.Name, acc, m)
		}
		if !ok {
			return k
		}
		return acc.node()
	})
}

func (c *comparer) monomialOf(n *expr.Node) (monomial, bool) {
	m := monomial{factor: big.NewRat(1, 1), powers: map[[2]uint64]int64{}, parts: map[[2]uint64]*expr.Node{}, rounded: expr.Inexact(n)}
	factors := []*expr.Node{n}
	if n.Op == expr.OpMul {
		factors = n.Kids
	}
	put := func(k *expr.Node, power int64) {
		m.powers[k.Hash] += power
		m.parts[k.Hash] = k
	}
	for _, k := range factors {
		if !k.IsExpr() {
			return m, false
		}
		if r, err := c.Exact(k, nil); err == nil {
			m.factor.Mul(m.factor, r)
			continue
		}
		switch {
		case k.Op == expr.OpFunc && k.Name == "root" && k.Kids[0].Op == expr.OpNum && k.Kids[0].Long == "" && k.Kids[0].Num.IsInt() && k.Kids[0].Num.Num().IsInt64() && k.Kids[0].Num.Sign() > 0:
			evaluation.Factor(k.Kids[0].Num.Num().Uint64(), func(prime uint64, count int64, _ bool) {
				put(expr.Call("root", expr.Integer(int64(prime)), k.Kids[1]), count)
			})
		case k.Op == expr.OpPow && k.Kids[1].Op == expr.OpNum && k.Kids[1].Num.IsInt() && k.Kids[1].Num.Sign() > 0 && k.Kids[1].Num.Num().IsInt64():
			put(k.Kids[0], k.Kids[1].Num.Num().Int64())
		default:
			put(k, 1)
		}
	}
	return m, m.factor.Sign() != 0
}

func merge(name string, a, b monomial) monomial {
	out := monomial{factor: big.NewRat(1, 1), powers: map[[2]uint64]int64{}, parts: map[[2]uint64]*expr.Node{}, rounded: a.rounded || b.rounded}
	if !out.rounded { // decimals divide each other
		if d, err := evaluation.Divisors(name, []*big.Rat{a.factor, b.factor}); err == nil {
			out.factor = d
		}
		if name == "lcm" && a.factor.Sign()*b.factor.Sign() < 0 {
			out.factor = new(big.Rat).Neg(out.factor)
		}
	}
	for h, k := range a.parts {
		out.parts[h], out.powers[h] = k, a.powers[h]
	}
	for h, k := range b.parts {
		out.parts[h] = k
		if name == "lcm" {
			out.powers[h] = max(a.powers[h], b.powers[h])
		}
	}
	if name == "gcd" {
		for h := range out.parts {
			out.powers[h] = min(a.powers[h], b.powers[h])
		}
	}
	return out
}

func (m monomial) node() *expr.Node {
	factors := []*expr.Node{expr.Rational(m.factor)}
	for h, k := range m.parts {
		if p := m.powers[h]; p > 0 {
			factors = append(factors, expr.Pow(k, expr.Integer(p)))
		}
	}
	sort.Slice(factors[1:], func(i, j int) bool { return factors[i+1].Hash[0] < factors[j+1].Hash[0] })
	return expr.Mul(factors...)
}
