package evaluation

import (
	"math/big"
	"slices"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// maxDegree bounds the polynomials that are integrated.
const maxDegree = 40

// Coefficients expands n as a polynomial in one variable, lowest power first.
func (b *Budget) Coefficients(n *expr.Node, name string, vars Env) ([]*big.Rat, error) {
	if err := b.Spend(4); err != nil {
		return nil, err
	}
	if n.Op == expr.OpSym && n.Name == name {
		return []*big.Rat{new(big.Rat), big.NewRat(1, 1)}, nil
	}
	if !n.Any(func(k *expr.Node) bool { return k.Op == expr.OpSym && k.Name == name }) {
		x, err := b.Exact(n, vars)
		if err != nil {
			return nil, err
		}
		return []*big.Rat{x}, nil
	}
	switch n.Op {
	case expr.OpAdd, expr.OpMul:
		var acc []*big.Rat
		for _, k := range n.Kids {
			c, err := b.Coefficients(k, name, vars)
			if err != nil {
				return nil, err
			}
			switch {
			case acc == nil:
				acc = c
			case n.Op == expr.OpAdd:
				acc = addPoly(acc, c)
			default:
				if acc = MulPoly(acc, c); acc == nil {
					return nil, errNotRational
				}
			}
		}
		return acc, nil
	case expr.OpPow:
		e, err := b.Exact(n.Kids[1], vars)
		if err != nil {
			return nil, err
		}
		if !e.IsInt() || e.Sign() < 0 || e.Cmp(big.NewRat(maxDegree, 1)) > 0 {
			return nil, errNotRational
		}
		base, err := b.Coefficients(n.Kids[0], name, vars)
		if err != nil {
			return nil, err
		}
		acc := []*big.Rat{big.NewRat(1, 1)}
		for range e.Num().Int64() {
			if acc = MulPoly(acc, base); acc == nil {
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

// MulPoly returns nil beyond maxDegree.
func MulPoly(a, b []*big.Rat) []*big.Rat {
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
func (b *Budget) exactIntegral(n *expr.Node, vars Env) (*big.Rat, error) {
	if n.Kids[0].Op == expr.OpEmpty || n.Kids[1].Op == expr.OpEmpty {
		return nil, errNotRational
	}
	lo, err := b.Exact(n.Kids[0], vars)
	if err != nil {
		return nil, err
	}
	hi, err := b.Exact(n.Kids[1], vars)
	if err != nil {
		return nil, err
	}
	c, err := b.Coefficients(n.Kids[3], n.Kids[2].Name, vars)
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
func (b *Budget) longSum(n *expr.Node, from, to int64, vars Env) (*big.Rat, error) {
	c, err := b.Coefficients(n.Kids[3], n.Kids[2].Name, vars)
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
	return acc, b.Spend(len(row) * len(row))
}

func isZero(n *expr.Node) bool { return n.Op == expr.OpNum && n.Long == "" && n.Num.Sign() == 0 }

// Derivative returns nil if it does not know the derivative, or if it is large.
func Derivative(n *expr.Node, x string) *expr.Node {
	if n.Size > expr.MaxBuilt {
		return nil
	}
	d := derive(n, x)
	if d == nil || d.Size > expr.MaxBuilt {
		return nil
	}
	return d
}

// sum and product leave out what changes nothing and put whole numbers together,
// so that high derivatives stay small.
func sum(terms []*expr.Node) *expr.Node {
	if len(terms) == 0 {
		return expr.Integer(0)
	}
	return expr.Add(terms...)
}

func product(factors []*expr.Node) *expr.Node {
	whole, rest := big.NewRat(1, 1), factors[:0:0]
	for _, f := range factors {
		parts := []*expr.Node{f}
		if f.Op == expr.OpMul {
			parts = f.Kids
		}
		for _, p := range parts {
			if p.Op == expr.OpNum && p.Long == "" && !p.Dec && whole.Num().BitLen() < 512 {
				whole.Mul(whole, p.Num)
			} else {
				rest = append(rest, p)
			}
		}
	}
	if whole.Cmp(big.NewRat(1, 1)) != 0 || len(rest) == 0 {
		rest = append([]*expr.Node{expr.Rational(whole)}, rest...)
	}
	return expr.Mul(rest...)
}

// lowered is base^(e-1).
func lowered(base, e *expr.Node) *expr.Node {
	if e.Op == expr.OpNum && e.Long == "" && !e.Dec {
		switch less := new(big.Rat).Sub(e.Num, big.NewRat(1, 1)); {
		case less.Sign() == 0:
			return expr.Integer(1)
		case less.Cmp(big.NewRat(1, 1)) == 0:
			return base
		default:
			return expr.Pow(base, expr.Rational(less))
		}
	}
	return expr.Pow(base, expr.Sub(e, expr.Integer(1)))
}

func derive(n *expr.Node, x string) *expr.Node {
	if !n.Any(func(k *expr.Node) bool { return k.Op == expr.OpSym && k.Name == x }) {
		if n.Op == expr.OpBig || n.Op == expr.OpFunc && n.Name[0] == '@' {
			return nil
		}
		return expr.Integer(0)
	}
	switch n.Op {
	case expr.OpSym:
		return expr.Integer(1)
	case expr.OpAdd:
		kids := make([]*expr.Node, len(n.Kids))
		for i, k := range n.Kids {
			if kids[i] = Derivative(k, x); kids[i] == nil {
				return nil
			}
		}
		return sum(slices.DeleteFunc(kids, isZero))
	case expr.OpMul:
		var terms []*expr.Node
		for i, k := range n.Kids {
			d := Derivative(k, x)
			if d == nil {
				return nil
			}
			if isZero(d) {
				continue
			}
			factors := append([]*expr.Node{d}, n.Kids[:i]...)
			terms = append(terms, product(append(factors, n.Kids[i+1:]...)))
		}
		return sum(terms)
	case expr.OpPow:
		base, e := n.Kids[0], n.Kids[1]
		db, de := Derivative(base, x), Derivative(e, x)
		if db == nil || de == nil {
			return nil
		}
		var terms []*expr.Node
		if !isZero(db) {
			terms = append(terms, product([]*expr.Node{e, lowered(base, e), db}))
		}
		if !isZero(de) {
			if base.Op == expr.OpE {
				terms = append(terms, expr.Mul(n, de))
			} else {
				terms = append(terms, expr.Mul(n, expr.Call("ln", base), de))
			}
		}
		return sum(terms)
	case expr.OpFunc:
		switch {
		case n.Name == "root" && len(n.Kids) == 2:
			return Derivative(expr.Pow(n.Kids[0], expr.Pow(n.Kids[1], expr.Integer(-1))), x)
		case n.Name == "logb" && len(n.Kids) == 2:
			return Derivative(expr.Div(expr.Call("ln", n.Kids[1]), expr.Call("ln", n.Kids[0])), x)
		case len(n.Kids) != 1:
			return nil
		}
		inner, d := n.Kids[0], Derivative(n.Kids[0], x)
		if d == nil {
			return nil
		}
		switch n.Name {
		case "sin":
			return expr.Mul(expr.Call("cos", inner), d)
		case "cos":
			return expr.Mul(expr.Integer(-1), expr.Call("sin", inner), d)
		case "tan":
			return expr.Mul(expr.Pow(expr.Call("cos", inner), expr.Integer(-2)), d)
		case "cot":
			return expr.Mul(expr.Integer(-1), expr.Pow(expr.Call("sin", inner), expr.Integer(-2)), d)
		case "sec":
			return expr.Mul(expr.Call("sec", inner), expr.Call("tan", inner), d)
		case "csc":
			return expr.Mul(expr.Integer(-1), expr.Call("csc", inner), expr.Call("cot", inner), d)
		case "sinh":
			return expr.Mul(expr.Call("cosh", inner), d)
		case "cosh":
			return expr.Mul(expr.Call("sinh", inner), d)
		case "tanh":
			return expr.Mul(expr.Pow(expr.Call("cosh", inner), expr.Integer(-2)), d)
		case "asin", "acos":
			r := expr.Div(d, expr.Call("root", expr.Sub(expr.Integer(1), expr.Pow(inner, expr.Integer(2))), expr.Integer(2)))
			if n.Name == "acos" {
				return expr.Neg(r)
			}
			return r
		case "atan":
			return expr.Div(d, expr.Add(expr.Integer(1), expr.Pow(inner, expr.Integer(2))))
		case "abs":
			return expr.Div(expr.Mul(inner, d), n)
		case "ln":
			if inner.Op == expr.OpFunc && inner.Name == "abs" { // ln|x|
				if d = Derivative(inner.Kids[0], x); d == nil {
					return nil
				}
				return expr.Div(d, inner.Kids[0])
			}
			return expr.Div(d, inner)
		}
	}
	return nil
}
