package deciding

import (
	"math/big"
	"slices"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

// relationWith compares a relation with something that is none.
func (c *comparer) relationWith(rel, other *expr.Node) result {
	if len(rel.Rels) == 1 && rel.Rels[0] == "in" && reading.NameLike(rel.Kids[0]) {
		return c.value(rel.Kids[1], other)
	}
	if list := named(rel); list != nil && other.Op == expr.OpList && distinctNames(other.Kids) {
		return c.unordered(list.Kids, other.Kids)
	}
	if other.Op == expr.OpList || other.Op == expr.OpSet {
		if v := valuesOf([]*expr.Node{rel})[0]; v.Op == expr.OpSet || v.Op == expr.OpList { // k = {1,2,3} against k = 1, 2, 3
			return c.unordered(v.Kids, valuesOf(other.Kids))
		}
		return c.unordered(items(rel), other.Kids)
	}
	if name, v := reading.Assignment(rel); name != nil {
		return c.value(v, other)
	}
	if r, ok := c.chain(rel, other); ok {
		return r
	}
	return different(MethodStructure, "a relation against a value")
}

// chain reads "x = 1 - 5 = -4" as -4, if the chain is true. What follows "≈" is
// a rounded restatement and not looked at.
func (c *comparer) chain(rel, other *expr.Node) (result, bool) {
	sides := rel.Kids
	for i, r := range rel.Rels {
		switch r {
		case "=":
			continue
		case "~":
			if i > 0 || !reading.NameLike(sides[0]) {
				sides = sides[:i+1]
			} else {
				sides = sides[:2]
			}
		default:
			return result{}, false
		}
		break
	}
	if len(sides) > 1 && reading.NameLike(sides[0]) {
		sides = sides[1:]
	}
	last := sides[len(sides)-1]
	if c.Compat && (len(rel.Kids) > 2 || len(expr.SymbolsOf(sides...)) == 0) {
		return c.value(last, other), true
	}
	if len(sides) > 1 && len(expr.SymbolsOf(sides...)) > 0 {
		return result{}, false // an equation, not a calculation
	}
	for i := 1; i < len(sides); i++ {
		if r := c.value(sides[i-1], sides[i]); r.out != Equal {
			return different(r.method, "a chain that is not true: "+rel.String()), true
		}
	}
	return c.value(last, other), true
}

// relations compares two relations.
func (c *comparer) relations(g, p *expr.Node) result {
	if len(g.Rels) == 1 && len(p.Rels) == 1 && g.Kids[0].Same(p.Kids[0]) && (g.Rels[0] == "in") != (p.Rels[0] == "in") &&
		!g.Kids[1].IsExpr() && !p.Kids[1].IsExpr() {
		return c.value(g.Kids[1], p.Kids[1]) // "x = [0, 1]" for "x in [0, 1]"
	}
	if c.Compat && !c.SetRelation && g.Rels[0] == "in" && len(p.Rels) == 2 && expr.Opposite[p.Rels[0]] != "" {
		return different(MethodStructure, "a set is not compared with an inequality")
	}
	if expr.IsRelational(g) && expr.IsRelational(p) {
		if r, ok := c.realSets(g, p); ok {
			return r
		}
	}
	if len(g.Rels) == 1 && len(p.Rels) == 1 && expr.IsEquation(g) && expr.IsEquation(p) {
		return c.equations(g, p)
	}
	if len(g.Rels) == len(p.Rels) {
		if r := c.sameShape(g, p); r.out == Equal {
			return r
		} else if len(g.Rels) == 1 {
			return r
		}
	}
	// "x = 5 + 5 = 10" against "x = 10".
	if name, v := reading.Assignment(g); name != nil {
		if r, ok := c.chain(p, v); ok {
			return r
		}
	}
	if name, v := reading.Assignment(p); name != nil {
		if r, ok := c.chain(g, v); ok {
			return r
		}
	}
	if len(g.Rels) == len(p.Rels) {
		return c.sameShape(g, p)
	}
	return different(MethodStructure, "relations of different form")
}

// equations compares l = r with l' = r': as assignments, then as equations that
// are constant multiples of each other.
func (c *comparer) equations(g, p *expr.Node) result {
	p = sameArgument(g, p)
	nameG, valueG := reading.Assignment(g)
	nameP, valueP := reading.Assignment(p)
	if nameG != nil && nameP != nil {
		r := c.value(valueG, valueP)
		switch {
		case nameG.Same(nameP) && (r.out == Equal || len(expr.SymbolsOf(valueG, valueP)) == 0):
			return r
		case nameG.Op == expr.OpTuple && nameP.Op == expr.OpTuple:
			if a, b := named(g), named(p); a != nil && b != nil && c.unordered(nameG.Kids, nameP.Kids).out == Equal {
				return c.unordered(a.Kids, b.Kids) // (x, y) = (1, 2) against (y, x) = (2, 1)
			}
			return r
		case r.out == Equal && len(expr.SymbolsOf(valueG)) > 0 && reading.FunctionLike(nameG) && reading.FunctionLike(nameP):
			return r // y = 2x+3 against f(x) = 2x+3, but not a+b = c against ab = c
		case r.out == Equal && nameG.Op == expr.OpWords && nameP.Op == expr.OpWords:
			return undecided(MethodWords, "the same value under different names")
		case r.out == Equal:
			return different(MethodStructure, "the same value under different names")
		}
	}
	if !exprSides(g) || !exprSides(p) {
		a := c.inOrder(g.Kids, p.Kids)
		if a.out == Equal {
			return a
		}
		if b := c.inOrder(g.Kids, []*expr.Node{p.Kids[1], p.Kids[0]}); b.out == Equal {
			return b
		}
		return a
	}
	if a := c.inOrder(g.Kids, p.Kids); a.out == Equal {
		return a
	}
	r, _ := c.proportional(expr.Sub(g.Kids[0], g.Kids[1]), expr.Sub(p.Kids[0], p.Kids[1]))
	return r
}

// sameArgument writes f(x) = 2x for f(n) = 2n, if the other side is of x.
func sameArgument(g, p *expr.Node) *expr.Node {
	a, b := g.Kids[0], p.Kids[0]
	if a.Op != expr.OpFunc || b.Op != expr.OpFunc || a.Name != b.Name || a.Name[0] != '@' || len(a.Kids) != 1 || len(b.Kids) != 1 ||
		a.Kids[0].Op != expr.OpSym || b.Kids[0].Op != expr.OpSym || a.Same(b) || slices.Contains(expr.SymbolsOf(p), a.Kids[0].Name) {
		return p
	}
	return p.Rewrite(func(k *expr.Node) *expr.Node {
		if k.Same(b.Kids[0]) {
			return a.Kids[0]
		}
		return k
	})
}

func exprSides(n *expr.Node) bool {
	for _, k := range n.Kids {
		if !k.IsExpr() || expr.IsMatrix(k) {
			return false
		}
	}
	return true
}

// proportional says whether g is a constant, not zero, times p, and the sign
// of that constant.
func (c *comparer) proportional(g, p *expr.Node) (result, int) {
	sides, loose := c.abstract(g, p)
	g, p = sides[0], sides[1]
	names := expr.SymbolsOf(g, p)
	seed := expr.Mix(g.Hash[0] ^ p.Hash[0])
	for round := range 6 {
		vars := map[string]*expr.Node{}
		for i, name := range names {
			seed = expr.Mix(seed + uint64(i) + 1)
			vars[name] = expr.Rational(pick(seed, ranges[round]))
		}
		put := func(n *expr.Node) *expr.Node {
			return n.Rewrite(func(k *expr.Node) *expr.Node {
				if v := vars[k.Name]; k.Op == expr.OpSym && v != nil {
					return v
				}
				return k
			})
		}
		a, b := put(g), put(p)
		signA, okA := c.signOf(a)
		signB, okB := c.signOf(b)
		if !okA || !okB {
			continue
		}
		if signA == 0 && signB == 0 {
			if len(names) == 0 {
				return undecided(MethodInterval, "both relations hold for all values"), 0
			}
			continue
		}
		if signA == 0 || signB == 0 {
			return different(MethodInterval, "one relation holds at a point where the other does not"), 0
		}
		r := c.expr(expr.Mul(g, b), expr.Mul(p, a))
		if loose && r.out == Different {
			r = undecided(MethodInterval, "differs in a part that is not evaluated")
		}
		return r, signA * signB
	}
	return undecided(MethodInterval, "defined at too few points"), 0
}

// signOf is the sign of a constant.
func (c *comparer) signOf(n *expr.Node) (int, bool) {
	if r, err := c.Exact(n, nil); err == nil {
		return r.Sign(), true
	}
	v := &evaluation.Numeric{Arith: &evaluation.Arith{Budget: &c.Budget, Prec: firstPrecision}}
	x, err := v.Eval(n)
	if err != nil || !x.Real {
		return 0, false
	}
	s := x.Re.Sign()
	return s, s != 0
}

// sameShape compares relations side by side, turned around if need be, and
// single inequalities as multiples of each other.
func (c *comparer) sameShape(g, p *expr.Node) result {
	straight := sameRels(g.Rels, p.Rels)
	if straight {
		if r := c.inOrder(g.Kids, p.Kids); r.out == Equal {
			return r
		}
	}
	turned := turn(p)
	if turned != nil && sameRels(g.Rels, turned.Rels) {
		if r := c.inOrder(g.Kids, turned.Kids); r.out == Equal {
			return r
		}
	}
	if len(g.Rels) != 1 || !exprSides(g) || !exprSides(p) {
		if straight {
			return c.inOrder(g.Kids, p.Kids)
		}
		return different(MethodStructure, "different relations")
	}
	a, b := g.Rels[0], p.Rels[0]
	if a != b && expr.Opposite[a] != b {
		return different(MethodStructure, "the relations are "+a+" and "+b)
	}
	if expr.Opposite[a] == "" && a != "!=" {
		return c.inOrder(g.Kids, p.Kids)
	}
	r, sign := c.proportional(expr.Sub(g.Kids[0], g.Kids[1]), expr.Sub(p.Kids[0], p.Kids[1]))
	if r.out == Equal && a != "!=" && (sign > 0) != (a == b) {
		return different(r.method, "the inequality points the other way")
	}
	return r
}

func sameRels(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// turn writes a < b < c as c > b > a.
func turn(n *expr.Node) *expr.Node {
	m := &expr.Node{Op: expr.OpRel}
	for i := len(n.Kids) - 1; i >= 0; i-- {
		m.Kids = append(m.Kids, n.Kids[i])
		if i > 0 {
			r := n.Rels[i-1]
			if o := expr.Opposite[r]; o != "" {
				r = o
			} else if r != "=" && r != "!=" && r != "~" {
				return nil
			}
			m.Rels = append(m.Rels, r)
		}
	}
	return expr.Seal(m)
}

// solve turns l ⋚ r, linear in one variable, into variable ⋚ bound.
func (c *comparer) solve(l, r *expr.Node, rel string) (variable *expr.Node, bound *expr.Node, solved string, ok bool) {
	bare := func(n *expr.Node) bool {
		return n.Op == expr.OpSym || n.Op == expr.OpFunc && n.Name == "abs" && len(expr.SymbolsOf(n)) == 1 && n.Kids[0].IsExpr()
	}
	free := func(n *expr.Node) bool { return len(expr.SymbolsOf(n)) == 0 && n.IsExpr() }
	switch {
	case bare(l) && free(r):
		return l, r, rel, true
	case bare(r) && free(l):
		if o := expr.Opposite[rel]; o != "" {
			rel = o
		}
		return r, l, rel, true
	}
	names := expr.SymbolsOf(l, r)
	if len(names) != 1 || !l.IsExpr() || !r.IsExpr() {
		return nil, nil, "", false
	}
	co, err := c.Coefficients(expr.Sub(l, r), names[0], nil)
	if err != nil || len(co) != 2 || co[1].Sign() == 0 {
		return nil, nil, "", false
	}
	if co[1].Sign() < 0 && expr.Opposite[rel] != "" {
		rel = expr.Opposite[rel]
	}
	b := new(big.Rat).Quo(co[0], co[1])
	return expr.Sym(names[0]), expr.Rational(b.Neg(b)), rel, true
}
