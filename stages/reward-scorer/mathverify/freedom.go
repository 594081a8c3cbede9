package mathverify

import (
	"math/big"
	"slices"
)

// What an answer leaves open: the integer of "2nπ, n ∈ Z", the constant of an
// integral, the base of a number, the sign for per cent.

// families compares answers that hold for all integers: what the integer is
// called does not matter. False if neither side says so.
func (c *comparer) families(g, p *node) (result, bool) {
	a, x := family(g)
	b, y := family(p)
	if len(x) == 0 && len(y) == 0 || len(x) > 1 || len(y) > 1 {
		return result{}, false
	}
	find := func(n *node, other string) (string, bool) {
		for _, s := range symbolsOf(n) { // "2πk" alone, with a usual name
			if s == other || len(s) == 1 && s >= "j" && s <= "n" {
				return s, true
			}
		}
		return "", false
	}
	var from, to string
	ok := true
	switch {
	case len(x) == 1 && len(y) == 1:
		from, to = y[0], x[0]
	case len(x) == 1:
		to = x[0]
		from, ok = find(b, to)
	default:
		from = y[0]
		to, ok = find(a, from)
	}
	if !ok {
		return undecided(MethodStructure, "one side holds for all integers"), true
	}
	b = renameTo(b, from, to)
	r := c.value(a, b)
	if r.out != Equal {
		return undecided(MethodStructure, "families that may hold the same numbers in another order"), true
	}
	return r, true
}

func renameTo(n *node, from, to string) *node {
	return n.rewrite(func(k *node) *node {
		if k.op == opSym && k.name == from {
			return sym(to)
		}
		return k
	})
}

// family splits "2nπ, n ∈ Z" into the formula and the names of its integers.
func family(n *node) (formula *node, names []string) {
	if n.op != opList {
		return n, nil
	}
	var rest []*node
	for _, k := range n.kids {
		if name := integerName(k); name != "" {
			names = append(names, name)
		} else {
			rest = append(rest, k)
		}
	}
	if len(rest) == 0 || len(names) == 0 {
		return n, nil
	}
	if len(rest) == 1 {
		return rest[0], names
	}
	return seal(&node{op: opList, name: n.name, kids: rest}), names
}

// integerName is the letter that "n ∈ Z" or "where n is an integer" speaks of.
func integerName(n *node) string {
	if n.op == opRel && len(n.rels) == 1 && n.rels[0] == "in" && n.kids[0].op == opSym && n.kids[1].op == opReals && n.kids[1].name == "Z" {
		return n.kids[0].name
	}
	if n.op == opSym && n.remark.has("integer") && !slices.ContainsFunc(n.remark, func(w remarkWord) bool { return !w.free && w.text != "where …" && w.text != "any …" }) {
		return n.name
	}
	return ""
}

// constants of integration go by these names.
var constantNames = []string{"C", "K", "c", "k", "C_1", "C_0", "const"}

// constantOf is the name of a constant of integration that is a term of n, or "".
func constantOf(n *node) string {
	if n.op != opAdd {
		return ""
	}
	found := ""
	for _, k := range n.kids {
		if k.op == opSym && slices.Contains(constantNames, k.name) {
			if found != "" {
				return ""
			}
			found = k.name
		}
	}
	return found
}

// sameConstant gives the constants of both sides one name.
func sameConstant(g, p *node) (*node, bool) {
	x, y := constantOf(g), constantOf(p)
	if x == "" || y == "" || x == y || x != "C" && y != "C" ||
		slices.Contains(symbolsOf(g), y) || slices.Contains(symbolsOf(p), x) {
		return p, false
	}
	return renameTo(p, y, x), true
}

// based compares a number in a stated base with one without. The base is left
// out like a unit; the number in another base is not what was asked for.
func (c *comparer) based(g, p *node) (result, bool) {
	if c.compat || (g.op == opBased) == (p.op == opBased) {
		return result{}, false
	}
	b, other := g, p
	if p.op == opBased {
		b, other = p, g
	}
	if other.op != opNum || other.dec || other.long != "" {
		return result{}, false
	}
	if !c.strict && other.num.IsInt() && other.num.Num().String() == b.name {
		return equal(MethodStructure, "the same digits, the base left out on one side"), true
	}
	if r := c.expr(g, p); r.out == Different {
		return r, true
	}
	return undecided(MethodStructure, "the same number in another base"), true
}

// percent compares where one side bears a sign for per cent and the other does
// not. The sign may be left out of a number above 1; below, the number without
// it would be a share, a hundred times as large.
func (c *comparer) percent(g, p *node, r result) result {
	n := func(n *node) *node {
		if n.op == opPercent {
			return n.kids[0]
		}
		return n
	}
	x, y := n(g), n(p)
	if v, err := c.exact(x, nil); err == nil && v.Abs(v).Cmp(big.NewRat(1, 1)) <= 0 && v.Sign() != 0 {
		return r
	}
	if s := c.expr(x, y); s.out == Equal {
		return equal(s.method, "the same number, one with a sign for per cent")
	}
	return r
}

// combinatorial reads C(10, 3) and P(10, 3), which could be points, too.
func combinatorial(n *node) (*node, bool) {
	if n.op != opMul || len(n.kids) != 2 || n.kids[0].op != opSym || n.kids[1].op != opTuple || len(n.kids[0].name) != 1 || n.kids[0].name > "Z" {
		return nil, false
	}
	pair := n.kids[1]
	if len(pair.kids) == 2 && (n.kids[0].name == "C" || n.kids[0].name == "P") {
		b := call("binom", pair.kids...)
		if n.kids[0].name == "P" {
			b = mul(b, call("fact", pair.kids[1]))
		}
		return b, true
	}
	return nil, true
}

// choices compares where C(10, 3) or P(1, 2) stands: as a number of choices, or
// as a point. False if neither side is one.
func (c *comparer) choices(g, p *node) (result, bool) {
	a, okA := combinatorial(g)
	b, okB := combinatorial(p)
	if okA == okB {
		return result{}, false
	}
	n, number, other := g, a, p
	if okB {
		n, number, other = p, b, g
	}
	point := n.kids[1]
	for _, m := range []*node{number, point} {
		if m == nil || m.op == opTuple && other.isExpr() {
			continue
		}
		if r := c.value(m, other); r.out == Equal {
			return r, true
		}
	}
	return undecided(MethodStructure, "a point or a number of choices"), true
}
