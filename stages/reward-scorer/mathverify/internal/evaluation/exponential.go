package evaluation

import (
	"errors"
	"math/big"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// part is one term of an exponent or an angle: a rational number times what is
// left, or times 1, π or i.
type part struct {
	factor   *big.Rat
	rest     []*expr.Node // of the product, without rational factors, π and i
	pi, i    bool
	unfolded bool // the rest holds more than variables
}

const maxParts = 24

// parts splits a sum of products; ok is false if it is too long or odd.
func (f *Field) parts(n *expr.Node, by *big.Rat, out []part) ([]part, error) {
	if len(out) >= maxParts {
		return nil, errOpaque
	}
	switch n.Op {
	case expr.OpAdd:
		var err error
		for _, k := range n.Kids {
			if out, err = f.parts(k, by, out); err != nil {
				return nil, err
			}
		}
		return out, nil
	case expr.OpDeg:
		return f.parts(n.Kids[0], by, out)
	}
	factors := []*expr.Node{n}
	if n.Op == expr.OpMul {
		factors = n.Kids
	}
	p := part{factor: by}
	var sum *expr.Node
	for _, k := range factors {
		r, err := f.Exact(k, nil)
		switch {
		case errors.Is(err, ErrSteps):
			return nil, err
		case err == nil:
			p.factor = new(big.Rat).Mul(p.factor, r)
		case k.Op == expr.OpPi && !p.pi:
			p.pi = true
		case k.Op == expr.OpI && !p.i:
			p.i = true
		case k.Op == expr.OpAdd && sum == nil:
			sum = k
		default:
			p.unfolded = p.unfolded || !plainVariable(k)
			p.rest = append(p.rest, k)
		}
	}
	if sum == nil {
		return append(out, p), nil
	}
	if len(p.rest) > 0 {
		p.unfolded = true
		p.rest = append(p.rest, sum)
		return append(out, p), nil
	}
	from := len(out)
	out, err := f.parts(sum, p.factor, out)
	if err != nil {
		return nil, err
	}
	for j := from; j < len(out); j++ {
		if p.pi && out[j].pi || p.i && out[j].i {
			return nil, errOpaque
		}
		out[j].pi, out[j].i = out[j].pi || p.pi, out[j].i || p.i
	}
	return out, nil
}

// plainVariable: x, or a whole power of x.
func plainVariable(n *expr.Node) bool {
	return n.Op == expr.OpSym || n.Op == expr.OpPow && n.Kids[0].Op == expr.OpSym && n.Kids[1].Op == expr.OpNum && n.Kids[1].Num.IsInt()
}

// exponential is e^n.
func (f *Field) exponential(n *expr.Node) (elem, error) {
	f.Beyond = true
	list, err := f.parts(n, big.NewRat(1, 1), nil)
	if err != nil {
		return elem{}, err
	}
	acc := elem{re: 1}
	for _, p := range list {
		v, err := f.unit(p)
		if err != nil {
			return elem{}, err
		}
		acc = f.mul(acc, v)
	}
	return acc, nil
}

// unit is e^p.
func (f *Field) unit(p part) (elem, error) {
	if p.factor.Sign() == 0 {
		return elem{re: 1}, nil
	}
	if p.i && p.pi && len(p.rest) == 0 {
		return f.rootOfUnity(p.factor)
	}
	k := new(big.Rat).Mul(p.factor, big.NewRat(scale, 1))
	if !k.IsInt() || !k.Num().IsInt64() {
		return elem{}, errOpaque
	}
	m := elem{re: 1}
	for _, r := range p.rest {
		v, err := f.Value(r)
		if err != nil {
			return elem{}, err
		}
		m = f.mul(m, v)
	}
	f.Met = f.Met || p.unfolded
	if len(p.rest) == 0 {
		f.E = true
		f.Pi = f.Pi || p.pi
	}
	name := "exp"
	if p.pi {
		name = "exp pi"
	}
	t := f.named(name, m)
	if p.i {
		// (1+it)/(1-it) has norm 1.
		t.im, t.re = t.re, 1
		inv, err := f.inv(elem{re: t.re, im: f.neg64(t.im)})
		if err != nil {
			return elem{}, err
		}
		t = f.mul(t, inv)
	}
	return f.powInt(t, k.Num().Int64())
}

// rootOfUnity is e^(iπr) for r with a denominator that divides 12.
func (f *Field) rootOfUnity(r *big.Rat) (elem, error) {
	k := new(big.Rat).Mul(r, big.NewRat(12, 1))
	if !k.IsInt() {
		return elem{}, errOpaque
	}
	turn := new(big.Int).Mod(k.Num(), big.NewInt(24)).Int64() // in 24ths of the circle
	half := elem{re: f.inv64(2)}
	acc := elem{re: 1}
	// Of order 3, 8: k/24 = a/3 + b/8 with a = 2k, b = 3k modulo these.
	if a := 2 * turn % 3; a > 0 {
		root, err := f.primeRoot(3, 2, 1, true)
		if err != nil {
			return elem{}, err
		}
		w := f.mul(half, f.add(f.neg(elem{re: 1}), f.mul(elem{im: 1}, root)))
		acc = f.pow(w, uint64(a))
	}
	if b := 3 * turn % 8; b > 0 {
		root, err := f.primeRoot(2, 2, 1, true)
		if err != nil {
			return elem{}, err
		}
		w := f.mul(half, f.mul(root, elem{re: 1, im: 1}))
		if b%2 == 0 {
			w, b = elem{im: 1}, b/2
		}
		acc = f.mul(acc, f.pow(w, uint64(b)))
	}
	return acc, nil
}

// circular evaluates the trigonometric and hyperbolic functions by e^(ix) and
// e^x.
func (f *Field) circular(n *expr.Node) (elem, error) {
	name, x := n.Name, n.Kids[0]
	hyperbolic := name[len(name)-1] == 'h'
	if !hyperbolic {
		x = expr.Mul(expr.Leaf(expr.OpI), x)
	} else {
		name = name[:len(name)-1]
	}
	p, err := f.exponential(x)
	if err != nil {
		return elem{}, err
	}
	m, err := f.inv(p)
	if err != nil {
		return elem{}, err
	}
	half := elem{re: f.inv64(2)}
	c := f.mul(half, f.add(p, m))
	s := f.mul(half, f.add(p, f.neg(m)))
	if !hyperbolic {
		s = f.mul(s, elem{im: f.neg64(1)})
	}
	quotient := func(a, b elem) (elem, error) {
		i, err := f.inv(b)
		return f.mul(a, i), err
	}
	switch name {
	case "sin":
		return s, nil
	case "cos":
		return c, nil
	case "tan":
		return quotient(s, c)
	case "cot":
		return quotient(c, s)
	case "sec":
		return f.inv(c)
	}
	return f.inv(s)
}

// symbolicPower is base^n for an exponent with variables, whose factors must be
// whole. The base is e, a positive rational number or one variable.
func (f *Field) symbolicPower(base, n *expr.Node) (elem, error) {
	if base.Op == expr.OpE {
		return f.exponential(n)
	}
	var whole *big.Rat
	if base.Op != expr.OpSym {
		r, err := f.Exact(base, nil)
		if err != nil {
			return elem{}, errOpaque
		}
		if r.Sign() <= 0 || !r.Num().IsInt64() || !r.Denom().IsInt64() || r.Num().BitLen() > 40 || r.Denom().BitLen() > 40 {
			return elem{}, errOpaque
		}
		whole = r
	}
	list, err := f.parts(n, big.NewRat(1, 1), nil)
	if err != nil {
		return elem{}, err
	}
	acc := elem{re: 1}
	for _, p := range list {
		if p.i || !p.factor.IsInt() || !p.factor.Num().IsInt64() || p.factor.Num().BitLen() > 50 {
			return elem{}, errOpaque
		}
		k := p.factor.Num().Int64()
		m := elem{re: 1}
		for _, r := range p.rest {
			v, err := f.Value(r)
			if err != nil {
				return elem{}, err
			}
			m = f.mul(m, v)
		}
		f.Met = f.Met || p.unfolded || p.pi
		constant := len(p.rest) == 0 && !p.pi
		if p.pi {
			m = f.mul(m, elem{re: f.unknown(opPiHash, opPiHash)})
		}
		to := func(b elem, name string, times int64) error {
			if !constant {
				b = f.named(name, f.mul(m, f.named("of", b)))
			}
			v, err := f.powInt(b, k*times)
			acc = f.mul(acc, v)
			return err
		}
		if whole == nil {
			b, err := f.Value(base)
			if err == nil {
				err = to(b, "power", 1)
			}
			if err != nil {
				return elem{}, err
			}
			continue
		}
		for _, side := range [2]struct {
			value uint64
			sign  int64
		}{{whole.Num().Uint64(), 1}, {whole.Denom().Uint64(), -1}} {
			var failed error
			Factor(side.value, func(prime uint64, count int64, certain bool) {
				if !certain {
					f.Met = true
				}
				if failed == nil {
					failed = to(elem{re: prime % f.p}, "power", count*side.sign)
				}
			})
			if failed != nil {
				return elem{}, failed
			}
		}
	}
	return acc, nil
}

const opPiHash = 0x3243f6a8885a308d
