package evaluation

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// Cball is a complex number; real says that the imaginary part is exactly 0.
type Cball struct {
	Re, Im ball
	Real   bool
}

func (a *Arith) realBall(x ball) Cball { return Cball{Re: x, Im: a.small(0), Real: true} }

func (a *Arith) Cadd(x, y Cball) Cball {
	z := Cball{Re: a.add(x.Re, y.Re), Real: x.Real && y.Real}
	if z.Real {
		z.Im = x.Im
		return z
	}
	z.Im = a.add(x.Im, y.Im)
	return z
}

func (x Cball) Cneg() Cball { return Cball{Re: x.Re.neg(), Im: x.Im.neg(), Real: x.Real} }

func (a *Arith) cmul(x, y Cball) (Cball, error) {
	if x.Real && y.Real {
		re, err := a.mul(x.Re, y.Re)
		return Cball{Re: re, Im: x.Im, Real: true}, err
	}
	var p [4]ball
	for i, f := range [4][2]ball{{x.Re, y.Re}, {x.Im, y.Im}, {x.Re, y.Im}, {x.Im, y.Re}} {
		v, err := a.mul(f[0], f[1])
		if err != nil {
			return Cball{}, err
		}
		p[i] = v
	}
	z := Cball{Re: a.Sub(p[0], p[1]), Im: a.add(p[2], p[3])}
	z.Real = z.Im.exactZero()
	return z, nil
}

func (a *Arith) norm2(x Cball) (ball, error) {
	r, err := a.mul(x.Re, x.Re)
	if err != nil {
		return ball{}, err
	}
	i, err := a.mul(x.Im, x.Im)
	if err != nil {
		return ball{}, err
	}
	return a.add(r, i), nil
}

func (a *Arith) cinv(x Cball) (Cball, error) {
	if x.Real {
		re, err := a.inv(x.Re)
		return Cball{Re: re, Im: x.Im, Real: true}, err
	}
	n, err := a.norm2(x)
	if err != nil {
		return Cball{}, err
	}
	re, err := a.div(x.Re, n)
	if err != nil {
		return Cball{}, err
	}
	im, err := a.div(x.Im.neg(), n)
	return Cball{Re: re, Im: im}, err
}

func (a *Arith) cabs(x Cball) (Cball, error) {
	if x.Real {
		return a.realBall(a.abs(x.Re)), nil
	}
	n, err := a.norm2(x)
	if err != nil {
		return Cball{}, err
	}
	r, err := a.sqrt(n)
	return a.realBall(r), err
}

func (a *Arith) cexp(x Cball) (Cball, error) {
	e, err := a.exp(x.Re)
	if err != nil || x.Real {
		return a.realBall(e), err
	}
	s, c, err := a.sincos(x.Im)
	if err != nil {
		return Cball{}, err
	}
	re, err := a.mul(e, c)
	if err != nil {
		return Cball{}, err
	}
	im, err := a.mul(e, s)
	return Cball{Re: re, Im: im}, err
}

// arg is the principal argument; the ball must not touch the negative axis.
func (a *Arith) arg(x Cball) (ball, error) {
	half := a.piBall()
	half = ball{a.new().SetMantExp(half.Mid, -1), half.Rad}
	if x.Real {
		switch x.Re.Sign() {
		case 1:
			return a.small(0), nil
		case -1:
			return a.piBall(), nil
		}
		return ball{}, ErrPrecision
	}
	if x.Re.Sign() > 0 {
		t, err := a.div(x.Im, x.Re)
		if err != nil {
			return ball{}, err
		}
		return a.atan(t)
	}
	s := x.Im.Sign()
	if s == 0 {
		return ball{}, ErrPrecision
	}
	t, err := a.div(x.Re, x.Im)
	if err != nil {
		return ball{}, err
	}
	t, err = a.atan(t)
	if err != nil {
		return ball{}, err
	}
	if s > 0 {
		return a.Sub(half, t), nil
	}
	return a.Sub(half.neg(), t), nil
}

func (a *Arith) clog(x Cball) (Cball, error) {
	if x.Real && x.Re.Sign() > 0 {
		l, err := a.log(x.Re)
		return a.realBall(l), err
	}
	m, err := a.cabs(x)
	if err != nil {
		return Cball{}, err
	}
	re, err := a.log(m.Re)
	if err != nil {
		return Cball{}, err
	}
	im, err := a.arg(x)
	return Cball{Re: re, Im: im}, err
}

// power of an integer by repeated squaring.
func (a *Arith) intPower(x Cball, k int64) (Cball, error) {
	m := max(k, -k)
	acc := a.realBall(a.small(1))
	for {
		if m&1 == 1 {
			v, err := a.cmul(acc, x)
			if err != nil {
				return Cball{}, err
			}
			acc = v
		}
		if m >>= 1; m == 0 {
			break
		}
		if err := a.Spend(2); err != nil {
			return Cball{}, err
		}
		v, err := a.cmul(x, x)
		if err != nil {
			return Cball{}, err
		}
		x = v
	}
	if k < 0 {
		return a.cinv(acc)
	}
	return acc, nil
}

// Numeric evaluates expressions with balls. In real mode a part that leaves
// the real numbers makes the whole undefined.
type Numeric struct {
	*Arith
	Complex  bool
	Estimate bool // integrals, infinite sums and limits are estimated
	Vars     Env
}

func (v *Numeric) Eval(n *expr.Node) (Cball, error) {
	if err := v.Spend(8); err != nil {
		return Cball{}, err
	}
	switch n.Op {
	case expr.OpNum:
		if n.Long != "" {
			b, err := v.long(n.Long)
			return v.realBall(b), err
		}
		return v.realBall(v.rat(n.Num)), nil
	case expr.OpSym:
		if r := v.Vars[n.Name]; r != nil {
			return v.realBall(v.rat(r)), nil
		}
		return Cball{}, ErrUnknown
	case expr.OpPi:
		return v.realBall(v.piBall()), nil
	case expr.OpE:
		e, err := v.exp(v.small(1))
		return v.realBall(e), err
	case expr.OpI:
		if !v.Complex {
			return Cball{}, errNotReal
		}
		return Cball{Re: v.small(0), Im: v.small(1)}, nil
	case expr.OpAdd:
		acc := v.realBall(v.small(0))
		for _, k := range n.Kids {
			x, err := v.Eval(k)
			if err != nil {
				return Cball{}, err
			}
			acc = v.Cadd(acc, x)
		}
		return acc, nil
	case expr.OpMul:
		acc := v.realBall(v.small(1))
		for _, k := range n.Kids {
			x, err := v.Eval(k)
			if err != nil {
				return Cball{}, err
			}
			if acc, err = v.cmul(acc, x); err != nil {
				return Cball{}, err
			}
		}
		return acc, nil
	case expr.OpPow:
		return v.power(n)
	case expr.OpPercent:
		x, err := v.Eval(n.Kids[0])
		if err != nil {
			return Cball{}, err
		}
		return v.cmul(x, v.realBall(v.rat(big.NewRat(1, 100))))
	case expr.OpDeg:
		return v.Eval(n.Kids[0])
	case expr.OpRatio:
		if len(n.Kids) == 2 {
			return v.Eval(expr.Div(n.Kids[0], n.Kids[1]))
		}
	case expr.OpBased:
		r, err := exactBased(n)
		if err != nil {
			return Cball{}, ErrUnknown
		}
		return v.realBall(v.rat(r)), nil
	case expr.OpFunc:
		return v.function(n)
	case expr.OpBig:
		return v.series(n)
	}
	return Cball{}, ErrUnknown
}

// long is the ball of a literal too long to write out: its first thousand
// digits.
func (v *Numeric) long(text string) (ball, error) {
	whole, fraction, _ := strings.Cut(strings.TrimLeft(text, "0"), ".")
	digits, scale := whole+fraction, len(whole)
	if whole == "" {
		digits = strings.TrimLeft(fraction, "0")
		scale = len(digits) - len(fraction)
	}
	if strings.Contains(text, "e") || digits == "" {
		return ball{}, ErrUnknown
	}
	cut := min(len(digits), 1000)
	m, ok := v.new().SetString(digits[:cut] + "e" + strconv.Itoa(scale-cut))
	if !ok {
		return ball{}, ErrUnknown
	}
	rad := NewRad().Abs(m)
	rad.SetMantExp(rad, -3300) // below 10^-993, and so above the digits cut off
	return v.check(ball{m, Widen(rad, v.ulp(m))})
}

func (v *Numeric) power(n *expr.Node) (Cball, error) {
	e, exactErr := v.Exact(n.Kids[1], v.Vars)
	if n.Kids[0].Op == expr.OpE && exactErr != nil {
		x, err := v.Eval(n.Kids[1])
		if err != nil {
			return Cball{}, err
		}
		return v.cexp(x)
	}
	x, err := v.Eval(n.Kids[0])
	if err != nil {
		return Cball{}, err
	}
	if exactErr == nil {
		if e.Sign() == 0 {
			return v.realBall(v.small(1)), nil
		}
		if x.Real && x.Re.exactZero() {
			if e.Sign() < 0 {
				return Cball{}, ErrUndefined
			}
			return x, nil
		}
		if e.IsInt() && e.Num().BitLen() <= 24 {
			return v.intPower(x, e.Num().Int64())
		}
		if !e.IsInt() && e.Denom().BitLen() <= 20 && e.Num().BitLen() <= 20 {
			r, err := v.rootOf(x, e.Denom().Int64())
			if err != nil {
				return Cball{}, err
			}
			return v.intPower(r, e.Num().Int64())
		}
	}
	y, err := v.Eval(n.Kids[1])
	if err != nil {
		return Cball{}, err
	}
	if !v.Complex && x.Re.Sign() < 0 {
		return Cball{}, errNotReal
	}
	if x.Real && x.Re.exactZero() {
		if y.Re.Sign() > 0 {
			return x, nil
		}
		return Cball{}, ErrUndefined
	}
	l, err := v.clog(x)
	if err != nil {
		return Cball{}, err
	}
	if l, err = v.cmul(l, y); err != nil {
		return Cball{}, err
	}
	return v.cexp(l)
}

// rootOf is the principal root; odd roots of negative numbers are real in real
// mode.
func (v *Numeric) rootOf(x Cball, n int64) (Cball, error) {
	if x.Real && x.Re.exactZero() {
		return x, nil
	}
	if x.Real && x.Re.Sign() > 0 {
		if n == 2 {
			r, err := v.sqrt(x.Re)
			return v.realBall(r), err
		}
		l, err := v.log(x.Re)
		if err != nil {
			return Cball{}, err
		}
		if l, err = v.mul(l, v.rat(big.NewRat(1, n))); err != nil {
			return Cball{}, err
		}
		e, err := v.exp(l)
		return v.realBall(e), err
	}
	if x.Real && x.Re.Sign() < 0 && n%2 == 1 {
		r, err := v.rootOf(x.Cneg(), n)
		return r.Cneg(), err
	}
	if x.Real && x.Re.Sign() == 0 {
		return Cball{}, ErrPrecision
	}
	if !v.Complex {
		return Cball{}, errNotReal
	}
	l, err := v.clog(x)
	if err != nil {
		return Cball{}, err
	}
	if l, err = v.cmul(l, v.realBall(v.rat(big.NewRat(1, n)))); err != nil {
		return Cball{}, err
	}
	r, err := v.cexp(l)
	if err == nil && n == 2 && x.Real { // √(-a) is exactly imaginary
		r.Re = v.small(0)
	}
	return r, err
}
