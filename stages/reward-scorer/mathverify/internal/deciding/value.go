package deciding

import (
	"slices"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

// maxNesting bounds how deep answers are compared part by part.
const maxNesting = 24

// value compares two answers of any kind.
func (c *comparer) value(g, p *expr.Node) result {
	if c.nesting++; c.nesting > maxNesting {
		c.nesting--
		return undecided(MethodLimit, "nested too deep")
	}
	defer func() { c.nesting-- }()
	if err := c.Spend(4); err != nil {
		return undecided(MethodLimit, "the budget of steps is used up")
	}
	if c.Compat && (remarkOn(g).Denies() != remarkOn(p).Denies()) {
		return undecided(MethodWords, "one side denies what the other says")
	}
	if !c.Compat && (g.Marked || p.Marked) {
		return c.marked(g, p)
	}
	return c.unmarked(g, p)
}

// marked compares where units or words stand beside the answers, or in them.
func (c *comparer) marked(g, p *expr.Node) result {
	if c.Strict && (remarkOn(g).Key() != remarkOn(p).Key() || (unitOf(g) == "") != (unitOf(p) == "")) {
		return c.butNotEqual(g, p, undecided(MethodWords, "words or a unit on one side only"))
	}
	if g.Op != expr.OpWords && p.Op != expr.OpWords {
		switch against(remarkOn(g), remarkOn(p)) {
		case unclear:
			return c.butNotEqual(g, p, undecided(MethodWords, "words on one side that may change the answer: "+words2(g, p)))
		case denied:
			return c.butNotEqual(g, p, different(MethodWords, "one side denies what the other says"))
		case contradict:
			return different(MethodWords, "words that contradict each other: "+words2(g, p))
		case agree:
		}
	}
	g, p = onClock(g, p), onClock(p, g)
	g, p = c.compound(g, p), c.compound(p, g)
	x, y := unitOf(g), unitOf(p)
	if g.Op == expr.OpDeg && y == "rad" || p.Op == expr.OpDeg && x == "rad" {
		return different(MethodStructure, "degrees against radians")
	}
	if x != "" && y != "" && x != y {
		if x, y := g.Op == expr.OpRel && !expr.IsEquation(g), p.Op == expr.OpRel && !expr.IsEquation(p); x || y {
			return undecided(MethodStructure, "inequalities of different units")
		}
		a, b, ok := reading.Convert(valueOf(g), valueOf(p), x, y)
		if !ok {
			return different(MethodStructure, "the units differ: "+x+" and "+y)
		}
		return c.unmarked(bare(a), bare(b))
	}
	return c.unmarked(bare(g), bare(p))
}

// compound adds up "6 ft 2 in" beside a single quantity.
func (c *comparer) compound(n, beside *expr.Node) *expr.Node {
	if n.Op != expr.OpList || len(n.Kids) > 4 || beside.Op == expr.OpList {
		return n
	}
	first := n.Kids[0]
	sum := []*expr.Node{}
	before := ""
	for _, k := range n.Kids {
		if k.Unit == "" || !k.IsExpr() || len(k.Remark) > 0 || k.Unit == before {
			return n
		}
		_, part, ok := reading.Convert(first, bare(k), first.Unit, k.Unit)
		if !ok || before != "" && !larger(before, k.Unit) {
			return n
		}
		sum, before = append(sum, part), k.Unit
	}
	m := *expr.Add(sum...)
	m.Unit, m.Marked = first.Unit, true
	return &m
}

// larger says whether the first unit is larger than the second.
func larger(x, y string) bool {
	m, okM := reading.MeasureOf(x)
	n, okN := reading.MeasureOf(y)
	return okM && okN && m.Factor.Cmp(n.Factor) > 0
}

// butNotEqual compares the quantities: where they differ the words do not matter.
func (c *comparer) butNotEqual(g, p *expr.Node, r result) result {
	if r.out == Different {
		if s := c.unmarked(bare(g), bare(p)); s.out != Equal {
			return undecided(MethodWords, r.reason)
		}
	}
	return r
}

func words2(g, p *expr.Node) string {
	return expr.ClipText(strings.Trim(remarkOn(g).Key()+" | "+remarkOn(p).Key(), " |"), 80)
}

// remarkOn is the words beside an answer, or beside the last side of "x = 3 apples".
func remarkOn(n *expr.Node) expr.Remark {
	if n.Op != expr.OpRel {
		return n.Remark
	}
	r := slices.Clip(n.Remark)
	for _, k := range n.Kids {
		r = append(r, k.Remark...)
	}
	return r
}

// valueOf is the last side of "x = 3 cm".
func valueOf(n *expr.Node) *expr.Node {
	if n.Op == expr.OpRel {
		return n.Kids[len(n.Kids)-1]
	}
	return n
}

// bare is n without the words and the unit beside it; a clock keeps its a.m.
func bare(n *expr.Node) *expr.Node {
	if len(n.Remark) == 0 && n.Unit == "" {
		return n
	}
	m := *n
	m.Remark = nil
	if n.Op != expr.OpRatio {
		m.Unit = ""
	}
	return &m
}

// unmarked compares two answers but for words and units beside them.
func (c *comparer) unmarked(g, p *expr.Node) result {
	if g.Same(p) && (c.Compat || !inside(g) && !inside(p)) {
		return equal(MethodStructure, "the same reading")
	}
	g, p = regroup(expandPM(c.expandDeterminants(g))), regroup(expandPM(c.expandDeterminants(p)))
	if r, ok := c.open(g, p); ok {
		return r
	}
	switch {
	case g.Op == expr.OpWords || p.Op == expr.OpWords:
		return c.wordsWith(g, p)
	case g.Op == expr.OpRel && p.Op == expr.OpRel:
		return c.relations(g, p)
	case expr.IsRelational(g) && isRealSet(p), expr.IsRelational(p) && isRealSet(g):
		if c.Compat && !c.SetRelation && isRealSet(g) && p.Op == expr.OpRel && p.Rels[0] != "in" {
			return different(MethodStructure, "a set is not compared with an inequality")
		}
		if r, ok := c.realSets(g, p); ok {
			return r
		}
	}
	if (g.Op == expr.OpRel) != (p.Op == expr.OpRel) && expr.IsRelational(g) && expr.IsRelational(p) {
		if r, ok := c.realSets(g, p); ok && r.out == Equal {
			return r
		}
	}
	if g.Op == expr.OpRel {
		return c.relationWith(g, p)
	}
	if p.Op == expr.OpRel {
		return c.relationWith(p, g)
	}
	if expr.IsRelational(g) && expr.IsRelational(p) {
		if r, ok := c.realSets(g, p); ok {
			return r
		}
	}
	if g.IsExpr() && p.IsExpr() {
		return c.quantity(g, p)
	}
	return c.collections(g, p)
}

// open compares where an answer leaves a name, a place or a spelling open.
func (c *comparer) open(g, p *expr.Node) (result, bool) {
	openly := func(n *expr.Node) bool { return n.Op == expr.OpList || n.Op == expr.OpMul || n.Op == expr.OpPow }
	if !openly(g) && !openly(p) {
		return result{}, false
	}
	for _, compare := range []func(g, p *expr.Node) (result, bool){c.families, c.choices, c.piecewise} {
		if r, ok := compare(g, p); ok {
			return r, true
		}
	}
	return result{}, false
}

// unitOf is the unit of a quantity, or of the last side of "x = 3 cm".
func unitOf(n *expr.Node) string {
	if n.Op == expr.OpRel {
		n = n.Kids[len(n.Kids)-1]
	}
	return n.Unit
}

// inside says whether units or words stand inside n, which its hash leaves out.
func inside(n *expr.Node) bool {
	return n.Unit != "" || slices.ContainsFunc(n.Kids, func(k *expr.Node) bool { return k.Marked })
}

// quantity compares two expressions with per cent and matrices.
func (c *comparer) quantity(g, p *expr.Node) result {
	if expr.IsMatrix(g) || expr.IsMatrix(p) {
		return c.matrixWith(c.matrixOf(g), c.matrixOf(p), g, p)
	}
	if r, ok := c.based(g, p); ok {
		return r
	}
	r := c.expr(g, p)
	if r.out == Different {
		if q, ok := sameConstant(g, p); ok {
			r = c.expr(g, q)
		}
	}
	if r.out == Equal || c.Compat || (g.Op == expr.OpPercent) == (p.Op == expr.OpPercent) || g.Op == expr.OpDeg || p.Op == expr.OpDeg {
		return r
	}
	if c.Strict {
		return r
	}
	return c.percent(g, p, r)
}
