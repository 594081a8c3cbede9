package mathverify

import (
	"math/big"
	"strconv"
	"strings"
)

// cball is a complex number; real says that the imaginary part is exactly 0.
type cball struct {
	re, im ball
	real   bool
}

func (a *arith) realBall(x ball) cball { return cball{re: x, im: a.small(0), real: true} }

func (a *arith) cadd(x, y cball) cball {
	z := cball{re: a.add(x.re, y.re), real: x.real && y.real}
	if z.real {
		z.im = x.im
		return z
	}
	z.im = a.add(x.im, y.im)
	return z
}

func (x cball) cneg() cball { return cball{re: x.re.neg(), im: x.im.neg(), real: x.real} }

func (a *arith) cmul(x, y cball) (cball, error) {
	if x.real && y.real {
		re, err := a.mul(x.re, y.re)
		return cball{re: re, im: x.im, real: true}, err
	}
	var p [4]ball
	for i, f := range [4][2]ball{{x.re, y.re}, {x.im, y.im}, {x.re, y.im}, {x.im, y.re}} {
		v, err := a.mul(f[0], f[1])
		if err != nil {
			return cball{}, err
		}
		p[i] = v
	}
	z := cball{re: a.sub(p[0], p[1]), im: a.add(p[2], p[3])}
	z.real = z.im.exactZero()
	return z, nil
}

func (a *arith) norm2(x cball) (ball, error) {
	r, err := a.mul(x.re, x.re)
	if err != nil {
		return ball{}, err
	}
	i, err := a.mul(x.im, x.im)
	if err != nil {
		return ball{}, err
	}
	return a.add(r, i), nil
}

func (a *arith) cinv(x cball) (cball, error) {
	if x.real {
		re, err := a.inv(x.re)
		return cball{re: re, im: x.im, real: true}, err
	}
	n, err := a.norm2(x)
	if err != nil {
		return cball{}, err
	}
	re, err := a.div(x.re, n)
	if err != nil {
		return cball{}, err
	}
	im, err := a.div(x.im.neg(), n)
	return cball{re: re, im: im}, err
}

func (a *arith) cabs(x cball) (cball, error) {
	if x.real {
		return a.realBall(a.abs(x.re)), nil
	}
	n, err := a.norm2(x)
	if err != nil {
		return cball{}, err
	}
	r, err := a.sqrt(n)
	return a.realBall(r), err
}

func (a *arith) cexp(x cball) (cball, error) {
	e, err := a.exp(x.re)
	if err != nil || x.real {
		return a.realBall(e), err
	}
	s, c, err := a.sincos(x.im)
	if err != nil {
		return cball{}, err
	}
	re, err := a.mul(e, c)
	if err != nil {
		return cball{}, err
	}
	im, err := a.mul(e, s)
	return cball{re: re, im: im}, err
}

// arg is the principal argument; the ball must not touch the negative axis.
func (a *arith) arg(x cball) (ball, error) {
	half := a.piBall()
	half = ball{a.new().SetMantExp(half.mid, -1), half.rad}
	if x.real {
		switch x.re.sign() {
		case 1:
			return a.small(0), nil
		case -1:
			return a.piBall(), nil
		}
		return ball{}, errPrecision
	}
	if x.re.sign() > 0 {
		t, err := a.div(x.im, x.re)
		if err != nil {
			return ball{}, err
		}
		return a.atan(t)
	}
	s := x.im.sign()
	if s == 0 {
		return ball{}, errPrecision
	}
	t, err := a.div(x.re, x.im)
	if err != nil {
		return ball{}, err
	}
	t, err = a.atan(t)
	if err != nil {
		return ball{}, err
	}
	if s > 0 {
		return a.sub(half, t), nil
	}
	return a.sub(half.neg(), t), nil
}

func (a *arith) clog(x cball) (cball, error) {
	if x.real && x.re.sign() > 0 {
		l, err := a.log(x.re)
		return a.realBall(l), err
	}
	m, err := a.cabs(x)
	if err != nil {
		return cball{}, err
	}
	re, err := a.log(m.re)
	if err != nil {
		return cball{}, err
	}
	im, err := a.arg(x)
	return cball{re: re, im: im}, err
}

// power of an integer by repeated squaring.
func (a *arith) intPower(x cball, k int64) (cball, error) {
	m := max(k, -k)
	acc := a.realBall(a.small(1))
	for {
		if m&1 == 1 {
			v, err := a.cmul(acc, x)
			if err != nil {
				return cball{}, err
			}
			acc = v
		}
		if m >>= 1; m == 0 {
			break
		}
		if err := a.spend(2); err != nil {
			return cball{}, err
		}
		v, err := a.cmul(x, x)
		if err != nil {
			return cball{}, err
		}
		x = v
	}
	if k < 0 {
		return a.cinv(acc)
	}
	return acc, nil
}

// numeric evaluates expressions with balls. In real mode a part that leaves
// the real numbers makes the whole undefined.
type numeric struct {
	*arith
	complex  bool
	estimate bool // integrals, infinite sums and limits are estimated
	vars     env
}

func (v *numeric) eval(n *node) (cball, error) {
	if err := v.spend(8); err != nil {
		return cball{}, err
	}
	switch n.op {
	case opNum:
		if n.long != "" {
			b, err := v.long(n.long)
			return v.realBall(b), err
		}
		return v.realBall(v.rat(n.num)), nil
	case opSym:
		if r := v.vars[n.name]; r != nil {
			return v.realBall(v.rat(r)), nil
		}
		return cball{}, errUnknown
	case opPi:
		return v.realBall(v.piBall()), nil
	case opE:
		e, err := v.exp(v.small(1))
		return v.realBall(e), err
	case opI:
		if !v.complex {
			return cball{}, errNotReal
		}
		return cball{re: v.small(0), im: v.small(1)}, nil
	case opAdd:
		acc := v.realBall(v.small(0))
		for _, k := range n.kids {
			x, err := v.eval(k)
			if err != nil {
				return cball{}, err
			}
			acc = v.cadd(acc, x)
		}
		return acc, nil
	case opMul:
		acc := v.realBall(v.small(1))
		for _, k := range n.kids {
			x, err := v.eval(k)
			if err != nil {
				return cball{}, err
			}
			if acc, err = v.cmul(acc, x); err != nil {
				return cball{}, err
			}
		}
		return acc, nil
	case opPow:
		return v.power(n)
	case opPercent:
		x, err := v.eval(n.kids[0])
		if err != nil {
			return cball{}, err
		}
		return v.cmul(x, v.realBall(v.rat(big.NewRat(1, 100))))
	case opDeg:
		return v.eval(n.kids[0])
	case opRatio:
		if len(n.kids) == 2 {
			return v.eval(div(n.kids[0], n.kids[1]))
		}
	case opBased:
		r, err := exactBased(n)
		if err != nil {
			return cball{}, errUnknown
		}
		return v.realBall(v.rat(r)), nil
	case opFunc:
		return v.function(n)
	case opBig:
		return v.series(n)
	}
	return cball{}, errUnknown
}

// long is the ball of a literal too long to write out: its first thousand
// digits.
func (v *numeric) long(text string) (ball, error) {
	whole, fraction, _ := strings.Cut(strings.TrimLeft(text, "0"), ".")
	digits, scale := whole+fraction, len(whole)
	if whole == "" {
		digits = strings.TrimLeft(fraction, "0")
		scale = len(digits) - len(fraction)
	}
	if strings.Contains(text, "e") || digits == "" {
		return ball{}, errUnknown
	}
	cut := min(len(digits), 1000)
	m, ok := v.new().SetString(digits[:cut] + "e" + strconv.Itoa(scale-cut))
	if !ok {
		return ball{}, errUnknown
	}
	rad := newRad().Abs(m)
	rad.SetMantExp(rad, -3300) // below 10^-993, and so above the digits cut off
	return v.check(ball{m, widen(rad, v.ulp(m))})
}

func (v *numeric) power(n *node) (cball, error) {
	e, exactErr := v.exact(n.kids[1], v.vars)
	if n.kids[0].op == opE && exactErr != nil {
		x, err := v.eval(n.kids[1])
		if err != nil {
			return cball{}, err
		}
		return v.cexp(x)
	}
	x, err := v.eval(n.kids[0])
	if err != nil {
		return cball{}, err
	}
	if exactErr == nil {
		if e.Sign() == 0 {
			return v.realBall(v.small(1)), nil
		}
		if x.real && x.re.exactZero() {
			if e.Sign() < 0 {
				return cball{}, errUndefined
			}
			return x, nil
		}
		if e.IsInt() && e.Num().BitLen() <= 24 {
			return v.intPower(x, e.Num().Int64())
		}
		if !e.IsInt() && e.Denom().BitLen() <= 20 && e.Num().BitLen() <= 20 {
			r, err := v.rootOf(x, e.Denom().Int64())
			if err != nil {
				return cball{}, err
			}
			return v.intPower(r, e.Num().Int64())
		}
	}
	y, err := v.eval(n.kids[1])
	if err != nil {
		return cball{}, err
	}
	if !v.complex && x.re.sign() < 0 {
		return cball{}, errNotReal
	}
	if x.real && x.re.exactZero() {
		if y.re.sign() > 0 {
			return x, nil
		}
		return cball{}, errUndefined
	}
	l, err := v.clog(x)
	if err != nil {
		return cball{}, err
	}
	if l, err = v.cmul(l, y); err != nil {
		return cball{}, err
	}
	return v.cexp(l)
}

// rootOf is the principal root; odd roots of negative numbers are real in real
// mode.
func (v *numeric) rootOf(x cball, n int64) (cball, error) {
	if x.real && x.re.exactZero() {
		return x, nil
	}
	if x.real && x.re.sign() > 0 {
		if n == 2 {
			r, err := v.sqrt(x.re)
			return v.realBall(r), err
		}
		l, err := v.log(x.re)
		if err != nil {
			return cball{}, err
		}
		if l, err = v.mul(l, v.rat(big.NewRat(1, n))); err != nil {
			return cball{}, err
		}
		e, err := v.exp(l)
		return v.realBall(e), err
	}
	if x.real && x.re.sign() < 0 && n%2 == 1 {
		r, err := v.rootOf(x.cneg(), n)
		return r.cneg(), err
	}
	if x.real && x.re.sign() == 0 {
		return cball{}, errPrecision
	}
	if !v.complex {
		return cball{}, errNotReal
	}
	l, err := v.clog(x)
	if err != nil {
		return cball{}, err
	}
	if l, err = v.cmul(l, v.realBall(v.rat(big.NewRat(1, n)))); err != nil {
		return cball{}, err
	}
	r, err := v.cexp(l)
	if err == nil && n == 2 && x.real { // √(-a) is exactly imaginary
		r.re = v.small(0)
	}
	return r, err
}
