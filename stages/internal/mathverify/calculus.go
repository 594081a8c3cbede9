package mathverify

import "math/big"

// maxDegree bounds the polynomials that are integrated.
const maxDegree = 40

// coefficients expands n as a polynomial in one variable, lowest power first.
func (b *budget) coefficients(n *node, name string, vars env) ([]*big.Rat, error) {
	if err := b.spend(4); err != nil {
		return nil, err
	}
	if n.op == opSym && n.name == name {
		return []*big.Rat{new(big.Rat), big.NewRat(1, 1)}, nil
	}
	if !n.any(func(k *node) bool { return k.op == opSym && k.name == name }) {
		x, err := b.exact(n, vars)
		if err != nil {
			return nil, err
		}
		return []*big.Rat{x}, nil
	}
	switch n.op {
	case opAdd, opMul:
		var acc []*big.Rat
		for _, k := range n.kids {
			c, err := b.coefficients(k, name, vars)
			if err != nil {
				return nil, err
			}
			switch {
			case acc == nil:
				acc = c
			case n.op == opAdd:
				acc = addPoly(acc, c)
			default:
				if acc = mulPoly(acc, c); acc == nil {
					return nil, errNotRational
				}
			}
		}
		return acc, nil
	case opPow:
		e, err := b.exact(n.kids[1], vars)
		if err != nil {
			return nil, err
		}
		if !e.IsInt() || e.Sign() < 0 || e.Cmp(big.NewRat(maxDegree, 1)) > 0 {
			return nil, errNotRational
		}
		base, err := b.coefficients(n.kids[0], name, vars)
		if err != nil {
			return nil, err
		}
		acc := []*big.Rat{big.NewRat(1, 1)}
		for range e.Num().Int64() {
			if acc = mulPoly(acc, base); acc == nil {
				return nil, errNotRational
			}
		}
		return acc, nil
	}
	return nil, errNotRational
}

func addPoly(a, b []*big.Rat) []*big.Rat {
	if len(a) < len(b) {
		a, b = b, a
	}
	sum := append([]*big.Rat(nil), a...)
	for i, x := range b {
		sum[i] = new(big.Rat).Add(sum[i], x)
	}
	return sum
}

// mulPoly returns nil beyond maxDegree.
func mulPoly(a, b []*big.Rat) []*big.Rat {
	if len(a)+len(b) > maxDegree+2 {
		return nil
	}
	prod := make([]*big.Rat, len(a)+len(b)-1)
	for i := range prod {
		prod[i] = new(big.Rat)
	}
	for i, x := range a {
		for j, y := range b {
			prod[i+j].Add(prod[i+j], new(big.Rat).Mul(x, y))
		}
	}
	return prod
}

// exactIntegral integrates a polynomial between rational bounds.
func (b *budget) exactIntegral(n *node, vars env) (*big.Rat, error) {
	if n.kids[0].op == opEmpty || n.kids[1].op == opEmpty {
		return nil, errNotRational
	}
	lo, err := b.exact(n.kids[0], vars)
	if err != nil {
		return nil, err
	}
	hi, err := b.exact(n.kids[1], vars)
	if err != nil {
		return nil, err
	}
	c, err := b.coefficients(n.kids[3], n.kids[2].name, vars)
	if err != nil {
		return nil, err
	}
	value := func(x *big.Rat) *big.Rat {
		acc := new(big.Rat)
		for i := len(c) - 1; i >= 0; i-- {
			acc.Add(acc, new(big.Rat).Mul(c[i], big.NewRat(1, int64(i+1))))
			acc.Mul(acc, x)
		}
		return acc
	}
	return value(hi).Sub(value(hi), value(lo)), nil
}

// differentiate replaces d/dx of sums, products and powers by the derivative;
// other derivatives stay as they are.
func differentiate(n *node) *node {
	return n.rewrite(func(k *node) *node {
		if k.op != opBig || k.name != "diff" {
			return k
		}
		if d := derivative(k.kids[1], k.kids[0].name); d != nil {
			return d
		}
		return k
	})
}

func derivative(n *node, x string) *node {
	if !n.any(func(k *node) bool { return k.op == opSym && k.name == x }) {
		if n.op == opBig || n.op == opFunc && n.name[0] == '@' {
			return nil
		}
		return integer(0)
	}
	switch n.op {
	case opSym:
		return integer(1)
	case opAdd:
		kids := make([]*node, len(n.kids))
		for i, k := range n.kids {
			if kids[i] = derivative(k, x); kids[i] == nil {
				return nil
			}
		}
		return add(kids...)
	case opMul:
		var terms []*node
		for i, k := range n.kids {
			d := derivative(k, x)
			if d == nil {
				return nil
			}
			factors := append([]*node{d}, n.kids[:i]...)
			terms = append(terms, mul(append(factors, n.kids[i+1:]...)...))
		}
		return add(terms...)
	case opPow:
		base, e := n.kids[0], n.kids[1]
		db, de := derivative(base, x), derivative(e, x)
		if db == nil || de == nil {
			return nil
		}
		return add(mul(e, pow(base, sub(e, integer(1))), db), mul(n, call("ln", base), de))
	case opFunc:
		if len(n.kids) != 1 {
			return nil
		}
		inner, d := n.kids[0], derivative(n.kids[0], x)
		if d == nil {
			return nil
		}
		switch n.name {
		case "sin":
			return mul(call("cos", inner), d)
		case "cos":
			return mul(integer(-1), call("sin", inner), d)
		case "tan":
			return mul(pow(call("cos", inner), integer(-2)), d)
		case "ln":
			return div(d, inner)
		}
	}
	return nil
}
