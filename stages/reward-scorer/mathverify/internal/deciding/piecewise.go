package deciding

import (
	"math/big"
	"slices"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

// branch is one line of a function by cases.
type branch struct {
	value *expr.Node
	where realSet
	other bool // "otherwise"
}

// maxBranches bounds the lines of a function by cases.
const maxBranches = 12

// branches reads a list of pairs (value, condition) as a function by cases of
// one variable; nil if it is none.
func (c *comparer) branches(n *expr.Node) (list []branch, variable *expr.Node) {
	if n.Op != expr.OpList || len(n.Kids) < 2 || len(n.Kids) > maxBranches {
		return nil, nil
	}
	for _, k := range n.Kids {
		if k.Op != expr.OpTuple || len(k.Kids) != 2 || !k.Kids[0].IsExpr() {
			return nil, nil
		}
		cond := k.Kids[1]
		if cond.Op == expr.OpWords {
			if s := reading.SayingOf(cond.Name); len(s) != 1 || s[0] != "otherwise" && s[0] != "else" && s[0] != "elsewhere" {
				return nil, nil
			}
			list = append(list, branch{value: k.Kids[0], other: true})
			continue
		}
		set, ok := realSet{}, false
		if name, v := reading.Assignment(cond); name != nil && name.Op == expr.OpSym { // "x = 3"
			set, ok = realSet{spans: []span{{v, v, true, true}}, variable: name}, true
		} else if expr.IsRelational(cond) {
			set, ok = c.setOf(cond)
		}
		if !ok || set.variable == nil || set.variable.Op != expr.OpSym || variable != nil && !variable.Same(set.variable) {
			return nil, nil
		}
		variable = set.variable
		list = append(list, branch{value: k.Kids[0], where: set})
	}
	return list, variable
}

// piecewise compares where a side is a function by cases: over each stretch
// between the ends of all conditions, which a substitution by a variable that
// runs over all reals covers, and at each end. False if neither side is one or
// an end is not rational.
func (c *comparer) piecewise(g, p *expr.Node) (result, bool) {
	a, x := c.branches(g)
	b, y := c.branches(p)
	switch {
	case a == nil && b == nil, a == nil && !g.IsExpr(), b == nil && !p.IsExpr():
		return result{}, false
	case x != nil && y != nil && !x.Same(y):
		return undecided(MethodStructure, "functions by cases of different variables"), true
	case x == nil:
		x = y
	}
	if a == nil {
		a = []branch{{value: g, other: true}}
	}
	if b == nil {
		b = []branch{{value: p, other: true}}
	}
	ends, ok := c.ends(append(slices.Clip(a), b...))
	if !ok || len(ends) == 0 {
		return result{}, false
	}
	worst := equal(MethodStructure, "the same in every case")
	try := func(at *big.Rat, point *expr.Node) (result, bool) {
		v, w := c.branchAt(a, at), c.branchAt(b, at)
		if v == nil && w == nil {
			return result{}, true
		}
		if v == nil || w == nil {
			return undecided(MethodStructure, "functions by cases that are defined in different places"), false
		}
		put := func(n *expr.Node) *expr.Node {
			return n.Rewrite(func(k *expr.Node) *expr.Node {
				if k.Same(x) {
					return point
				}
				return k
			})
		}
		r := c.value(put(v), put(w))
		if r.out == Undecided {
			worst = r
		}
		return r, r.out != Different
	}
	square := expr.Pow(expr.Sym("a real number"), expr.Integer(2))
	for i, e := range ends {
		before := expr.Sub(expr.Rational(e), square) // up to the first end
		inner := new(big.Rat).Sub(e, big.NewRat(1, 1))
		if i > 0 {
			width := new(big.Rat).Sub(e, ends[i-1])
			inner = new(big.Rat).Add(ends[i-1], new(big.Rat).Quo(width, big.NewRat(2, 1)))
			before = expr.Add(expr.Rational(ends[i-1]), expr.Mul(expr.Rational(width), expr.Div(square, expr.Add(expr.Integer(1), square))))
		}
		if r, ok := try(inner, before); !ok {
			return r, true
		}
		if r, ok := try(e, expr.Rational(e)); !ok {
			return r, true
		}
	}
	last := ends[len(ends)-1]
	if r, ok := try(new(big.Rat).Add(last, big.NewRat(1, 1)), expr.Add(expr.Rational(last), square)); !ok {
		return r, true
	}
	return worst, true
}

// ends lists the rational ends of all conditions in order; false if one is not
// rational.
func (c *comparer) ends(list []branch) ([]*big.Rat, bool) {
	var ends []*big.Rat
	for _, b := range list {
		for _, s := range b.where.spans {
			for _, n := range []*expr.Node{s.lo, s.hi} {
				if n.Same(expr.MinusInf) || n.Same(expr.PlusInf) {
					continue
				}
				r, err := c.Exact(n, nil)
				if err != nil {
					return nil, false
				}
				ends = append(ends, r)
			}
		}
	}
	slices.SortFunc(ends, (*big.Rat).Cmp)
	return slices.CompactFunc(ends, func(x, y *big.Rat) bool { return x.Cmp(y) == 0 }), true
}

// branchAt is the value of the first line that holds at a point, or nil.
func (c *comparer) branchAt(list []branch, at *big.Rat) *expr.Node {
	point := expr.Rational(at)
	for _, b := range list {
		if b.other {
			return b.value
		}
		for _, s := range b.where.spans {
			lo, okLo := c.order(s.lo, point)
			hi, okHi := c.order(point, s.hi)
			if okLo && okHi && (lo < 0 || lo == 0 && s.loClosed) && (hi < 0 || hi == 0 && s.hiClosed) {
				return b.value
			}
		}
	}
	return nil
}
