package deciding

import (
	"math/big"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// close replaces integrals of polynomials, geometric sums, products of 1 … n and
// Dirichlet's integral by what they come to.
func (c *comparer) close(n *expr.Node) *expr.Node {
	if !expr.HasOp(n, expr.OpBig) {
		return n
	}
	return n.Rewrite(func(k *expr.Node) *expr.Node {
		if k.Op != expr.OpBig {
			return k
		}
		var closed *expr.Node
		switch k.Name {
		case "int":
			if closed = c.polynomialIntegral(k); closed == nil {
				closed = c.dirichlet(k)
			}
		case "sum":
			closed = c.geometric(k)
		case "prod":
			if one, err := c.Exact(k.Kids[0], nil); err == nil && one.Cmp(big.NewRat(1, 1)) == 0 && k.Kids[2].Op == expr.OpSym && k.Kids[3].Same(k.Kids[2]) &&
				k.Kids[1].IsExpr() && !expr.HasOp(k.Kids[1], expr.OpInf) {
				closed = expr.Call("fact", k.Kids[1])
			}
		}
		if closed == nil {
			return k
		}
		return closed
	})
}

func contains(n *expr.Node, name string) bool {
	return n.Any(func(k *expr.Node) bool { return k.Op == expr.OpSym && k.Name == name })
}

// polynomial writes n as a polynomial in one variable with coefficients that
// are free of it, lowest power first; nil if it is none of low degree.
func polynomial(n *expr.Node, name string) []*expr.Node {
	if n.Op == expr.OpSym && n.Name == name {
		return []*expr.Node{expr.Integer(0), expr.Integer(1)}
	}
	if !contains(n, name) {
		return []*expr.Node{n}
	}
	switch n.Op {
	case expr.OpAdd:
		var acc []*expr.Node
		for _, k := range n.Kids {
			p := polynomial(k, name)
			if p == nil {
				return nil
			}
			for i, x := range p {
				if i < len(acc) {
					acc[i] = expr.Add(acc[i], x)
				} else {
					acc = append(acc, x)
				}
			}
		}
		return acc
	case expr.OpMul:
		acc := []*expr.Node{expr.Integer(1)}
		for _, k := range n.Kids {
			if acc = polynomialProduct(acc, polynomial(k, name)); acc == nil {
				return nil
			}
		}
		return acc
	case expr.OpPow:
		e := n.Kids[1]
		if e.Op != expr.OpNum || e.Long != "" || !e.Num.IsInt() || e.Num.Sign() <= 0 || e.Num.Num().BitLen() > 10 {
			return nil
		}
		base, acc := polynomial(n.Kids[0], name), []*expr.Node{expr.Integer(1)}
		if k := int(e.Num.Num().Int64()); len(base) == 2 && base[0].Op == expr.OpNum && base[0].Num.Sign() == 0 && k <= 1000 { // (ax)^k
			acc = make([]*expr.Node, k+1)
			for i := range acc {
				acc[i] = expr.Integer(0)
			}
			acc[k] = expr.Pow(base[1], e)
			return acc
		}
		for range e.Num.Num().Int64() {
			if acc = polynomialProduct(acc, base); acc == nil {
				return nil
			}
		}
		return acc
	}
	return nil
}

func polynomialProduct(a, b []*expr.Node) []*expr.Node {
	if a == nil || b == nil || len(a)+len(b) > 24 && len(a) > 1 && len(b) > 1 {
		return nil
	}
	acc := make([]*expr.Node, len(a)+len(b)-1)
	for i, x := range a {
		for j, y := range b {
			if acc[i+j] == nil {
				acc[i+j] = expr.Mul(x, y)
			} else {
				acc[i+j] = expr.Add(acc[i+j], expr.Mul(x, y))
			}
			if acc[i+j].Size > expr.MaxBuilt {
				return nil
			}
		}
	}
	return acc
}

func (c *comparer) polynomialIntegral(n *expr.Node) *expr.Node {
	lo, hi := n.Kids[0], n.Kids[1]
	if lo.Op == expr.OpEmpty || hi.Op == expr.OpEmpty || expr.HasOp(lo, expr.OpInf) || expr.HasOp(hi, expr.OpInf) || !lo.IsExpr() || !hi.IsExpr() {
		return nil
	}
	p := polynomial(n.Kids[3], n.Kids[2].Name)
	if p == nil || c.Spend(len(p)) != nil {
		return nil
	}
	var terms []*expr.Node
	for i, x := range p {
		if x.Op == expr.OpNum && x.Num.Sign() == 0 && x.Long == "" {
			continue
		}
		k := expr.Integer(int64(i + 1))
		terms = append(terms, expr.Mul(x, expr.Pow(k, expr.Integer(-1)), expr.Sub(expr.Pow(hi, k), expr.Pow(lo, k))))
	}
	if len(terms) == 0 {
		return expr.Integer(0)
	}
	return expr.Add(terms...)
}

// dirichlet knows the integrals of sin(ax)/x and sin²(ax)/x² over the positive
// numbers and over all.
func (c *comparer) dirichlet(n *expr.Node) *expr.Node {
	if !n.Kids[1].Same(expr.PlusInf) {
		return nil
	}
	over := expr.Integer(1)
	switch lo := n.Kids[0]; {
	case lo.Same(expr.MinusInf):
		over = expr.Integer(2)
	case lo.Op != expr.OpNum || lo.Num.Sign() != 0:
		return nil
	}
	x := n.Kids[2]
	factors := []*expr.Node{n.Kids[3]}
	if n.Kids[3].Op == expr.OpMul {
		factors = n.Kids[3].Kids
	}
	degree, power := int64(0), int64(0)
	var argument *expr.Node
	rest := []*expr.Node{over, expr.Leaf(expr.OpPi), expr.Rational(big.NewRat(1, 2))}
	for _, k := range factors {
		base, e := k, int64(1)
		for base.Op == expr.OpPow && base.Kids[1].Op == expr.OpNum && base.Kids[1].Num.IsInt() && base.Kids[1].Num.Num().IsInt64() {
			base, e = base.Kids[0], e*base.Kids[1].Num.Num().Int64()
		}
		switch {
		case base.Same(x):
			degree += e
		case base.Op == expr.OpFunc && base.Name == "sin" && argument == nil:
			argument, power = base.Kids[0], e
		case !contains(k, x.Name):
			rest = append(rest, k)
		default:
			return nil
		}
	}
	if argument == nil || degree != -power || power != 1 && power != 2 {
		return nil
	}
	p := polynomial(argument, x.Name)
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
		return expr.Mul(append(rest, expr.Integer(int64(sign)))...)
	}
	return expr.Mul(append(rest, expr.Integer(int64(sign)), p[1])...)
}

// geometric sums c·b^(αk+β) from lo to hi. Without end, a constant ratio must be
// below 1 in size, and one with variables is taken to be.
func (c *comparer) geometric(n *expr.Node) *expr.Node {
	lo, hi, index := n.Kids[0], n.Kids[1], n.Kids[2]
	if index.Op != expr.OpSym || index.Name == "" || lo.Op == expr.OpEmpty || hi.Op == expr.OpEmpty || expr.HasOp(lo, expr.OpInf) {
		return nil
	}
	factors := []*expr.Node{n.Kids[3]}
	if n.Kids[3].Op == expr.OpMul {
		factors = n.Kids[3].Kids
	}
	var first, ratio []*expr.Node
	for _, k := range factors {
		base, e := k, expr.Integer(1)
		for base.Op == expr.OpPow {
			base, e = base.Kids[0], expr.Mul(base.Kids[1], e)
		}
		if !contains(k, index.Name) {
			first = append(first, k)
			continue
		}
		p := polynomial(e, index.Name)
		if contains(base, index.Name) || len(p) != 2 {
			return nil
		}
		ratio = append(ratio, expr.Pow(base, p[1]))
		first = append(first, expr.Pow(base, expr.Add(p[0], expr.Mul(p[1], lo))))
	}
	if len(ratio) == 0 {
		return nil
	}
	r := expr.Mul(ratio...)
	if x, err := c.Exact(r, nil); err == nil && x.Cmp(big.NewRat(1, 1)) == 0 {
		return nil
	}
	if hi.Same(expr.PlusInf) {
		if len(expr.SymbolsOf(r)) == 0 {
			if s, ok := c.signOf(expr.Sub(expr.Integer(1), expr.Call("abs", r))); !ok || s <= 0 {
				return nil
			}
		}
		return expr.Div(expr.Mul(first...), expr.Sub(expr.Integer(1), r))
	}
	if expr.HasOp(hi, expr.OpInf) || !hi.IsExpr() {
		return nil
	}
	count := expr.Add(hi, expr.Neg(lo), expr.Integer(1))
	return expr.Div(expr.Mul(append(first, expr.Sub(expr.Integer(1), expr.Pow(r, count)))...), expr.Sub(expr.Integer(1), r))
}

// renamed gives the bound variables of sums, products, integrals and limits
// names that depend only on how they nest.
func renamed(n *expr.Node) *expr.Node {
	if !expr.HasOp(n, expr.OpBig) {
		return n
	}
	levels := map[*expr.Node]int{}
	var level func(*expr.Node) int
	level = func(k *expr.Node) int {
		if l, ok := levels[k]; ok {
			return l
		}
		most := 0
		for _, kid := range k.Kids {
			most = max(most, level(kid))
		}
		if k.Op == expr.OpBig {
			most++
		}
		levels[k] = most
		return most
	}
	return n.Rewrite(func(k *expr.Node) *expr.Node {
		at := evaluation.BoundAt(k)
		if at < 0 || k.Kids[at].Op != expr.OpSym || k.Kids[at].Name == "" {
			return k
		}
		from, to := k.Kids[at].Name, expr.Sym("bound "+string(rune('0'+min(level(k), 40))))
		m := *k
		m.Kids = append([]*expr.Node(nil), k.Kids...)
		m.Kids[at] = to
		body := len(m.Kids) - 1
		m.Kids[body] = m.Kids[body].Rewrite(func(s *expr.Node) *expr.Node {
			if s.Op == expr.OpSym && s.Name == from {
				return to
			}
			return s
		})
		return expr.Seal(&m)
	})
}

// antiderivative compares an integral without bounds with an expression by
// differentiating the expression.
func (c *comparer) antiderivative(g, p *expr.Node) (result, bool) {
	n, other := g, p
	if n.Op != expr.OpBig {
		n, other = p, g
	}
	if n.Op != expr.OpBig || n.Name != "int" || n.Kids[0].Op != expr.OpEmpty || n.Kids[1].Op != expr.OpEmpty || expr.HasOp(other, expr.OpBig) || expr.HasOp(n.Kids[3], expr.OpBig) || c.nesting >= maxNesting {
		return result{}, false
	}
	d := evaluation.Derivative(other, n.Kids[2].Name)
	if d == nil {
		return undecided(MethodIdentity, "a derivative that is not known"), true
	}
	c.nesting++
	defer func() { c.nesting-- }()
	return c.expr(d, n.Kids[3]), true
}
