package mathverify

import (
	"math/big"
	"slices"
)

// relationWith compares a relation with something that is none.
func (c *comparer) relationWith(rel, other *node) result {
	if len(rel.rels) == 1 && rel.rels[0] == "in" && nameLike(rel.kids[0]) {
		return c.value(rel.kids[1], other)
	}
	if list := named(rel); list != nil && other.op == opList && distinctNames(other.kids) {
		return c.unordered(list.kids, other.kids)
	}
	if other.op == opList || other.op == opSet {
		if v := valuesOf([]*node{rel})[0]; v.op == opSet || v.op == opList { // k = {1,2,3} against k = 1, 2, 3
			return c.unordered(v.kids, valuesOf(other.kids))
		}
		return c.unordered(items(rel), other.kids)
	}
	if name, v := assignment(rel); name != nil {
		return c.value(v, other)
	}
	if r, ok := c.chain(rel, other); ok {
		return r
	}
	return different(MethodStructure, "a relation against a value")
}

// chain reads "x = 1 - 5 = -4" as -4, if the chain is true. What follows "≈" is
// a rounded restatement and not looked at.
func (c *comparer) chain(rel, other *node) (result, bool) {
	sides := rel.kids
	for i, r := range rel.rels {
		switch r {
		case "=":
			continue
		case "~":
			if i > 0 || !nameLike(sides[0]) {
				sides = sides[:i+1]
			} else {
				sides = sides[:2]
			}
		default:
			return result{}, false
		}
		break
	}
	if len(sides) > 1 && nameLike(sides[0]) {
		sides = sides[1:]
	}
	last := sides[len(sides)-1]
	if c.compat && (len(rel.kids) > 2 || len(symbolsOf(sides...)) == 0) {
		return c.value(last, other), true
	}
	if len(sides) > 1 && len(symbolsOf(sides...)) > 0 {
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
func (c *comparer) relations(g, p *node) result {
	if len(g.rels) == 1 && len(p.rels) == 1 && g.kids[0].same(p.kids[0]) && (g.rels[0] == "in") != (p.rels[0] == "in") &&
		!g.kids[1].isExpr() && !p.kids[1].isExpr() {
		return c.value(g.kids[1], p.kids[1]) // "x = [0, 1]" for "x in [0, 1]"
	}
	if c.compat && !c.setRelation && g.rels[0] == "in" && len(p.rels) == 2 && opposite[p.rels[0]] != "" {
		return different(MethodStructure, "a set is not compared with an inequality")
	}
	if isRelational(g) && isRelational(p) {
		if r, ok := c.realSets(g, p); ok {
			return r
		}
	}
	if len(g.rels) == 1 && len(p.rels) == 1 && isEquation(g) && isEquation(p) {
		return c.equations(g, p)
	}
	if len(g.rels) == len(p.rels) {
		if r := c.sameShape(g, p); r.out == Equal {
			return r
		} else if len(g.rels) == 1 {
			return r
		}
	}
	// "x = 5 + 5 = 10" against "x = 10".
	if name, v := assignment(g); name != nil {
		if r, ok := c.chain(p, v); ok {
			return r
		}
	}
	if name, v := assignment(p); name != nil {
		if r, ok := c.chain(g, v); ok {
			return r
		}
	}
	if len(g.rels) == len(p.rels) {
		return c.sameShape(g, p)
	}
	return different(MethodStructure, "relations of different form")
}

// equations compares l = r with l' = r': as assignments, then as equations that
// are constant multiples of each other.
func (c *comparer) equations(g, p *node) result {
	p = sameArgument(g, p)
	nameG, valueG := assignment(g)
	nameP, valueP := assignment(p)
	if nameG != nil && nameP != nil {
		r := c.value(valueG, valueP)
		switch {
		case nameG.same(nameP) && (r.out == Equal || len(symbolsOf(valueG, valueP)) == 0):
			return r
		case nameG.op == opTuple && nameP.op == opTuple:
			if a, b := named(g), named(p); a != nil && b != nil && c.unordered(nameG.kids, nameP.kids).out == Equal {
				return c.unordered(a.kids, b.kids) // (x, y) = (1, 2) against (y, x) = (2, 1)
			}
			return r
		case r.out == Equal && len(symbolsOf(valueG)) > 0 && functionLike(nameG) && functionLike(nameP):
			return r // y = 2x+3 against f(x) = 2x+3, but not a+b = c against ab = c
		case r.out == Equal && nameG.op == opWords && nameP.op == opWords:
			return undecided(MethodWords, "the same value under different names")
		case r.out == Equal:
			return different(MethodStructure, "the same value under different names")
		}
	}
	if !exprSides(g) || !exprSides(p) {
		a := c.inOrder(g.kids, p.kids)
		if a.out == Equal {
			return a
		}
		if b := c.inOrder(g.kids, []*node{p.kids[1], p.kids[0]}); b.out == Equal {
			return b
		}
		return a
	}
	if a := c.inOrder(g.kids, p.kids); a.out == Equal {
		return a
	}
	r, _ := c.proportional(sub(g.kids[0], g.kids[1]), sub(p.kids[0], p.kids[1]))
	return r
}

// sameArgument writes f(x) = 2x for f(n) = 2n, if the other side is of x.
func sameArgument(g, p *node) *node {
	a, b := g.kids[0], p.kids[0]
	if a.op != opFunc || b.op != opFunc || a.name != b.name || a.name[0] != '@' || len(a.kids) != 1 || len(b.kids) != 1 ||
		a.kids[0].op != opSym || b.kids[0].op != opSym || a.same(b) || slices.Contains(symbolsOf(p), a.kids[0].name) {
		return p
	}
	return p.rewrite(func(k *node) *node {
		if k.same(b.kids[0]) {
			return a.kids[0]
		}
		return k
	})
}

func exprSides(n *node) bool {
	for _, k := range n.kids {
		if !k.isExpr() || isMatrix(k) {
			return false
		}
	}
	return true
}

// proportional says whether g is a constant, not zero, times p, and the sign
// of that constant.
func (c *comparer) proportional(g, p *node) (result, int) {
	sides, loose := c.abstract(g, p)
	g, p = sides[0], sides[1]
	names := symbolsOf(g, p)
	seed := mix(g.hash[0] ^ p.hash[0])
	for round := range 6 {
		vars := map[string]*node{}
		for i, name := range names {
			seed = mix(seed + uint64(i) + 1)
			vars[name] = rational(pick(seed, ranges[round]))
		}
		put := func(n *node) *node {
			return n.rewrite(func(k *node) *node {
				if v := vars[k.name]; k.op == opSym && v != nil {
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
		r := c.expr(mul(g, b), mul(p, a))
		if loose && r.out == Different {
			r = undecided(MethodInterval, "differs in a part that is not evaluated")
		}
		return r, signA * signB
	}
	return undecided(MethodInterval, "defined at too few points"), 0
}

// signOf is the sign of a constant.
func (c *comparer) signOf(n *node) (int, bool) {
	if r, err := c.exact(n, nil); err == nil {
		return r.Sign(), true
	}
	v := &numeric{arith: &arith{budget: &c.budget, prec: firstPrecision}}
	x, err := v.eval(n)
	if err != nil || !x.real {
		return 0, false
	}
	s := x.re.sign()
	return s, s != 0
}

// sameShape compares relations side by side, turned around if need be, and
// single inequalities as multiples of each other.
func (c *comparer) sameShape(g, p *node) result {
	straight := sameRels(g.rels, p.rels)
	if straight {
		if r := c.inOrder(g.kids, p.kids); r.out == Equal {
			return r
		}
	}
	turned := turn(p)
	if turned != nil && sameRels(g.rels, turned.rels) {
		if r := c.inOrder(g.kids, turned.kids); r.out == Equal {
			return r
		}
	}
	if len(g.rels) != 1 || !exprSides(g) || !exprSides(p) {
		if straight {
			return c.inOrder(g.kids, p.kids)
		}
		return different(MethodStructure, "different relations")
	}
	a, b := g.rels[0], p.rels[0]
	if a != b && opposite[a] != b {
		return different(MethodStructure, "the relations are "+a+" and "+b)
	}
	if opposite[a] == "" && a != "!=" {
		return c.inOrder(g.kids, p.kids)
	}
	r, sign := c.proportional(sub(g.kids[0], g.kids[1]), sub(p.kids[0], p.kids[1]))
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
func turn(n *node) *node {
	m := &node{op: opRel}
	for i := len(n.kids) - 1; i >= 0; i-- {
		m.kids = append(m.kids, n.kids[i])
		if i > 0 {
			r := n.rels[i-1]
			if o := opposite[r]; o != "" {
				r = o
			} else if r != "=" && r != "!=" && r != "~" {
				return nil
			}
			m.rels = append(m.rels, r)
		}
	}
	return seal(m)
}

// solve turns l ⋚ r, linear in one variable, into variable ⋚ bound.
func (c *comparer) solve(l, r *node, rel string) (variable *node, bound *node, solved string, ok bool) {
	bare := func(n *node) bool {
		return n.op == opSym || n.op == opFunc && n.name == "abs" && len(symbolsOf(n)) == 1 && n.kids[0].isExpr()
	}
	free := func(n *node) bool { return len(symbolsOf(n)) == 0 && n.isExpr() }
	switch {
	case bare(l) && free(r):
		return l, r, rel, true
	case bare(r) && free(l):
		if o := opposite[rel]; o != "" {
			rel = o
		}
		return r, l, rel, true
	}
	names := symbolsOf(l, r)
	if len(names) != 1 || !l.isExpr() || !r.isExpr() {
		return nil, nil, "", false
	}
	co, err := c.coefficients(sub(l, r), names[0], nil)
	if err != nil || len(co) != 2 || co[1].Sign() == 0 {
		return nil, nil, "", false
	}
	if co[1].Sign() < 0 && opposite[rel] != "" {
		rel = opposite[rel]
	}
	b := new(big.Rat).Quo(co[0], co[1])
	return sym(names[0]), rational(b.Neg(b)), rel, true
}
