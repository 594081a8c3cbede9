package mathverify

import (
	"math/big"
	"slices"
)

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

// longSum adds up a polynomial over a range of any length by Newton's forward
// differences: the sum over j of Δ^j f(from) C(count, j+1).
func (b *budget) longSum(n *node, from, to int64, vars env) (*big.Rat, error) {
	c, err := b.coefficients(n.kids[3], n.kids[2].name, vars)
	if err != nil {
		return nil, err
	}
	row := make([]*big.Rat, len(c))
	for i := range row {
		x := big.NewRat(from+int64(i), 1)
		y := new(big.Rat)
		for j := len(c) - 1; j >= 0; j-- {
			y.Add(y.Mul(y, x), c[j])
		}
		row[i] = y
	}
	acc, choose := new(big.Rat), big.NewInt(1)
	count := big.NewInt(to - from + 1)
	for j := range row {
		choose.Mul(choose, new(big.Int).Sub(count, big.NewInt(int64(j))))
		choose.Quo(choose, big.NewInt(int64(j+1)))
		acc.Add(acc, new(big.Rat).Mul(row[0], new(big.Rat).SetInt(choose)))
		for i := 0; i+1 < len(row)-j; i++ {
			row[i] = new(big.Rat).Sub(row[i+1], row[i])
		}
	}
	return acc, b.spend(len(row) * len(row))
}

// differentiate replaces d/dx of sums, products and powers by the derivative;
// other derivatives stay as they are.
func (c *comparer) differentiate(n *node) *node {
	return n.rewrite(func(k *node) *node {
		if k.op != opBig || k.name != "diff" || c.spend(int(k.size)) != nil {
			return k
		}
		if d := derivative(k.kids[1], k.kids[0].name); d != nil {
			return d
		}
		return k
	})
}

func isZero(n *node) bool { return n.op == opNum && n.long == "" && n.num.Sign() == 0 }

// derivative returns nil if it does not know the derivative, or if it is large.
func derivative(n *node, x string) *node {
	if n.size > maxBuilt {
		return nil
	}
	d := derive(n, x)
	if d == nil || d.size > maxBuilt {
		return nil
	}
	return d
}

// sum and product leave out what changes nothing and put whole numbers together,
// so that high derivatives stay small.
func sum(terms []*node) *node {
	if len(terms) == 0 {
		return integer(0)
	}
	return add(terms...)
}

func product(factors []*node) *node {
	whole, rest := big.NewRat(1, 1), factors[:0:0]
	for _, f := range factors {
		parts := []*node{f}
		if f.op == opMul {
			parts = f.kids
		}
		for _, p := range parts {
			if p.op == opNum && p.long == "" && !p.dec && whole.Num().BitLen() < 512 {
				whole.Mul(whole, p.num)
			} else {
				rest = append(rest, p)
			}
		}
	}
	if whole.Cmp(big.NewRat(1, 1)) != 0 || len(rest) == 0 {
		rest = append([]*node{rational(whole)}, rest...)
	}
	return mul(rest...)
}

// lowered is base^(e-1).
func lowered(base, e *node) *node {
	if e.op == opNum && e.long == "" && !e.dec {
		switch less := new(big.Rat).Sub(e.num, big.NewRat(1, 1)); {
		case less.Sign() == 0:
			return integer(1)
		case less.Cmp(big.NewRat(1, 1)) == 0:
			return base
		default:
			return pow(base, rational(less))
		}
	}
	return pow(base, sub(e, integer(1)))
}

func derive(n *node, x string) *node {
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
		return sum(slices.DeleteFunc(kids, isZero))
	case opMul:
		var terms []*node
		for i, k := range n.kids {
			d := derivative(k, x)
			if d == nil {
				return nil
			}
			if isZero(d) {
				continue
			}
			factors := append([]*node{d}, n.kids[:i]...)
			terms = append(terms, product(append(factors, n.kids[i+1:]...)))
		}
		return sum(terms)
	case opPow:
		base, e := n.kids[0], n.kids[1]
		db, de := derivative(base, x), derivative(e, x)
		if db == nil || de == nil {
			return nil
		}
		var terms []*node
		if !isZero(db) {
			terms = append(terms, product([]*node{e, lowered(base, e), db}))
		}
		if !isZero(de) {
			if base.op == opE {
				terms = append(terms, mul(n, de))
			} else {
				terms = append(terms, mul(n, call("ln", base), de))
			}
		}
		return sum(terms)
	case opFunc:
		switch {
		case n.name == "root" && len(n.kids) == 2:
			return derivative(pow(n.kids[0], pow(n.kids[1], integer(-1))), x)
		case n.name == "logb" && len(n.kids) == 2:
			return derivative(div(call("ln", n.kids[1]), call("ln", n.kids[0])), x)
		case len(n.kids) != 1:
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
		case "cot":
			return mul(integer(-1), pow(call("sin", inner), integer(-2)), d)
		case "sec":
			return mul(call("sec", inner), call("tan", inner), d)
		case "csc":
			return mul(integer(-1), call("csc", inner), call("cot", inner), d)
		case "sinh":
			return mul(call("cosh", inner), d)
		case "cosh":
			return mul(call("sinh", inner), d)
		case "tanh":
			return mul(pow(call("cosh", inner), integer(-2)), d)
		case "asin", "acos":
			r := div(d, call("root", sub(integer(1), pow(inner, integer(2))), integer(2)))
			if n.name == "acos" {
				return neg(r)
			}
			return r
		case "atan":
			return div(d, add(integer(1), pow(inner, integer(2))))
		case "abs":
			return div(mul(inner, d), n)
		case "ln":
			if inner.op == opFunc && inner.name == "abs" { // ln|x|
				if d = derivative(inner.kids[0], x); d == nil {
					return nil
				}
				return div(d, inner.kids[0])
			}
			return div(d, inner)
		}
	}
	return nil
}
