package deciding

import (
	"math/big"
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

// onClock writes "3 p.m." beside a time of day as one.
func onClock(n, beside *expr.Node) *expr.Node {
	if beside.Op != expr.OpRatio || !n.IsExpr() || n.Unit != "am" && n.Unit != "pm" && n.Unit != "o'clock" {
		return n
	}
	m := &expr.Node{Op: expr.OpRatio, Name: "clock", Kids: []*expr.Node{bare(n), expr.Integer(0)}}
	if n.Unit != "o'clock" {
		m.Unit = n.Unit
	}
	return expr.Seal(m)
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

// maxSigns bounds the ± of one answer.
const maxSigns = 16

// expandPM turns x ± y into the two answers.
func expandPM(n *expr.Node) *expr.Node {
	pm := func(k *expr.Node) bool { return k.Op == expr.OpPM }
	switch {
	case n.Op == expr.OpList || n.Op == expr.OpSet:
		if !n.Any(pm) {
			return n
		}
		var kids []*expr.Node
		for _, k := range n.Kids {
			if e := expandPM(k); e.Op == expr.OpList && k.Op != expr.OpList {
				kids = append(kids, e.Kids...)
			} else {
				kids = append(kids, e)
			}
		}
		return expr.Seal(&expr.Node{Op: n.Op, Name: n.Name, Kids: kids})
	case !n.Any(pm):
		return n
	case n.Op == expr.OpRel && plainSet(n.Kids[len(n.Kids)-1]): // x = {1±√5, -2}
		kids := slices.Clone(n.Kids)
		kids[len(kids)-1] = expandPM(kids[len(kids)-1])
		return expr.Seal(&expr.Node{Op: expr.OpRel, Kids: kids, Rels: n.Rels})
	}
	signs := 0
	n.Any(func(k *expr.Node) bool {
		if k.Op == expr.OpPM {
			signs++
		}
		return signs > maxSigns
	})
	if signs > maxSigns {
		return n // no answer has so many; it is not read
	}
	choose := func(upper bool) *expr.Node {
		return n.Rewrite(func(k *expr.Node) *expr.Node {
			if k.Op != expr.OpPM {
				return k
			}
			if (k.Name == "+-") == upper {
				return expr.Add(k.Kids...)
			}
			return expr.Sub(k.Kids[0], k.Kids[1])
		})
	}
	return expr.Tree(expr.OpList, choose(true), choose(false))
}

// regroup makes "p = 5, q = 2 and p = 7, q = 2" two pairs: a name that comes
// again begins the next answer.
func regroup(n *expr.Node) *expr.Node {
	n = spreadUnequal(n)
	if n.Op != expr.OpList || len(n.Kids) < 4 {
		return n
	}
	names := make([]*expr.Node, len(n.Kids))
	period := 0
	for i, k := range n.Kids {
		name, _ := reading.Assignment(k)
		if name == nil {
			return n
		}
		names[i] = name
		if period == 0 && i > 0 && name.Same(names[0]) {
			period = i
		}
	}
	if period < 2 || len(names)%period != 0 {
		return n
	}
	var groups []*expr.Node
	for i := 0; i < len(names); i += period {
		for j := range period {
			if !names[i+j].Same(names[j]) {
				return n
			}
		}
		groups = append(groups, expr.Tree(expr.OpTuple, n.Kids[i:i+period]...))
	}
	return expr.Seal(&expr.Node{Op: expr.OpList, Kids: groups, Name: n.Name})
}

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

// clock is a time of day in 24 hours.
func (c *comparer) clock(n *expr.Node) []*expr.Node {
	hour, err := c.Exact(n.Kids[0], nil)
	if err != nil {
		return n.Kids
	}
	noon := hour.Cmp(big.NewRat(12, 1))
	switch {
	case n.Unit == "pm" && noon < 0:
		return append([]*expr.Node{expr.Add(n.Kids[0], expr.Integer(12))}, n.Kids[1:]...)
	case n.Unit == "am" && noon == 0:
		return append([]*expr.Node{expr.Integer(0)}, n.Kids[1:]...)
	}
	return n.Kids
}

// isClock says whether a ratio is a time of day: 8:05 is not 16:10.
func isClock(n *expr.Node) bool { return n.Name == "clock" || n.Unit == "am" || n.Unit == "pm" }

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
