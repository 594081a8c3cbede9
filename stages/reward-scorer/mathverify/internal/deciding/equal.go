package deciding

import (
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// result is the outcome of comparing two nodes.
type result struct {
	out    Outcome
	method string
	reason string
}

func equal(method, reason string) result { return result{Equal, method, reason} }

func different(method, reason string) result { return result{Different, method, reason} }

func undecided(method, reason string) result { return result{Undecided, method, reason} }

// comparer holds what one comparison needs.
type comparer struct {
	evaluation.Budget
	Conventions
	size    int // bytes of both texts: bounds how close different constants can be
	nesting int // of value calls
}

// expr compares two quantities.
func (c *comparer) expr(g, p *expr.Node) result {
	if g.Size >= expr.MaxSize || p.Size >= expr.MaxSize {
		return undecided(MethodLimit, "an expression that grows too large")
	}
	if g.Same(p) {
		return equal(MethodStructure, "the same expression")
	}
	if x, ok := evaluation.SmallFraction(g); ok {
		if y, ok := evaluation.SmallFraction(p); ok {
			if x == y {
				return equal(MethodRational, "the same number")
			}
			return c.rationals(x.Rat(), y.Rat(), expr.Inexact(g) || expr.Inexact(p))
		}
	}
	if expr.HasOp(g, expr.OpBig) || expr.HasOp(p, expr.OpBig) {
		g, p = c.differentiate(g), c.differentiate(p)
		if g.Same(p) {
			return equal(MethodStructure, "the same expression")
		}
	}
	if c.Compat {
		g, p = c.polynomialDivisors(g), c.polynomialDivisors(p)
	}
	x, errX := c.Exact(g, nil)
	y, errY := c.Exact(p, nil)
	if errX == nil && errY == nil {
		return c.rationals(x, y, expr.Inexact(g) || expr.Inexact(p))
	}
	if errors.Is(errX, evaluation.ErrUndefined) || errors.Is(errY, evaluation.ErrUndefined) {
		return undecided(MethodRational, "a division by zero")
	}
	if r, ok := c.infinite(g, p); ok {
		return r
	}
	if c.nesting < maxNesting && (simplifies(g) || simplifies(p)) {
		if a, b := c.simplify(g), c.simplify(p); a != g || b != p {
			c.nesting++
			defer func() { c.nesting-- }()
			return c.expr(a, b)
		}
	}
	if r, ok := c.identity(g, p); ok {
		if r.out == Different && (expr.Inexact(g) || expr.Inexact(p)) {
			return c.numbers(g, p)
		}
		return r
	}
	if r, ok := c.peel(g, p); ok {
		return r
	}
	if r, ok := c.big(g, p); ok {
		return r
	}
	return c.numbers(g, p)
}

// big compares where sums, products, integrals and limits occur.
func (c *comparer) big(g, p *expr.Node) (result, bool) {
	if !expr.HasOp(g, expr.OpBig) && !expr.HasOp(p, expr.OpBig) {
		return result{}, false
	}
	a, b := renamed(g), renamed(p)
	if a.Same(b) {
		return equal(MethodStructure, "the same expression"), true
	}
	if x, y := c.close(a), c.close(b); (!x.Same(a) || !y.Same(b)) && c.nesting < maxNesting {
		c.nesting++
		defer func() { c.nesting-- }()
		return c.expr(x, y), true
	}
	if r, ok := c.antiderivative(a, b); ok {
		return r, true
	}
	if r, ok := c.estimated(a, b); ok {
		return r, true
	}
	if r := c.numbers(a, b); r.out != Different {
		return r, true
	} else if estimable(a) || estimable(b) {
		return undecided(MethodInterval, "an integral, a series or a limit that is only estimated"), true
	} else {
		return r, true
	}
}

// estimable says whether n holds an integral, infinite sum or limit.
func estimable(n *expr.Node) bool {
	return n.Any(func(k *expr.Node) bool {
		return k.Op == expr.OpBig && (k.Name == "int" || strings.HasPrefix(k.Name, "lim") || expr.HasOp(k, expr.OpInf))
	})
}

// rationals compares two exact values; a decimal is taken as rounded.
func (c *comparer) rationals(x, y *big.Rat, rounded bool) result {
	if x.Cmp(y) == 0 {
		return equal(MethodRational, "the same number")
	}
	if rounded && c.within(new(big.Rat).Sub(x, y), x, y) {
		return equal(MethodTolerance, "the same to "+strconv.Itoa(c.Decimals)+" decimals")
	}
	return different(MethodRational, "the numbers differ")
}

// within is the tolerance for decimals: half a unit of the last decimal that
// counts. In the sound profile it shrinks for numbers below 10^-(decimals/2), so
// that no small number is taken for another or for zero.
func (c *comparer) within(d, x, y *big.Rat) bool {
	ten := func(n int) *big.Rat {
		return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
	}
	bound := new(big.Rat).Quo(big.NewRat(1, 2), ten(c.Decimals))
	d = new(big.Rat).Abs(d)
	if d.Cmp(bound) > 0 {
		return false
	}
	if c.Compat {
		return !x.IsInt() && !y.IsInt() // Math-Verify rounds no integer
	}
	larger := new(big.Rat).Abs(x)
	if a := new(big.Rat).Abs(y); a.Cmp(larger) > 0 {
		larger = a
	}
	scale := larger.Mul(larger, ten(c.Decimals/2))
	return scale.Cmp(big.NewRat(1, 1)) >= 0 || d.Cmp(bound.Mul(bound, scale)) <= 0
}

// infinite compares ±∞, which no arithmetic below knows.
func (c *comparer) infinite(g, p *expr.Node) (result, bool) {
	sign := func(n *expr.Node) int {
		switch {
		case n.Op == expr.OpInf:
			return 1
		case n.Op == expr.OpMul && len(n.Kids) == 2 && n.Kids[1].Op == expr.OpInf && n.Kids[0].Op == expr.OpNum:
			return n.Kids[0].Num.Sign()
		}
		return 0
	}
	a, b := sign(g), sign(p)
	switch {
	case a == 0 && b == 0:
		return result{}, false
	case a == b:
		return equal(MethodStructure, "the same infinity"), true
	case (a != 0) != (b != 0) && (expr.HasOp(g, expr.OpInf) && expr.HasOp(p, expr.OpInf)):
		return undecided(MethodStructure, "arithmetic with infinity"), true
	}
	if expr.HasOp(g, expr.OpBig) || expr.HasOp(p, expr.OpBig) {
		return undecided(MethodStructure, "one side is infinite"), true
	}
	return different(MethodStructure, "one side is infinite"), true
}

// identity compares in two fields.
func (c *comparer) identity(g, p *expr.Node) (result, bool) {
	if expr.HasOp(g, expr.OpInf) && !expr.HasOp(g, expr.OpBig) || expr.HasOp(p, expr.OpInf) && !expr.HasOp(p, expr.OpBig) {
		return result{}, false
	}
	seed := expr.Mix(g.Hash[0] ^ p.Hash[0]) // symmetric in the two
	same, proof, rationalFunction := true, true, true
	cofactor := uint64(0)
	for _, prime := range evaluation.Primes {
		f := &evaluation.Field{Budget: &c.Budget, Modulus: evaluation.NewModulus(prime), Seed: seed, Cofactor: &cofactor}
		x, err := f.Value(g)
		if err != nil {
			return result{}, false
		}
		y, err := f.Value(p)
		if err != nil {
			return result{}, false
		}
		same = same && x == y
		proof = proof && !f.Met && (!f.Pi || !f.E)
		rationalFunction = rationalFunction && !f.Met && !f.Beyond
		if !same && !proof {
			return result{}, false
		}
		if !same {
			return different(MethodIdentity, "different in a prime field"), true
		}
	}
	// Numbers large enough could be made to vanish in both fields.
	apart, tried := c.contradicted(g, p)
	if apart {
		return different(MethodRational, "different at a point"), true
	}
	if !tried && !rationalFunction && c.height(g)+c.height(p) > 100 && c.nesting < maxNesting {
		if r := c.numbers(g, p); r.out == Different {
			return r, true
		}
	}
	return equal(MethodIdentity, "equal in two prime fields"), true
}

// contradicted evaluates both sides at one point in the rationals, where that is
// cheap, and says whether they are apart and whether it was done.
func (c *comparer) contradicted(g, p *expr.Node) (apart, tried bool) {
	names := expr.SymbolsOf(g, p)
	vars := make(evaluation.Env, len(names))
	for i, name := range names {
		vars[name] = big.NewRat(int64(3+2*i), 1)
	}
	probe := evaluation.Budget{Left: min(c.Left/2, 4000)}
	x, err := probe.Exact(g, vars)
	if err != nil {
		return false, false
	}
	y, err := probe.Exact(p, vars)
	return err == nil && x.Cmp(y) != 0, err == nil
}

// peel compares b^x with b^y by x and y where b is a constant above 1 and both
// exponents are constants too large to calculate.
func (c *comparer) peel(g, p *expr.Node) (result, bool) {
	if g.Op != expr.OpPow || p.Op != expr.OpPow || c.nesting > 8 {
		return result{}, false
	}
	b, x, y := g.Kids[0], g.Kids[1], p.Kids[1]
	if !b.Same(p.Kids[0]) {
		r, i := perfectPower(b)
		s, j := perfectPower(p.Kids[0])
		if r == 0 || r != s {
			return result{}, false
		}
		b, x, y = expr.Integer(r), expr.Mul(expr.Integer(i), x), expr.Mul(expr.Integer(j), y) // 9^x against 3^y
	}
	if b.Op != expr.OpE && (b.Op != expr.OpNum || b.Num.Cmp(big.NewRat(1, 1)) <= 0) {
		return result{}, false
	}
	if len(expr.SymbolsOf(g, p)) > 0 || expr.HasOp(g, expr.OpI) || expr.HasOp(p, expr.OpI) || expr.Inexact(g) || expr.Inexact(p) {
		return result{}, false
	}
	c.nesting++
	defer func() { c.nesting-- }()
	return c.expr(x, y), true
}

// perfectPower writes a small integer above 1 as r^k with the least r; 0 if n
// is none.
func perfectPower(n *expr.Node) (r, k int64) {
	if n.Op != expr.OpNum || n.Long != "" || !n.Num.IsInt() || n.Num.Num().BitLen() > 40 || n.Num.Num().Int64() < 2 {
		return 0, 0
	}
	value := n.Num.Num()
	for e := value.BitLen(); e > 1; e-- {
		if root, ok := evaluation.RootOf(value, e); ok {
			return root.Int64(), int64(e)
		}
	}
	return value.Int64(), 1
}

// abstract replaces the parts that no method evaluates by symbols, equal parts
// by the same one. A part of unknown meaning that has no twin on the other side
// makes a difference unprovable: loose.
func (c *comparer) abstract(sides ...*expr.Node) (out []*expr.Node, loose bool) {
	var met []*expr.Node
	var from []int
	shared := map[int]bool{}
	for side, n := range sides {
		out = append(out, n.Rewrite(func(k *expr.Node) *expr.Node {
			unknown := k.Op == expr.OpFunc && (k.Name[0] == '@' || k.Name == "sub" || k.Name == "congruent" || k.Name == "det" || k.Name == "tr") ||
				k.Op == expr.OpBig && !c.evaluable(k) || !k.IsExpr()
			if !unknown || len(met) > 16 {
				return k
			}
			name := func(i int) *expr.Node { return expr.Sym("part " + strconv.Itoa(i)) }
			for i, m := range met {
				if c.twins(m, k) {
					shared[i] = shared[i] || from[i] != side
					return name(i)
				}
			}
			met, from = append(met, k), append(from, side)
			return name(len(met) - 1)
		}))
	}
	for i, m := range met {
		loose = loose || m.Op == expr.OpBig && !shared[i]
	}
	return out, loose
}

// evaluable says whether a sum or product is finite.
func (c *comparer) evaluable(n *expr.Node) bool {
	if n.Name == "int" {
		_, err := c.Exact(n, nil)
		return err == nil
	}
	return (n.Name == "sum" || n.Name == "prod") && n.Kids[2].Op == expr.OpSym && n.Kids[2].Name != "" &&
		n.Kids[0].Op != expr.OpEmpty && n.Kids[1].Op != expr.OpEmpty && !expr.HasOp(n.Kids[1], expr.OpInf) && !expr.HasOp(n.Kids[0], expr.OpInf)
}

// twins says whether two unknown parts are the same function of equal arguments.
func (c *comparer) twins(m, k *expr.Node) bool {
	if m.Op != k.Op || m.Name != k.Name || len(m.Kids) != len(k.Kids) || c.nesting > 4 {
		return false
	}
	if m.Same(k) {
		return true
	}
	c.nesting++
	defer func() { c.nesting-- }()
	for i := range m.Kids {
		if c.value(m.Kids[i], k.Kids[i]).out != Equal {
			return false
		}
	}
	return true
}
