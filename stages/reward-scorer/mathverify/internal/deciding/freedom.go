package deciding

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// families compares answers that hold for all integers: what the integer is
// called does not matter. False if neither side says so.
func (c *comparer) families(g, p *expr.Node) (result, bool) {
	a, x := family(g)
	b, y := family(p)
	if len(x) == 0 && len(y) == 0 || len(x) > 1 || len(y) > 1 {
		return result{}, false
	}
	find := func(n *expr.Node, other string) (string, bool) {
		for _, s := range expr.SymbolsOf(n) { // "2πk" alone, with a usual name
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

func renameTo(n *expr.Node, from, to string) *expr.Node {
	return n.Rewrite(func(k *expr.Node) *expr.Node {
		if k.Op == expr.OpSym && k.Name == from {
			return expr.Sym(to)
		}
		return k
	})
}

// family splits "2nπ, n ∈ Z" into the formula and the names of its integers.
func family(n *expr.Node) (formula *expr.Node, names []string) {
	if n.Op != expr.OpList {
		return n, nil
	}
	var rest []*expr.Node
	for _, k := range n.Kids {
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
	return expr.Seal(&expr.Node{Op: expr.OpList, Name: n.Name, Kids: rest}), names
}

// integerName is the letter that "n ∈ Z" or "where n is an integer" speaks of.
func integerName(n *expr.Node) string {
	if n.Op == expr.OpRel && len(n.Rels) == 1 && n.Rels[0] == "in" && n.Kids[0].Op == expr.OpSym && n.Kids[1].Op == expr.OpReals && n.Kids[1].Name == "Z" {
		return n.Kids[0].Name
	}
	if n.Op == expr.OpSym && n.Remark.Has("integer") && !slices.ContainsFunc(n.Remark, func(w expr.RemarkWord) bool { return !w.Free && !quantifies[w.Text] }) {
		return n.Name
	}
	return ""
}

// quantifies are words before the letter of an integer that only bind it.
var quantifies = map[string]bool{"where …": true, "any …": true, "some …": true, "if …": true, "when …": true}

// constants of integration go by these names.
var constantNames = []string{"C", "K", "c", "k", "C_1", "C_0", "const"}

// constantOf is the name of a constant of integration that is a term of n, or "".
func constantOf(n *expr.Node) string {
	if n.Op != expr.OpAdd {
		return ""
	}
	found := ""
	for _, k := range n.Kids {
		if k.Op == expr.OpSym && slices.Contains(constantNames, k.Name) {
			if found != "" {
				return ""
			}
			found = k.Name
		}
	}
	return found
}

// sameConstant gives the constants of both sides one name.
func sameConstant(g, p *expr.Node) (*expr.Node, bool) {
	x, y := constantOf(g), constantOf(p)
	if x == "" || y == "" || x == y || x != "C" && y != "C" ||
		slices.Contains(expr.SymbolsOf(g), y) || slices.Contains(expr.SymbolsOf(p), x) {
		return p, false
	}
	return renameTo(p, y, x), true
}

// based compares a number in a stated base with one without. The base is left
// out like a unit; the number in another base is not what was asked for.
func (c *comparer) based(g, p *expr.Node) (result, bool) {
	if c.Compat || (g.Op == expr.OpBased) == (p.Op == expr.OpBased) {
		return result{}, false
	}
	b, other := g, p
	if p.Op == expr.OpBased {
		b, other = p, g
	}
	if other.Op != expr.OpNum || other.Dec || other.Long != "" {
		return result{}, false
	}
	if !c.Strict && other.Num.IsInt() && other.Num.Num().String() == b.Name {
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
func (c *comparer) percent(g, p *expr.Node, r result) result {
	n := func(n *expr.Node) *expr.Node {
		if n.Op == expr.OpPercent {
			return n.Kids[0]
		}
		return n
	}
	x, y := n(g), n(p)
	if v, err := c.Exact(x, nil); err == nil && v.Abs(v).Cmp(big.NewRat(1, 1)) <= 0 && v.Sign() != 0 {
		return r
	}
	if s := c.expr(x, y); s.out == Equal {
		return equal(s.method, "the same number, one with a sign for per cent")
	}
	return r
}

// combinatorial reads C(10, 3), P(10, 3), 10C3 and C_{10}^{3} as the number that
// they may stand for; nil for (3, 4) with another letter. False if n is none.
func combinatorial(n *expr.Node) (*expr.Node, bool) {
	if n.Op == expr.OpPow && n.Kids[0].Op == expr.OpSym && n.Kids[1].Op == expr.OpNum {
		if of, ok := strings.CutPrefix(n.Kids[0].Name, "C_"); ok {
			if k, err := strconv.ParseInt(of, 10, 32); err == nil {
				return expr.Call("binom", expr.Integer(k), n.Kids[1]), true
			}
		}
	}
	if n.Op == expr.OpMul && len(n.Kids) == 3 && n.Kids[0].Op == expr.OpNum && n.Kids[1].Op == expr.OpSym && n.Kids[1].Name == "C" && n.Kids[2].Op == expr.OpNum {
		return expr.Call("binom", n.Kids[0], n.Kids[2]), true
	}
	if n.Op != expr.OpMul || len(n.Kids) != 2 || n.Kids[0].Op != expr.OpSym || n.Kids[1].Op != expr.OpTuple || len(n.Kids[0].Name) != 1 || n.Kids[0].Name > "Z" {
		return nil, false
	}
	pair := n.Kids[1]
	if len(pair.Kids) == 2 && (n.Kids[0].Name == "C" || n.Kids[0].Name == "P") {
		b := expr.Call("binom", pair.Kids...)
		if n.Kids[0].Name == "P" {
			b = expr.Mul(b, expr.Call("fact", pair.Kids[1]))
		}
		return b, true
	}
	return nil, true
}

// choices compares where C(10, 3) or P(1, 2) stands: as a number of choices, or
// as a point. False if neither side is one.
func (c *comparer) choices(g, p *expr.Node) (result, bool) {
	a, okA := combinatorial(g)
	b, okB := combinatorial(p)
	if okA == okB {
		return result{}, false
	}
	n, number, other := g, a, p
	if okB {
		n, number, other = p, b, g
	}
	point := n
	if n.Op == expr.OpMul && len(n.Kids) == 2 {
		point = n.Kids[1]
	}
	for _, m := range []*expr.Node{number, point} {
		if m == nil || m.Op == expr.OpTuple && other.IsExpr() {
			continue
		}
		if r := c.value(m, other); r.out == Equal {
			return r, true
		}
	}
	return undecided(MethodStructure, "a point or a number of choices"), true
}
