package mathverify

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// result is the outcome of comparing two nodes.
type result struct {
	out    Outcome
	method string
	reason string
}

func equal(method, reason string) result     { return result{Equal, method, reason} }
func different(method, reason string) result { return result{Different, method, reason} }
func undecided(method, reason string) result { return result{Undecided, method, reason} }

// comparer holds what one comparison needs.
type comparer struct {
	budget
	conventions
	size    int // bytes of both texts: bounds how close different constants can be
	nesting int // of value calls
}

// expr compares two quantities.
func (c *comparer) expr(g, p *node) result {
	if g.size >= maxSize || p.size >= maxSize {
		return undecided(MethodLimit, "an expression that grows too large")
	}
	if g.same(p) {
		return equal(MethodStructure, "the same expression")
	}
	if x, ok := smallFraction(g); ok {
		if y, ok := smallFraction(p); ok {
			if x == y {
				return equal(MethodRational, "the same number")
			}
			return c.rationals(x.rat(), y.rat(), inexact(g) || inexact(p))
		}
	}
	if hasOp(g, opBig) || hasOp(p, opBig) {
		g, p = c.differentiate(g), c.differentiate(p)
		if g.same(p) {
			return equal(MethodStructure, "the same expression")
		}
	}
	if c.compat {
		g, p = c.polynomialDivisors(g), c.polynomialDivisors(p)
	}
	x, errX := c.exact(g, nil)
	y, errY := c.exact(p, nil)
	if errX == nil && errY == nil {
		return c.rationals(x, y, inexact(g) || inexact(p))
	}
	if errors.Is(errX, errUndefined) || errors.Is(errY, errUndefined) {
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
		if r.out == Different && (inexact(g) || inexact(p)) {
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
func (c *comparer) big(g, p *node) (result, bool) {
	if !hasOp(g, opBig) && !hasOp(p, opBig) {
		return result{}, false
	}
	a, b := renamed(g), renamed(p)
	if a.same(b) {
		return equal(MethodStructure, "the same expression"), true
	}
	if x, y := c.close(a), c.close(b); (!x.same(a) || !y.same(b)) && c.nesting < maxNesting {
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
func estimable(n *node) bool {
	return n.any(func(k *node) bool {
		return k.op == opBig && (k.name == "int" || strings.HasPrefix(k.name, "lim") || hasOp(k, opInf))
	})
}

// rationals compares two exact values; a decimal is taken as rounded.
func (c *comparer) rationals(x, y *big.Rat, rounded bool) result {
	if x.Cmp(y) == 0 {
		return equal(MethodRational, "the same number")
	}
	if rounded && c.within(new(big.Rat).Sub(x, y), x, y) {
		return equal(MethodTolerance, "the same to "+strconv.Itoa(c.decimals)+" decimals")
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
	bound := new(big.Rat).Quo(big.NewRat(1, 2), ten(c.decimals))
	d = new(big.Rat).Abs(d)
	if d.Cmp(bound) > 0 {
		return false
	}
	if c.compat {
		return !x.IsInt() && !y.IsInt() // Math-Verify rounds no integer
	}
	larger := new(big.Rat).Abs(x)
	if a := new(big.Rat).Abs(y); a.Cmp(larger) > 0 {
		larger = a
	}
	scale := larger.Mul(larger, ten(c.decimals/2))
	return scale.Cmp(big.NewRat(1, 1)) >= 0 || d.Cmp(bound.Mul(bound, scale)) <= 0
}

// infinite compares ±∞, which no arithmetic below knows.
func (c *comparer) infinite(g, p *node) (result, bool) {
	sign := func(n *node) int {
		switch {
		case n.op == opInf:
			return 1
		case n.op == opMul && len(n.kids) == 2 && n.kids[1].op == opInf && n.kids[0].op == opNum:
			return n.kids[0].num.Sign()
		}
		return 0
	}
	a, b := sign(g), sign(p)
	switch {
	case a == 0 && b == 0:
		return result{}, false
	case a == b:
		return equal(MethodStructure, "the same infinity"), true
	case (a != 0) != (b != 0) && (hasOp(g, opInf) && hasOp(p, opInf)):
		return undecided(MethodStructure, "arithmetic with infinity"), true
	}
	if hasOp(g, opBig) || hasOp(p, opBig) {
		return undecided(MethodStructure, "one side is infinite"), true
	}
	return different(MethodStructure, "one side is infinite"), true
}

// identity compares in two fields.
func (c *comparer) identity(g, p *node) (result, bool) {
	if hasOp(g, opInf) && !hasOp(g, opBig) || hasOp(p, opInf) && !hasOp(p, opBig) {
		return result{}, false
	}
	seed := mix(g.hash[0] ^ p.hash[0]) // symmetric in the two
	same, proof, rationalFunction := true, true, true
	cofactor := uint64(0)
	for _, prime := range primes {
		f := &field{budget: &c.budget, modulus: modulus{prime}, seed: seed, cofactor: &cofactor}
		x, err := f.value(g)
		if err != nil {
			return result{}, false
		}
		y, err := f.value(p)
		if err != nil {
			return result{}, false
		}
		same = same && x == y
		proof = proof && !f.met && (!f.pi || !f.e)
		rationalFunction = rationalFunction && !f.met && !f.beyond
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
func (c *comparer) contradicted(g, p *node) (apart, tried bool) {
	names := symbolsOf(g, p)
	vars := make(env, len(names))
	for i, name := range names {
		vars[name] = big.NewRat(int64(3+2*i), 1)
	}
	probe := budget{left: min(c.left/2, 4000)}
	x, err := probe.exact(g, vars)
	if err != nil {
		return false, false
	}
	y, err := probe.exact(p, vars)
	return err == nil && x.Cmp(y) != 0, err == nil
}

// peel compares b^x with b^y by x and y where b is a constant above 1 and both
// exponents are constants too large to calculate.
func (c *comparer) peel(g, p *node) (result, bool) {
	if g.op != opPow || p.op != opPow || c.nesting > 8 {
		return result{}, false
	}
	b, x, y := g.kids[0], g.kids[1], p.kids[1]
	if !b.same(p.kids[0]) {
		r, i := perfectPower(b)
		s, j := perfectPower(p.kids[0])
		if r == 0 || r != s {
			return result{}, false
		}
		b, x, y = integer(r), mul(integer(i), x), mul(integer(j), y) // 9^x against 3^y
	}
	if b.op != opE && (b.op != opNum || b.num.Cmp(big.NewRat(1, 1)) <= 0) {
		return result{}, false
	}
	if len(symbolsOf(g, p)) > 0 || hasOp(g, opI) || hasOp(p, opI) || inexact(g) || inexact(p) {
		return result{}, false
	}
	c.nesting++
	defer func() { c.nesting-- }()
	return c.expr(x, y), true
}

// perfectPower writes a small integer above 1 as r^k with the least r; 0 if n
// is none.
func perfectPower(n *node) (r, k int64) {
	if n.op != opNum || n.long != "" || !n.num.IsInt() || n.num.Num().BitLen() > 40 || n.num.Num().Int64() < 2 {
		return 0, 0
	}
	value := n.num.Num()
	for e := value.BitLen(); e > 1; e-- {
		if root, ok := rootOf(value, e); ok {
			return root.Int64(), int64(e)
		}
	}
	return value.Int64(), 1
}

// abstract replaces the parts that no method evaluates by symbols, equal parts
// by the same one. A part of unknown meaning that has no twin on the other side
// makes a difference unprovable: loose.
func (c *comparer) abstract(sides ...*node) (out []*node, loose bool) {
	var met []*node
	var from []int
	shared := map[int]bool{}
	for side, n := range sides {
		out = append(out, n.rewrite(func(k *node) *node {
			unknown := k.op == opFunc && (k.name[0] == '@' || k.name == "sub" || k.name == "congruent" || k.name == "det" || k.name == "tr") ||
				k.op == opBig && !c.evaluable(k) || !k.isExpr()
			if !unknown || len(met) > 16 {
				return k
			}
			name := func(i int) *node { return sym("part " + strconv.Itoa(i)) }
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
		loose = loose || m.op == opBig && !shared[i]
	}
	return out, loose
}

// evaluable says whether a sum or product is finite.
func (c *comparer) evaluable(n *node) bool {
	if n.name == "int" {
		_, err := c.exact(n, nil)
		return err == nil
	}
	return (n.name == "sum" || n.name == "prod") && n.kids[2].op == opSym && n.kids[2].name != "" &&
		n.kids[0].op != opEmpty && n.kids[1].op != opEmpty && !hasOp(n.kids[1], opInf) && !hasOp(n.kids[0], opInf)
}

// twins says whether two unknown parts are the same function of equal arguments.
func (c *comparer) twins(m, k *node) bool {
	if m.op != k.op || m.name != k.name || len(m.kids) != len(k.kids) || c.nesting > 4 {
		return false
	}
	if m.same(k) {
		return true
	}
	c.nesting++
	defer func() { c.nesting-- }()
	for i := range m.kids {
		if c.value(m.kids[i], k.kids[i]).out != Equal {
			return false
		}
	}
	return true
}
