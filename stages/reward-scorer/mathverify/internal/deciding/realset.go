package deciding

import (
	"sort"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

// span is an interval of real numbers between two expressions.
type span struct {
	lo, hi             *expr.Node
	loClosed, hiClosed bool
}

// realSet is a union of spans, and the variable it constrains, if any.
type realSet struct {
	spans    []span
	variable *expr.Node
}

// isRealSet says whether n could be a set of real numbers. Pairs in round or
// square brackets are ambiguous: they are sets only beside something that
// surely is one.
func isRealSet(n *expr.Node) bool {
	switch n.Op {
	case expr.OpInterval, expr.OpReals, expr.OpEmpty, expr.OpBuilder, expr.OpSet:
		return true
	case expr.OpTuple, expr.OpBrack:
		return len(n.Kids) == 2
	case expr.OpSetOp:
		return isRealSet(n.Kids[0]) && isRealSet(n.Kids[1])
	}
	return false
}

// realSets compares as sets of real numbers; false if one side is none.
func (c *comparer) realSets(g, p *expr.Node) (result, bool) {
	a, ok := c.setOf(g)
	if !ok {
		return result{}, false
	}
	b, ok := c.setOf(p)
	if !ok {
		return result{}, false
	}
	if a.variable != nil && b.variable != nil && !a.variable.Same(b.variable) && a.variable.Name != "" && b.variable.Name != "" { // "at least 5" names none
		return different(MethodStructure, "different variables"), true
	}
	return c.spans(a.spans, b.spans), true
}

func (c *comparer) spans(a, b []span) result {
	if len(a) != len(b) {
		return different(MethodStructure, "sets of different form")
	}
	for i := range a {
		if a[i].loClosed != b[i].loClosed || a[i].hiClosed != b[i].hiClosed {
			return different(MethodStructure, "an end is open in one and closed in the other")
		}
		if r := c.expr(a[i].lo, b[i].lo); r.out != Equal {
			return r
		}
		if r := c.expr(a[i].hi, b[i].hi); r.out != Equal {
			return r
		}
	}
	return equal(MethodStructure, "the same set of real numbers")
}

// setOf reads n as a set of real numbers.
func (c *comparer) setOf(n *expr.Node) (realSet, bool) {
	one := func(lo, hi *expr.Node, lc, hc bool) (realSet, bool) {
		if c.Compat {
			lc, hc = lc && !expr.HasOp(lo, expr.OpInf), hc && !expr.HasOp(hi, expr.OpInf)
		}
		return realSet{spans: []span{{lo, hi, lc, hc}}}, lo.IsExpr() && hi.IsExpr()
	}
	switch n.Op {
	case expr.OpInterval:
		return one(n.Kids[0], n.Kids[1], n.Name[0] == '[', n.Name[1] == ']')
	case expr.OpTuple, expr.OpBrack:
		if len(n.Kids) == 2 {
			return one(n.Kids[0], n.Kids[1], n.Op == expr.OpBrack, n.Op == expr.OpBrack)
		}
	case expr.OpReals:
		if n.Name == "R" {
			return one(expr.MinusInf, expr.PlusInf, false, false)
		}
	case expr.OpEmpty:
		return realSet{}, true
	case expr.OpSet:
		var s realSet
		for _, k := range n.Kids {
			if !k.IsExpr() {
				return s, false
			}
			s.spans = append(s.spans, span{k, k, true, true})
		}
		return s, c.tidy(&s)
	case expr.OpBuilder:
		if len(n.Kids) > 1 {
			return realSet{}, false
		}
		s, ok := c.setOf(n.Kids[0])
		s.variable = nil
		return s, ok
	case expr.OpSetOp:
		return c.combine(n)
	case expr.OpRel:
		return c.relationSet(n)
	case expr.OpList:
		return c.listSet(n)
	}
	return realSet{}, false
}

func (c *comparer) combine(n *expr.Node) (realSet, bool) {
	a, ok := c.setOf(n.Kids[0])
	if !ok {
		return a, false
	}
	b, ok := c.setOf(n.Kids[1])
	if !ok {
		return a, false
	}
	switch n.Name {
	case "cup":
		a.spans = append(append([]span(nil), a.spans...), b.spans...)
		return a, c.tidy(&a)
	case "cap":
		return c.intersect(a, b)
	default:
		rest, ok := c.complement(b)
		if !ok {
			return a, false
		}
		return c.intersect(a, rest)
	}
}

// listSet reads "x < 5 or x > 9" as a union, "x > 1 and x < 5" as an
// intersection. A bare comma between inequalities means "and".
func (c *comparer) listSet(n *expr.Node) (realSet, bool) {
	var acc realSet
	for i, k := range n.Kids {
		s, ok := c.setOf(k)
		if !ok || s.variable == nil {
			return s, false
		}
		if i == 0 {
			acc = s
			continue
		}
		if acc.variable.Name == "" { // "at least 2 and at most 5"
			acc.variable = s.variable
		}
		if !acc.variable.Same(s.variable) && s.variable.Name != "" {
			return s, false
		}
		s.variable = acc.variable
		if n.Name == "or" {
			acc.spans = append(append([]span(nil), acc.spans...), s.spans...)
			if !c.tidy(&acc) {
				return acc, false
			}
		} else if acc, ok = c.intersect(acc, s); !ok {
			return acc, false
		}
	}
	return acc, true
}

// relationSet solves a chain of inequalities in one variable.
func (c *comparer) relationSet(n *expr.Node) (realSet, bool) {
	if len(n.Rels) == 1 && n.Rels[0] == "in" {
		s, ok := c.setOf(n.Kids[1])
		s.variable = n.Kids[0]
		return s, ok && reading.NameLike(s.variable)
	}
	acc := realSet{spans: []span{{expr.MinusInf, expr.PlusInf, false, false}}}
	for i, r := range n.Rels {
		if expr.Opposite[r] == "" && r != "!=" {
			return acc, false
		}
		v, bound, rel, ok := c.solve(n.Kids[i], n.Kids[i+1], r)
		if !ok || acc.variable != nil && !acc.variable.Same(v) {
			return acc, false
		}
		var s realSet
		switch rel {
		case "<", "<=":
			s.spans = []span{{expr.MinusInf, bound, false, rel == "<="}}
		case ">", ">=":
			s.spans = []span{{bound, expr.PlusInf, rel == ">=", false}}
		default:
			s.spans = []span{{expr.MinusInf, bound, false, false}, {bound, expr.PlusInf, false, false}}
		}
		if i == 0 {
			acc = s
		} else if acc, ok = c.intersect(acc, s); !ok {
			return acc, false
		}
		acc.variable = v
	}
	if v := acc.variable; v != nil && v.Op == expr.OpFunc && v.Name == "abs" { // |x| in S
		return c.unfold(acc, v.Kids[0])
	}
	return acc, acc.variable != nil
}

// unfold turns a set of |ax+b| into one of x.
func (c *comparer) unfold(s realSet, x *expr.Node) (realSet, bool) {
	name := expr.SymbolsOf(x)[0]
	co, err := c.Coefficients(x, name, nil)
	if err != nil || len(co) != 2 || co[1].Sign() == 0 {
		return s, false
	}
	s, ok := c.unfoldSigns(s)
	if !ok || x.Op == expr.OpSym {
		s.variable = expr.Sym(name)
		return s, ok
	}
	back := func(n *expr.Node) *expr.Node { // u = ax+b
		switch {
		case !n.Same(expr.PlusInf) && !n.Same(expr.MinusInf):
			return expr.Div(expr.Sub(n, expr.Rational(co[0])), expr.Rational(co[1]))
		case co[1].Sign() < 0:
			return negate(n)
		}
		return n
	}
	out := realSet{variable: expr.Sym(name)}
	for _, p := range s.spans {
		q := span{back(p.lo), back(p.hi), p.loClosed, p.hiClosed}
		if co[1].Sign() < 0 {
			q = span{q.hi, q.lo, q.hiClosed, q.loClosed}
		}
		out.spans = append(out.spans, q)
	}
	return out, c.tidy(&out)
}

// unfoldSigns turns a set of |u| into one of u.
func (c *comparer) unfoldSigns(s realSet) (realSet, bool) {
	half := realSet{spans: []span{{expr.Integer(0), expr.PlusInf, true, false}}}
	s, ok := c.intersect(s, half)
	if !ok {
		return s, false
	}
	out := realSet{spans: append([]span(nil), s.spans...)}
	for _, p := range s.spans {
		m := span{negate(p.hi), negate(p.lo), p.hiClosed, p.loClosed}
		out.spans = append(out.spans, m)
	}
	return out, c.tidy(&out)
}

func negate(n *expr.Node) *expr.Node {
	switch {
	case n.Same(expr.PlusInf):
		return expr.MinusInf
	case n.Same(expr.MinusInf):
		return expr.PlusInf
	}
	return expr.Neg(n)
}

// order compares two ends; false if it cannot be decided.
func (c *comparer) order(a, b *expr.Node) (int, bool) {
	inf := func(n *expr.Node) int {
		switch {
		case n.Same(expr.PlusInf):
			return 1
		case n.Same(expr.MinusInf):
			return -1
		}
		return 0
	}
	if x, y := inf(a), inf(b); x != 0 || y != 0 {
		return x - y, true
	}
	if a.Same(b) {
		return 0, true
	}
	if len(expr.SymbolsOf(a, b)) > 0 {
		return 0, false
	}
	if s, ok := c.signOf(expr.Sub(a, b)); ok {
		return s, true
	}
	return 0, c.expr(a, b).out == Equal
}

// tidy sorts spans and joins those that touch.
func (c *comparer) tidy(s *realSet) bool {
	if len(s.spans) < 2 {
		return true
	}
	if len(s.spans) > 64 {
		return false
	}
	ok := true
	sort.SliceStable(s.spans, func(i, j int) bool {
		o, decided := c.order(s.spans[i].lo, s.spans[j].lo)
		ok = ok && decided
		return o < 0 || o == 0 && s.spans[i].loClosed && !s.spans[j].loClosed
	})
	if !ok {
		return false
	}
	out := s.spans[:1:1]
	for _, next := range s.spans[1:] {
		last := &out[len(out)-1]
		o, decided := c.order(next.lo, last.hi)
		if !decided {
			return false
		}
		if o > 0 || o == 0 && !next.loClosed && !last.hiClosed {
			out = append(out, next)
			continue
		}
		h, decided := c.order(next.hi, last.hi)
		if !decided {
			return false
		}
		if h > 0 {
			last.hi, last.hiClosed = next.hi, next.hiClosed
		} else if h == 0 {
			last.hiClosed = last.hiClosed || next.hiClosed
		}
	}
	s.spans = out
	return true
}

func (c *comparer) intersect(a, b realSet) (realSet, bool) {
	out := realSet{variable: a.variable}
	if out.variable == nil {
		out.variable = b.variable
	}
	for _, x := range a.spans {
		for _, y := range b.spans {
			s := x
			o, ok := c.order(x.lo, y.lo)
			if !ok {
				return out, false
			}
			if o < 0 {
				s.lo, s.loClosed = y.lo, y.loClosed
			} else if o == 0 {
				s.loClosed = x.loClosed && y.loClosed
			}
			if o, ok = c.order(x.hi, y.hi); !ok {
				return out, false
			}
			if o > 0 {
				s.hi, s.hiClosed = y.hi, y.hiClosed
			} else if o == 0 {
				s.hiClosed = x.hiClosed && y.hiClosed
			}
			if o, ok = c.order(s.lo, s.hi); !ok {
				// Ends with variables: the order in which they are written holds.
				if len(a.spans)*len(b.spans) > 1 {
					return out, false
				}
				o = -1
			}
			if o < 0 || o == 0 && s.loClosed && s.hiClosed {
				out.spans = append(out.spans, s)
			}
		}
	}
	return out, c.tidy(&out)
}

func (c *comparer) complement(s realSet) (realSet, bool) {
	if !c.tidy(&s) {
		return s, false
	}
	out := realSet{}
	lo, closed := expr.MinusInf, false
	for _, p := range s.spans {
		if !p.lo.Same(expr.MinusInf) {
			out.spans = append(out.spans, span{lo, p.lo, closed, !p.loClosed})
		}
		lo, closed = p.hi, !p.hiClosed
	}
	if !lo.Same(expr.PlusInf) {
		out.spans = append(out.spans, span{lo, expr.PlusInf, closed && !lo.Same(expr.MinusInf), false})
	}
	return out, true
}
