package mathverify

import (
	"math/big"
	"slices"
	"strings"
)

// maxNesting bounds how deep answers are compared part by part.
const maxNesting = 24

// value compares two answers of any kind.
func (c *comparer) value(g, p *node) result {
	if c.nesting++; c.nesting > maxNesting {
		c.nesting--
		return undecided(MethodLimit, "nested too deep")
	}
	defer func() { c.nesting-- }()
	if err := c.spend(4); err != nil {
		return undecided(MethodLimit, "the budget of steps is used up")
	}
	if c.compat && (remarkOn(g).denies() != remarkOn(p).denies()) {
		return undecided(MethodWords, "one side denies what the other says")
	}
	if !c.compat && (g.marked || p.marked) {
		return c.marked(g, p)
	}
	return c.unmarked(g, p)
}

// marked compares where units or words stand beside the answers, or in them.
func (c *comparer) marked(g, p *node) result {
	if c.strict && (remarkOn(g).key() != remarkOn(p).key() || (unitOf(g) == "") != (unitOf(p) == "")) {
		return c.butNotEqual(g, p, undecided(MethodWords, "words or a unit on one side only"))
	}
	if g.op != opWords && p.op != opWords {
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
	if g.op == opDeg && y == "rad" || p.op == opDeg && x == "rad" {
		return different(MethodStructure, "degrees against radians")
	}
	if x != "" && y != "" && x != y {
		a, b, ok := convert(valueOf(g), valueOf(p), x, y)
		if !ok {
			return different(MethodStructure, "the units differ: "+x+" and "+y)
		}
		return c.unmarked(bare(a), bare(b))
	}
	return c.unmarked(bare(g), bare(p))
}

// onClock writes "3 p.m." beside a time of day as one.
func onClock(n, beside *node) *node {
	if beside.op != opRatio || !n.isExpr() || n.unit != "am" && n.unit != "pm" && n.unit != "o'clock" {
		return n
	}
	m := &node{op: opRatio, name: "clock", kids: []*node{bare(n), integer(0)}}
	if n.unit != "o'clock" {
		m.unit = n.unit
	}
	return seal(m)
}

// compound adds up "6 ft 2 in" beside a single quantity.
func (c *comparer) compound(n, beside *node) *node {
	if n.op != opList || len(n.kids) > 4 || beside.op == opList {
		return n
	}
	first := n.kids[0]
	sum := []*node{}
	before := ""
	for _, k := range n.kids {
		if k.unit == "" || !k.isExpr() || len(k.remark) > 0 || k.unit == before {
			return n
		}
		_, part, ok := convert(first, bare(k), first.unit, k.unit)
		if !ok || before != "" && !larger(before, k.unit) {
			return n
		}
		sum, before = append(sum, part), k.unit
	}
	m := *add(sum...)
	m.unit, m.marked = first.unit, true
	return &m
}

// larger says whether the first unit is larger than the second.
func larger(x, y string) bool {
	m, okM := measureOf(x)
	n, okN := measureOf(y)
	return okM && okN && m.factor.Cmp(n.factor) > 0
}

// butNotEqual compares the quantities: where they differ the words do not matter.
func (c *comparer) butNotEqual(g, p *node, r result) result {
	if r.out == Different {
		if s := c.unmarked(bare(g), bare(p)); s.out != Equal {
			return undecided(MethodWords, r.reason)
		}
	}
	return r
}

func words2(g, p *node) string {
	return clipText(strings.Trim(remarkOn(g).key()+" | "+remarkOn(p).key(), " |"), 80)
}

// remarkOn is the words beside an answer, or beside the last side of "x = 3 apples".
func remarkOn(n *node) remark {
	if n.op == opRel && isEquation(n) {
		return append(slices.Clip(n.remark), n.kids[len(n.kids)-1].remark...)
	}
	return n.remark
}

// valueOf is the last side of "x = 3 cm".
func valueOf(n *node) *node {
	if n.op == opRel {
		return n.kids[len(n.kids)-1]
	}
	return n
}

// bare is n without the words and the unit beside it; a clock keeps its a.m.
func bare(n *node) *node {
	if len(n.remark) == 0 && n.unit == "" {
		return n
	}
	m := *n
	m.remark = nil
	if n.op != opRatio {
		m.unit = ""
	}
	return &m
}

// unmarked compares two answers but for words and units beside them.
func (c *comparer) unmarked(g, p *node) result {
	if g.same(p) && (c.compat || !inside(g) && !inside(p)) {
		return equal(MethodStructure, "the same reading")
	}
	g, p = regroup(expandPM(c.expandDeterminants(g))), regroup(expandPM(c.expandDeterminants(p)))
	if r, ok := c.open(g, p); ok {
		return r
	}
	switch {
	case g.op == opWords || p.op == opWords:
		return c.wordsWith(g, p)
	case g.op == opRel && p.op == opRel:
		return c.relations(g, p)
	case isRelational(g) && isRealSet(p), isRelational(p) && isRealSet(g):
		if c.compat && !c.setRelation && isRealSet(g) && p.op == opRel && p.rels[0] != "in" {
			return different(MethodStructure, "a set is not compared with an inequality")
		}
		if r, ok := c.realSets(g, p); ok {
			return r
		}
	}
	if (g.op == opRel) != (p.op == opRel) && isRelational(g) && isRelational(p) {
		if r, ok := c.realSets(g, p); ok && r.out == Equal {
			return r
		}
	}
	if g.op == opRel {
		return c.relationWith(g, p)
	}
	if p.op == opRel {
		return c.relationWith(p, g)
	}
	if isRelational(g) && isRelational(p) {
		if r, ok := c.realSets(g, p); ok {
			return r
		}
	}
	if g.isExpr() && p.isExpr() {
		return c.quantity(g, p)
	}
	return c.collections(g, p)
}

// open compares where an answer leaves a name, a place or a spelling open.
func (c *comparer) open(g, p *node) (result, bool) {
	if g.op != opList && p.op != opList && g.op != opMul && p.op != opMul {
		return result{}, false
	}
	for _, compare := range []func(g, p *node) (result, bool){c.families, c.choices, c.piecewise} {
		if r, ok := compare(g, p); ok {
			return r, true
		}
	}
	return result{}, false
}

// unitOf is the unit of a quantity, or of the last side of "x = 3 cm".
func unitOf(n *node) string {
	if n.op == opRel {
		n = n.kids[len(n.kids)-1]
	}
	return n.unit
}

// inside says whether units or words stand inside n, which its hash leaves out.
func inside(n *node) bool {
	return n.unit != "" || slices.ContainsFunc(n.kids, func(k *node) bool { return k.marked })
}

// quantity compares two expressions with per cent and matrices.
func (c *comparer) quantity(g, p *node) result {
	if isMatrix(g) || isMatrix(p) {
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
	if r.out == Equal || c.compat || (g.op == opPercent) == (p.op == opPercent) || g.op == opDeg || p.op == opDeg {
		return r
	}
	if c.strict {
		return r
	}
	return c.percent(g, p, r)
}

// maxSigns bounds the ± of one answer.
const maxSigns = 16

// expandPM turns x ± y into the two answers.
func expandPM(n *node) *node {
	pm := func(k *node) bool { return k.op == opPM }
	switch {
	case n.op == opList || n.op == opSet:
		if !n.any(pm) {
			return n
		}
		var kids []*node
		for _, k := range n.kids {
			if e := expandPM(k); e.op == opList && k.op != opList {
				kids = append(kids, e.kids...)
			} else {
				kids = append(kids, e)
			}
		}
		return seal(&node{op: n.op, name: n.name, kids: kids})
	case !n.any(pm):
		return n
	case n.op == opRel && plainSet(n.kids[len(n.kids)-1]): // x = {1±√5, -2}
		kids := slices.Clone(n.kids)
		kids[len(kids)-1] = expandPM(kids[len(kids)-1])
		return seal(&node{op: opRel, kids: kids, rels: n.rels})
	}
	signs := 0
	n.any(func(k *node) bool {
		if k.op == opPM {
			signs++
		}
		return signs > maxSigns
	})
	if signs > maxSigns {
		return n // no answer has so many; it is not read
	}
	choose := func(upper bool) *node {
		return n.rewrite(func(k *node) *node {
			if k.op != opPM {
				return k
			}
			if (k.name == "+-") == upper {
				return add(k.kids...)
			}
			return sub(k.kids[0], k.kids[1])
		})
	}
	return tree(opList, choose(true), choose(false))
}

// regroup makes "p = 5, q = 2 and p = 7, q = 2" two pairs: a name that comes
// again begins the next answer.
func regroup(n *node) *node {
	n = spreadUnequal(n)
	if n.op != opList || len(n.kids) < 4 {
		return n
	}
	names := make([]*node, len(n.kids))
	period := 0
	for i, k := range n.kids {
		name, _ := assignment(k)
		if name == nil {
			return n
		}
		names[i] = name
		if period == 0 && i > 0 && name.same(names[0]) {
			period = i
		}
	}
	if period < 2 || len(names)%period != 0 {
		return n
	}
	var groups []*node
	for i := 0; i < len(names); i += period {
		for j := range period {
			if !names[i+j].same(names[j]) {
				return n
			}
		}
		groups = append(groups, tree(opTuple, n.kids[i:i+period]...))
	}
	return seal(&node{op: opList, kids: groups, name: n.name})
}

// inOrder compares two sequences of equal length place by place.
func (c *comparer) inOrder(a, b []*node) result {
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
func spreadUnequal(n *node) *node {
	if n.op != opList || len(n.kids) < 2 || n.kids[0].op != opRel || len(n.kids[0].rels) != 1 || n.kids[0].rels[0] != "!=" {
		return n
	}
	kids := []*node{n.kids[0]}
	for _, k := range n.kids[1:] {
		if k.isExpr() {
			k = seal(&node{op: opRel, kids: []*node{n.kids[0].kids[0], k}, rels: n.kids[0].rels})
		}
		kids = append(kids, k)
	}
	return seal(&node{op: opList, kids: kids, name: n.name})
}

// named makes "(x, y) = (1, 2)" the list "x = 1, y = 2"; nil if n is no such.
func named(n *node) *node {
	name, value := assignment(n)
	if name == nil || name.op != opTuple || value.op != opTuple && value.op != opBrack || len(name.kids) != len(value.kids) || len(name.kids) == 0 {
		return nil
	}
	kids := make([]*node, len(name.kids))
	for i := range kids {
		kids[i] = seal(&node{op: opRel, kids: []*node{name.kids[i], value.kids[i]}, rels: []string{"="}})
	}
	return tree(opList, kids...)
}

// items lists the answers of a list or set; a single answer is a list of one.
func items(n *node) []*node {
	switch n.op {
	case opList, opSet:
		return n.kids
	case opEmpty:
		return nil
	}
	return []*node{n}
}

// collections compares everything that is no single quantity.
func (c *comparer) collections(g, p *node) result {
	if isMatrix(g) || isMatrix(p) {
		if a, b := c.matrixOf(g), c.matrixOf(p); a != nil || b != nil {
			return c.matrixWith(a, b, g, p)
		}
	}
	ratio := g.op == opRatio || p.op == opRatio
	switch {
	case ratio && g.op == opRatio && p.op == opRatio:
		return c.ratios(g, p)
	case ratio && (g.isExpr() || p.isExpr()):
		return c.expr(asFraction(g), asFraction(p))
	}
	ordered := func(n *node) bool { return n.op == opTuple || n.op == opBrack }
	switch {
	case ordered(g) && ordered(p):
		if a, b := valuesOf(g.kids), valuesOf(p.kids); len(a) == len(b) && sameNodes(a, g.kids) != sameNodes(b, p.kids) {
			return c.inOrder(a, b)
		}
		if g.op != p.op && len(g.kids) == 2 && len(p.kids) == 2 {
			return different(MethodStructure, "round against square brackets")
		}
		return c.inOrder(g.kids, p.kids)
	case ordered(g) && p.op == opList:
		return c.listWithTuple(p, g)
	case ordered(p) && g.op == opList:
		return c.listWithTuple(g, p)
	}
	if g.op == opList && p.op == opSetOp {
		g = tree(opSet, g.kids...)
	} else if p.op == opList && g.op == opSetOp {
		p = tree(opSet, p.kids...)
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
	if g.op == opSetOp && p.op == opSetOp && g.name == p.name {
		if r := c.inOrder(g.kids, p.kids); r.out == Equal || g.name == "setminus" {
			return r
		}
		return c.inOrder(g.kids, []*node{p.kids[1], p.kids[0]})
	}
	if g.op == p.op && len(g.kids) == len(p.kids) && g.name == p.name && len(g.kids) > 0 {
		return c.inOrder(g.kids, p.kids)
	}
	return different(MethodStructure, "answers of different kinds")
}

func plainSet(n *node) bool { return n.op == opSet || n.op == opList || n.op == opEmpty }

func asFraction(n *node) *node {
	if n.op == opRatio && len(n.kids) == 2 {
		return div(n.kids[0], n.kids[1])
	}
	return n
}

func (c *comparer) ratios(g, p *node) result {
	r := c.inOrder(g.kids, p.kids)
	if g.unit != p.unit && r.out != Equal && len(g.kids) == len(p.kids) { // 8:34 p.m. is 20:34
		if s := c.inOrder(c.clock(g), c.clock(p)); s.out == Equal {
			return s
		}
	}
	if r.out == Equal || len(g.kids) != len(p.kids) || isClock(g) || isClock(p) {
		return r
	}
	for _, k := range append(append([]*node(nil), g.kids...), p.kids...) {
		if z, err := c.exact(k, nil); err == nil && z.Sign() == 0 {
			return r
		}
	}
	for i := 1; i < len(g.kids); i++ {
		if s := c.expr(mul(g.kids[0], p.kids[i]), mul(p.kids[0], g.kids[i])); s.out != Equal {
			return s
		}
	}
	return equal(MethodStructure, "the same ratio")
}

// clock is a time of day in 24 hours.
func (c *comparer) clock(n *node) []*node {
	hour, err := c.exact(n.kids[0], nil)
	if err != nil {
		return n.kids
	}
	noon := hour.Cmp(big.NewRat(12, 1))
	switch {
	case n.unit == "pm" && noon < 0:
		return append([]*node{add(n.kids[0], integer(12))}, n.kids[1:]...)
	case n.unit == "am" && noon == 0:
		return append([]*node{integer(0)}, n.kids[1:]...)
	}
	return n.kids
}

// isClock says whether a ratio is a time of day: 8:05 is not 16:10.
func isClock(n *node) bool { return n.name == "clock" || n.unit == "am" || n.unit == "pm" }

// listWithTuple compares "x = 4, y = 5" with "(4, 5)". A list without names says
// nothing of the order.
func (c *comparer) listWithTuple(list, tuple *node) result {
	if len(list.kids) != len(tuple.kids) {
		return different(MethodStructure, "different numbers of answers")
	}
	r := c.inOrder(valuesOf(list.kids), valuesOf(tuple.kids))
	if r.out == Equal && !c.compat && !distinctNames(list.kids) {
		return undecided(MethodStructure, "a list, which has no order, against a tuple")
	}
	return r
}

// valuesOf strips the names of "x = 5".
func valuesOf(kids []*node) []*node {
	out := make([]*node, len(kids))
	for i, k := range kids {
		out[i] = k
		if name, v := assignment(k); name != nil {
			out[i] = v
		} else if k.op == opRel && len(k.rels) == 1 && k.rels[0] == "in" && k.kids[1].isExpr() {
			out[i] = k.kids[1]
		}
	}
	return out
}

// distinctNames says whether every answer gives a value to a name of its own.
func distinctNames(kids []*node) bool {
	if len(kids) > maxUnordered {
		return false
	}
	var names []*node
	for _, k := range kids {
		name, _ := assignment(k)
		if name == nil {
			return false
		}
		for _, other := range names {
			if name.same(other) {
				return false
			}
		}
		names = append(names, name)
	}
	return len(names) > 1
}

func sameNodes(a, b []*node) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
