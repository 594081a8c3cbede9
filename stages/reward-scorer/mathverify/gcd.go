package mathverify

import (
	"math/big"
	"sort"
)

// Compat reads the gcd and lcm of expressions as those of polynomials, as
// SymPy does: gcd(a, b) is 1 and gcd(125, 50x) is 25. Sound does not, since a
// and b may well be integers with a factor in common.

// monomial is a rational number times powers of parts without common factors.
type monomial struct {
	factor  *big.Rat
	powers  map[[2]uint64]int64
	parts   map[[2]uint64]*node
	rounded bool
}

// polynomialDivisors replaces gcd and lcm of expressions that are no rational
// numbers.
func (c *comparer) polynomialDivisors(n *node) *node {
	return n.rewrite(func(k *node) *node {
		if k.op != opFunc || k.name != "gcd" && k.name != "lcm" || len(k.kids) == 0 {
			return k
		}
		if _, err := c.exact(k, nil); err == nil {
			return k
		}
		acc, ok := c.monomialOf(k.kids[0])
		for _, other := range k.kids[1:] {
			m, good := c.monomialOf(other)
			if ok = ok && good; !ok {
				return k
			}
			acc = merge(k.name, acc, m)
		}
		if !ok {
			return k
		}
		return acc.node()
	})
}

func (c *comparer) monomialOf(n *node) (monomial, bool) {
	m := monomial{factor: big.NewRat(1, 1), powers: map[[2]uint64]int64{}, parts: map[[2]uint64]*node{}, rounded: inexact(n)}
	factors := []*node{n}
	if n.op == opMul {
		factors = n.kids
	}
	put := func(k *node, power int64) {
		m.powers[k.hash] += power
		m.parts[k.hash] = k
	}
	for _, k := range factors {
		if !k.isExpr() {
			return m, false
		}
		if r, err := c.exact(k, nil); err == nil {
			m.factor.Mul(m.factor, r)
			continue
		}
		switch {
		case k.op == opFunc && k.name == "root" && k.kids[0].op == opNum && k.kids[0].long == "" && k.kids[0].num.IsInt() && k.kids[0].num.Num().IsInt64() && k.kids[0].num.Sign() > 0:
			factor(k.kids[0].num.Num().Uint64(), func(prime uint64, count int64, _ bool) {
				put(call("root", integer(int64(prime)), k.kids[1]), count)
			})
		case k.op == opPow && k.kids[1].op == opNum && k.kids[1].num.IsInt() && k.kids[1].num.Sign() > 0 && k.kids[1].num.Num().IsInt64():
			put(k.kids[0], k.kids[1].num.Num().Int64())
		default:
			put(k, 1)
		}
	}
	return m, m.factor.Sign() != 0
}

func merge(name string, a, b monomial) monomial {
	out := monomial{factor: big.NewRat(1, 1), powers: map[[2]uint64]int64{}, parts: map[[2]uint64]*node{}, rounded: a.rounded || b.rounded}
	if !out.rounded { // decimals divide each other
		if d, err := divisors(name, []*big.Rat{a.factor, b.factor}); err == nil {
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

func (m monomial) node() *node {
	factors := []*node{rational(m.factor)}
	for h, k := range m.parts {
		if p := m.powers[h]; p > 0 {
			factors = append(factors, pow(k, integer(p)))
		}
	}
	sort.Slice(factors[1:], func(i, j int) bool { return factors[i+1].hash[0] < factors[j+1].hash[0] })
	return mul(factors...)
}
