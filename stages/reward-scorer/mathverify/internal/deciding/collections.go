package deciding

import (
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

// inOrder compares two sequences of equal length place by place.
func (c *comparer) inOrder(a, b []*expr.Node) result {
	if len(a) != len(b) {
		return different(MethodStructure, "different numbers of components")
	}
	worst := equal(MethodStructure, "all components are equal")
	for i := range a {
		switch r := c.value(a[i], b[i]); r.out {
		case Different:
			return r
		case Undecided:
			worst = r
		}
	}
	return worst
}

// spreadUnequal makes "x ≠ 1, 2" two relations.
func spreadUnequal(n *expr.Node) *expr.Node {
	if n.Op != expr.OpList || len(n.Kids) < 2 || n.Kids[0].Op != expr.OpRel || len(n.Kids[0].Rels) != 1 || n.Kids[0].Rels[0] != "!=" {
		return n
	}
	kids := []*expr.Node{n.Kids[0]}
	for _, k := range n.Kids[1:] {
		if k.IsExpr() {
			k = expr.Seal(&expr.Node{Op: expr.OpRel, Kids: []*expr.Node{n.Kids[0].Kids[0], k}, Rels: n.Kids[0].Rels})
		}
		kids = append(kids, k)
	}
	return expr.Seal(&expr.Node{Op: expr.OpList, Kids: kids, Name: n.Name})
}

// named makes "(x, y) = (1, 2)" the list "x = 1, y = 2"; nil if n is no such.
func named(n *expr.Node) *expr.Node {
	name, value := reading.Assignment(n)
	if name == nil || name.Op != expr.OpTuple || value.Op != expr.OpTuple && value.Op != expr.OpBrack || len(name.Kids) != len(value.Kids) || len(name.Kids) == 0 {
		return nil
	}
	kids := make([]*expr.Node, len(name.Kids))
	for i := range kids {
		kids[i] = expr.Seal(&expr.Node{Op: expr.OpRel, Kids: []*expr.Node{name.Kids[i], value.Kids[i]}, Rels: []string{"="}})
	}
	return expr.Tree(expr.OpList, kids...)
}

// items lists the answers of a list or set; a single answer is a list of one.
func items(n *expr.Node) []*expr.Node {
	switch n.Op {
	case expr.OpList, expr.OpSet:
		return n.Kids
	case expr.OpEmpty:
		return nil
	}
	return []*expr.Node{n}
}

// collections compares everything that is no single quantity.
func (c *comparer) collections(g, p *expr.Node) result {
	if expr.IsMatrix(g) || expr.IsMatrix(p) {
		if a, b := c.matrixOf(g), c.matrixOf(p); a != nil || b != nil {
			return c.matrixWith(a, b, g, p)
		}
	}
	ratio := g.Op == expr.OpRatio || p.Op == expr.OpRatio
	switch {
	case ratio && g.Op == expr.OpRatio && p.Op == expr.OpRatio:
		return c.ratios(g, p)
	case ratio && (g.IsExpr() || p.IsExpr()):
		return c.expr(asFraction(g), asFraction(p))
	}
	ordered := func(n *expr.Node) bool { return n.Op == expr.OpTuple || n.Op == expr.OpBrack }
	switch {
	case ordered(g) && ordered(p):
		if a, b := valuesOf(g.Kids), valuesOf(p.Kids); len(a) == len(b) && sameNodes(a, g.Kids) != sameNodes(b, p.Kids) {
			return c.inOrder(a, b)
		}
		if g.Op != p.Op && len(g.Kids) == 2 && len(p.Kids) == 2 {
			return different(MethodStructure, "round against square brackets")
		}
		return c.inOrder(g.Kids, p.Kids)
	case ordered(g) && p.Op == expr.OpList:
		return c.listWithTuple(p, g)
	case ordered(p) && g.Op == expr.OpList:
		return c.listWithTuple(g, p)
	}
	if g.Op == expr.OpList && p.Op == expr.OpSetOp {
		g = expr.Tree(expr.OpSet, g.Kids...)
	} else if p.Op == expr.OpList && g.Op == expr.OpSetOp {
		p = expr.Tree(expr.OpSet, p.Kids...)
	}
	if isRealSet(g) && isRealSet(p) && (!plainSet(g) || !plainSet(p)) {
		if r, ok := c.realSets(g, p); ok {
			return r
		}
	}
	if plainSet(g) || plainSet(p) {
		a, b := items(g), items(p)
		if va, vb := valuesOf(a), valuesOf(b); sameNodes(va, a) != sameNodes(vb, b) {
			if distinctNames(a) || distinctNames(b) {
				return c.inOrder(va, vb) // "x = 1, y = 2" against "1, 2"
			}
			a, b = va, vb // "a = 4, -8" against "4, -8"
		}
		return c.unordered(a, b)
	}
	if g.Op == expr.OpSetOp && p.Op == expr.OpSetOp && g.Name == p.Name {
		if r := c.inOrder(g.Kids, p.Kids); r.out == Equal || g.Name == "setminus" {
			return r
		}
		return c.inOrder(g.Kids, []*expr.Node{p.Kids[1], p.Kids[0]})
	}
	if g.Op == p.Op && len(g.Kids) == len(p.Kids) && g.Name == p.Name && len(g.Kids) > 0 {
		return c.inOrder(g.Kids, p.Kids)
	}
	return different(MethodStructure, "answers of different kinds")
}

func plainSet(n *expr.Node) bool {
	return n.Op == expr.OpSet || n.Op == expr.OpList || n.Op == expr.OpEmpty
}

func asFraction(n *expr.Node) *expr.Node {
	if n.Op == expr.OpRatio && len(n.Kids) == 2 {
		return expr.Div(n.Kids[0], n.Kids[1])
	}
	return n
}

func (c *comparer) ratios(g, p *expr.Node) result {
	r := c.inOrder(g.Kids, p.Kids)
	if g.Unit != p.Unit && r.out != Equal && len(g.Kids) == len(p.Kids) { // 8:34 p.m. is 20:34
		if s := c.inOrder(c.clock(g), c.clock(p)); s.out == Equal {
			return s
		}
	}
	if r.out == Equal || len(g.Kids) != len(p.Kids) || isClock(g) || isClock(p) {
		return r
	}
	for _, k := range append(append([]*expr.Node(nil), g.Kids...), p.Kids...) {
		if z, err := c.Exact(k, nil); err == nil && z.Sign() == 0 {
			return r
		}
	}
	for i := 1; i < len(g.Kids); i++ {
		if s := c.expr(expr.Mul(g.Kids[0], p.Kids[i]), expr.Mul(p.Kids[0], g.Kids[i])); s.out != Equal {
			return s
		}
	}
	return equal(MethodStructure, "the same ratio")
}

// listWithTuple compares "x = 4, y = 5" with "(4, 5)". A list without names says
// nothing of the order.
func (c *comparer) listWithTuple(list, tuple *expr.Node) result {
	if len(list.Kids) != len(tuple.Kids) {
		return different(MethodStructure, "different numbers of answers")
	}
	r := c.inOrder(valuesOf(list.Kids), valuesOf(tuple.Kids))
	if r.out == Equal && !c.Compat && !distinctNames(list.Kids) {
		return undecided(MethodStructure, "a list, which has no order, against a tuple")
	}
	return r
}

// valuesOf strips the names of "x = 5".
func valuesOf(kids []*expr.Node) []*expr.Node {
	out := make([]*expr.Node, len(kids))
	for i, k := range kids {
		out[i] = k
		if name, v := reading.Assignment(k); name != nil {
			out[i] = v
		} else if k.Op == expr.OpRel && len(k.Rels) == 1 && k.Rels[0] == "in" && k.Kids[1].IsExpr() {
			out[i] = k.Kids[1]
		}
	}
	return out
}

// distinctNames says whether every answer gives a value to a name of its own.
func distinctNames(kids []*expr.Node) bool {
	if len(kids) > maxUnordered {
		return false
	}
	var names []*expr.Node
	for _, k := range kids {
		name, _ := reading.Assignment(k)
		if name == nil {
			return false
		}
		for _, other := range names {
			if name.Same(other) {
				return false
			}
		}
		names = append(names, name)
	}
	return len(names) > 1
}

func sameNodes(a, b []*expr.Node) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
