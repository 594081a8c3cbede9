package mathverify

import (
	"math/big"
)

// close replaces integrals of polynomials, geometric sums, products of 1 … n and
// Dirichlet's integral by what they come to.
func (c *comparer) close(n *node) *node {
	if !hasOp(n, opBig) {
		return n
	}
	return n.rewrite(func(k *node) *node {
		if k.op != opBig {
			return k
		}
		var closed *node
		switch k.name {
		case "int":
			if closed = c.polynomialIntegral(k); closed == nil {
				closed = c.dirichlet(k)
			}
		case "sum":
			closed = c.geometric(k)
		case "prod":
			if one, err := c.exact(k.kids[0], nil); err == nil && one.Cmp(big.NewRat(1, 1)) == 0 && k.kids[2].op == opSym && k.kids[3].same(k.kids[2]) &&
				k.kids[1].isExpr() && !hasOp(k.kids[1], opInf) {
				closed = call("fact", k.kids[1])
			}
		}
		if closed == nil {
			return k
		}
		return closed
	})
}

func contains(n *node, name string) bool {
	return n.any(func(k *node) bool { return k.op == opSym && k.name == name })
}

// polynomial writes n as a polynomial in one variable with coefficients that
// are free of it, lowest power first; nil if it is none of low degree.
func polynomial(n *node, name string) []*node {
	if n.op == opSym && n.name == name {
		return []*node{integer(0), integer(1)}
	}
	if !contains(n, name) {
		return []*node{n}
	}
	switch n.op {
	case opAdd:
		var acc []*node
		for _, k := range n.kids {
			p := polynomial(k, name)
			if p == nil {
				return nil
			}
			for i, x := range p {
				if i < len(acc) {
					acc[i] = add(acc[i], x)
				} else {
					acc = append(acc, x)
				}
			}
		}
		return acc
	case opMul:
		acc := []*node{integer(1)}
		for _, k := range n.kids {
			if acc = polynomialProduct(acc, polynomial(k, name)); acc == nil {
				return nil
			}
		}
		return acc
	case opPow:
		e := n.kids[1]
		if e.op != opNum || e.long != "" || !e.num.IsInt() || e.num.Sign() <= 0 || e.num.Num().BitLen() > 10 {
			return nil
		}
		base, acc := polynomial(n.kids[0], name), []*node{integer(1)}
		if k := int(e.num.Num().Int64()); len(base) == 2 && base[0].op == opNum && base[0].num.Sign() == 0 && k <= 1000 { // (ax)^k
			acc = make([]*node, k+1)
			for i := range acc {
				acc[i] = integer(0)
			}
			acc[k] = pow(base[1], e)
			return acc
		}
		for range e.num.Num().Int64() {
			if acc = polynomialProduct(acc, base); acc == nil {
				return nil
			}
		}
		return acc
	}
	return nil
}

func polynomialProduct(a, b []*node) []*node {
	if a == nil || b == nil || len(a)+len(b) > 24 && len(a) > 1 && len(b) > 1 {
		return nil
	}
	acc := make([]*node, len(a)+len(b)-1)
	for i, x := range a {
		for j, y := range b {
			if acc[i+j] == nil {
				acc[i+j] = mul(x, y)
			} else {
				acc[i+j] = add(acc[i+j], mul(x, y))
			}
			if acc[i+j].size > maxBuilt {
				return nil
			}
		}
	}
	return acc
}

func (c *comparer) polynomialIntegral(n *node) *node {
	lo, hi := n.kids[0], n.kids[1]
	if lo.op == opEmpty || hi.op == opEmpty || hasOp(lo, opInf) || hasOp(hi, opInf) || !lo.isExpr() || !hi.isExpr() {
		return nil
	}
	p := polynomial(n.kids[3], n.kids[2].name)
	if p == nil || c.spend(len(p)) != nil {
		return nil
	}
	var terms []*node
	for i, x := range p {
		if x.op == opNum && x.num.Sign() == 0 && x.long == "" {
			continue
		}
		k := integer(int64(i + 1))
		terms = append(terms, mul(x, pow(k, integer(-1)), sub(pow(hi, k), pow(lo, k))))
	}
	if len(terms) == 0 {
		return integer(0)
	}
	return add(terms...)
}

// dirichlet knows the integrals of sin(ax)/x and sin²(ax)/x² over the positive
// numbers and over all.
func (c *comparer) dirichlet(n *node) *node {
	if !n.kids[1].same(plusInf) {
		return nil
	}
	over := integer(1)
	switch lo := n.kids[0]; {
	case lo.same(minusInf):
		over = integer(2)
	case lo.op != opNum || lo.num.Sign() != 0:
		return nil
	}
	x := n.kids[2]
	factors := []*node{n.kids[3]}
	if n.kids[3].op == opMul {
		factors = n.kids[3].kids
	}
	degree, power := int64(0), int64(0)
	var argument *node
	rest := []*node{over, leaf(opPi), rational(big.NewRat(1, 2))}
	for _, k := range factors {
		base, e := k, int64(1)
		for base.op == opPow && base.kids[1].op == opNum && base.kids[1].num.IsInt() && base.kids[1].num.Num().IsInt64() {
			base, e = base.kids[0], e*base.kids[1].num.Num().Int64()
		}
		switch {
		case base.same(x):
			degree += e
		case base.op == opFunc && base.name == "sin" && argument == nil:
			argument, power = base.kids[0], e
		case !contains(k, x.name):
			rest = append(rest, k)
		default:
			return nil
		}
	}
	if argument == nil || degree != -power || power != 1 && power != 2 {
		return nil
	}
	p := polynomial(argument, x.name)
	if len(p) != 2 {
		return nil
	}
	if zero, ok := c.signOf(p[0]); !ok || zero != 0 {
		return nil
	}
	sign, ok := c.signOf(p[1])
	if !ok || sign == 0 {
		return nil
	}
	if power == 1 {
		return mul(append(rest, integer(int64(sign)))...)
	}
	return mul(append(rest, integer(int64(sign)), p[1])...)
}

// geometric sums c·b^(αk+β) from lo to hi. Without end, a constant ratio must be
// below 1 in size, and one with variables is taken to be.
func (c *comparer) geometric(n *node) *node {
	lo, hi, index := n.kids[0], n.kids[1], n.kids[2]
	if index.op != opSym || index.name == "" || lo.op == opEmpty || hi.op == opEmpty || hasOp(lo, opInf) {
		return nil
	}
	factors := []*node{n.kids[3]}
	if n.kids[3].op == opMul {
		factors = n.kids[3].kids
	}
	var first, ratio []*node
	for _, k := range factors {
		base, e := k, integer(1)
		for base.op == opPow {
			base, e = base.kids[0], mul(base.kids[1], e)
		}
		if !contains(k, index.name) {
			first = append(first, k)
			continue
		}
		p := polynomial(e, index.name)
		if contains(base, index.name) || len(p) != 2 {
			return nil
		}
		ratio = append(ratio, pow(base, p[1]))
		first = append(first, pow(base, add(p[0], mul(p[1], lo))))
	}
	if len(ratio) == 0 {
		return nil
	}
	r := mul(ratio...)
	if x, err := c.exact(r, nil); err == nil && x.Cmp(big.NewRat(1, 1)) == 0 {
		return nil
	}
	if hi.same(plusInf) {
		if len(symbolsOf(r)) == 0 {
			if s, ok := c.signOf(sub(integer(1), call("abs", r))); !ok || s <= 0 {
				return nil
			}
		}
		return div(mul(first...), sub(integer(1), r))
	}
	if hasOp(hi, opInf) || !hi.isExpr() {
		return nil
	}
	count := add(hi, neg(lo), integer(1))
	return div(mul(append(first, sub(integer(1), pow(r, count)))...), sub(integer(1), r))
}

// renamed gives the bound variables of sums, products, integrals and limits
// names that depend only on how they nest.
func renamed(n *node) *node {
	if !hasOp(n, opBig) {
		return n
	}
	levels := map[*node]int{}
	var level func(*node) int
	level = func(k *node) int {
		if l, ok := levels[k]; ok {
			return l
		}
		most := 0
		for _, kid := range k.kids {
			most = max(most, level(kid))
		}
		if k.op == opBig {
			most++
		}
		levels[k] = most
		return most
	}
	return n.rewrite(func(k *node) *node {
		at := boundAt(k)
		if at < 0 || k.kids[at].op != opSym || k.kids[at].name == "" {
			return k
		}
		from, to := k.kids[at].name, sym("bound "+string(rune('0'+min(level(k), 40))))
		m := *k
		m.kids = append([]*node(nil), k.kids...)
		m.kids[at] = to
		body := len(m.kids) - 1
		m.kids[body] = m.kids[body].rewrite(func(s *node) *node {
			if s.op == opSym && s.name == from {
				return to
			}
			return s
		})
		return seal(&m)
	})
}

// antiderivative compares an integral without bounds with an expression by
// differentiating the expression.
func (c *comparer) antiderivative(g, p *node) (result, bool) {
	n, other := g, p
	if n.op != opBig {
		n, other = p, g
	}
	if n.op != opBig || n.name != "int" || n.kids[0].op != opEmpty || n.kids[1].op != opEmpty || hasOp(other, opBig) || hasOp(n.kids[3], opBig) || c.nesting >= maxNesting {
		return result{}, false
	}
	d := derivative(other, n.kids[2].name)
	if d == nil {
		return undecided(MethodIdentity, "a derivative that is not known"), true
	}
	c.nesting++
	defer func() { c.nesting-- }()
	return c.expr(d, n.kids[3]), true
}
