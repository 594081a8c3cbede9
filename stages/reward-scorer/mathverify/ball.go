package mathverify

import (
	"errors"
	"math"
	"math/big"
	"sync"
)

// ball is a real number known to lie within rad of mid.
type ball struct {
	mid *big.Float
	rad *big.Float // of radPrec bits, rounded away from zero
}

const radPrec = 32

var (
	errPrecision = errors.New("the precision does not suffice")
	errNotReal   = errors.New("not a real number")
	errUnknown   = errors.New("no method for this expression")
)

// arith computes with balls at one precision.
type arith struct {
	*budget
	prec uint
	pi   *ball
	ln2  *ball
}

func newRad() *big.Float { return new(big.Float).SetPrec(radPrec).SetMode(big.AwayFromZero) }

func (a *arith) new() *big.Float { return new(big.Float).SetPrec(a.prec) }

// ulp bounds the error of rounding x.
func (a *arith) ulp(x *big.Float) *big.Float {
	r := newRad()
	if x.Sign() == 0 {
		return r
	}
	return r.SetMantExp(big.NewFloat(1), x.MantExp(nil)-int(a.prec))
}

// check refuses results that over- or underflowed.
func (a *arith) check(b ball) (ball, error) {
	if b.mid.IsInf() || b.rad.IsInf() {
		return b, errPrecision
	}
	return b, nil
}

func (a *arith) rat(r *big.Rat) ball {
	m := a.new().SetRat(r)
	if r.IsInt() && uint(r.Num().BitLen()) <= a.prec {
		return ball{m, newRad()}
	}
	return ball{m, a.ulp(m)}
}

func (a *arith) small(i int64) ball { return ball{a.new().SetInt64(i), newRad()} }

// piFull and ln2Full read the constants once.
var (
	piFull  = sync.OnceValue(func() *big.Float { return readConstant(piHex) })
	ln2Full = sync.OnceValue(func() *big.Float { return readConstant(ln2Hex) })
)

func readConstant(hex string) *big.Float {
	i, _ := new(big.Int).SetString(hex, 16)
	f := new(big.Float).SetPrec(constantBits + 8).SetInt(i)
	return f.SetMantExp(f, -constantBits)
}

func (a *arith) constant(full *big.Float) *ball {
	m := a.new().Set(full)
	return &ball{m, a.ulp(m)}
}

func (a *arith) piBall() ball {
	if a.pi == nil {
		a.pi = a.constant(piFull())
	}
	return *a.pi
}

func (a *arith) ln2Ball() ball {
	if a.ln2 == nil {
		a.ln2 = a.constant(ln2Full())
	}
	return *a.ln2
}

func (x ball) exactZero() bool { return x.mid.Sign() == 0 && x.rad.Sign() == 0 }

// hasZero says whether 0 lies in the ball.
func (x ball) hasZero() bool { return new(big.Float).Abs(x.mid).Cmp(x.rad) <= 0 }

// sign is the sign of all numbers in the ball, or 0 if they differ.
func (x ball) sign() int {
	if x.hasZero() {
		return 0
	}
	return x.mid.Sign()
}

func (x ball) neg() ball { return ball{new(big.Float).Neg(x.mid), x.rad} }

// widen adds radii. A float of big shifts one number to the other's exponent,
// which for exponents far apart costs the difference in memory; so a radius that
// is negligible beside the other is rounded up into it instead.
func widen(r, s *big.Float) *big.Float {
	if r.Sign() == 0 {
		return newRad().Set(s)
	}
	if s.Sign() == 0 {
		return newRad().Set(r)
	}
	if r.Cmp(s) < 0 {
		r, s = s, r
	}
	if r.MantExp(nil)-s.MantExp(nil) > 2*radPrec {
		s = newRad().SetMantExp(big.NewFloat(1), r.MantExp(nil)-radPrec)
	}
	return newRad().Add(r, s)
}

func (a *arith) add(x, y ball) ball {
	if x.mid.Sign() != 0 && y.mid.Sign() != 0 {
		gap := x.mid.MantExp(nil) - y.mid.MantExp(nil)
		if gap < 0 {
			x, y, gap = y, x, -gap
		}
		if gap > int(a.prec)+radPrec { // y is only an error of x
			m := a.new().Set(x.mid)
			r := widen(widen(x.rad, y.magnitude()), a.ulp(m))
			return ball{m, r}
		}
	}
	m := a.new().Add(x.mid, y.mid)
	return ball{m, widen(widen(x.rad, y.rad), a.ulp(m))}
}

func (a *arith) sub(x, y ball) ball { return a.add(x, y.neg()) }

// magnitude bounds |x| for all numbers in the ball.
func (x ball) magnitude() *big.Float {
	return widen(newRad().Abs(x.mid), x.rad)
}

func (a *arith) mul(x, y ball) (ball, error) {
	m := a.new().Mul(x.mid, y.mid)
	if m.Sign() == 0 && x.mid.Sign() != 0 && y.mid.Sign() != 0 {
		return ball{}, errPrecision
	}
	r := a.ulp(m)
	if x.rad.Sign() != 0 {
		r = widen(r, newRad().Mul(x.rad, y.magnitude()))
	}
	if y.rad.Sign() != 0 {
		r = widen(r, newRad().Mul(newRad().Abs(x.mid), y.rad))
	}
	return a.check(ball{m, r})
}

func (a *arith) inv(x ball) (ball, error) {
	if x.hasZero() {
		return ball{}, errPrecision
	}
	m := a.new().Quo(a.new().SetInt64(1), x.mid)
	r := a.ulp(m)
	if x.rad.Sign() != 0 {
		// |1/x - 1/m| ≤ rad / (|m| (|m|-rad))
		least := new(big.Float).SetPrec(radPrec).SetMode(big.ToZero).Abs(x.mid)
		var den *big.Float
		if least.MantExp(nil)-x.rad.MantExp(nil) < 2*radPrec {
			den = new(big.Float).SetPrec(radPrec).SetMode(big.ToZero).Sub(least, x.rad)
		} else {
			den = new(big.Float).SetPrec(radPrec).SetMode(big.ToZero).Mul(least, big.NewFloat(0.999))
		}
		if den.Sign() <= 0 {
			return ball{}, errPrecision
		}
		den.Mul(den, least)
		r = widen(r, newRad().Quo(x.rad, den))
	}
	return a.check(ball{m, r})
}

func (a *arith) div(x, y ball) (ball, error) {
	i, err := a.inv(y)
	if err != nil {
		return ball{}, err
	}
	return a.mul(x, i)
}

func (a *arith) sqrt(x ball) (ball, error) {
	if x.exactZero() {
		return x, nil
	}
	switch x.sign() {
	case -1:
		return ball{}, errNotReal
	case 0:
		return ball{}, errPrecision
	}
	m := a.new().Sqrt(x.mid)
	r := a.ulp(m)
	if x.rad.Sign() != 0 {
		den := new(big.Float).SetPrec(radPrec).SetMode(big.ToZero).Set(m)
		r = widen(r, newRad().Quo(x.rad, den))
	}
	return a.check(ball{m, r})
}

func (a *arith) abs(x ball) ball {
	if x.mid.Sign() < 0 {
		return x.neg()
	}
	return x
}

// grow widens the ball by a relative error of 2^-(prec-guard), which covers the
// roundings inside the series below.
func (a *arith) grow(m *big.Float, guard int) *big.Float {
	r := a.ulp(m)
	return r.SetMantExp(r, guard)
}

func (a *arith) wider(bits uint) *arith { return &arith{budget: a.budget, prec: a.prec + bits} }

// round brings a ball to this precision.
func (a *arith) round(x ball) ball {
	m := a.new().Set(x.mid)
	return ball{m, widen(x.rad, a.ulp(m))}
}

func (a *arith) exp(x ball) (ball, error) {
	if err := a.spend(int(a.prec) / 4); err != nil {
		return ball{}, err
	}
	if x.exactZero() {
		return a.small(1), nil
	}
	f, _ := x.mid.Float64()
	if math.Abs(f) > 1e9 || x.rad.Cmp(big.NewFloat(0.25)) > 0 {
		return ball{}, errPrecision
	}
	if x.mid.Sign() != 0 && x.mid.MantExp(nil) < -int(a.prec) { // 1 and an error of 2|x|
		m := x.magnitude()
		return ball{a.new().SetInt64(1), m.SetMantExp(m, 1)}, nil
	}
	w := a.wider(64)
	k := int64(math.Round(f / math.Ln2))
	r := w.new().Sub(w.new().Set(x.mid), w.new().Mul(w.new().SetInt64(k), w.ln2Ball().mid))
	const halvings = 8
	r.SetMantExp(r, -halvings)
	sum := w.expSeries(r)
	for range halvings {
		sum.Mul(sum, sum)
	}
	m := a.new().SetMantExp(sum, int(k))
	rad := a.grow(m, 2)
	if x.rad.Sign() != 0 { // e^(m±r) - e^m ≤ 2 r e^m for r ≤ 1/4
		t := newRad().Mul(newRad().Abs(m), x.rad)
		rad = widen(rad, t.Mul(t, big.NewFloat(2)))
	}
	return a.check(ball{m, rad})
}

func (a *arith) log(x ball) (ball, error) {
	if err := a.spend(int(a.prec) / 4); err != nil {
		return ball{}, err
	}
	switch {
	case x.exactZero():
		return ball{}, errUndefined
	case x.sign() < 0:
		return ball{}, errNotReal
	case x.sign() == 0:
		return ball{}, errPrecision
	}
	w := a.wider(64)
	m := w.new()
	e := w.new().Set(x.mid).MantExp(m)
	if m.Cmp(big.NewFloat(0.70710678)) < 0 { // near 1 from both sides
		m.SetMantExp(m, 1)
		e--
	}
	// The logarithm of a number close to 1 loses bits: look how close it is.
	const roots = 4
	t := m
	for range roots {
		t = w.new().Sqrt(t)
	}
	one := w.new().SetInt64(1)
	z := w.new().Quo(w.new().Sub(t, one), w.new().Add(t, one))
	if e == 0 && z.Sign() != 0 && z.MantExp(nil) < -50 {
		// Direct series on m itself keeps the relative precision.
		z = w.new().Quo(w.new().Sub(m, one), w.new().Add(m, one))
		s := w.oddSeries(z, 1)
		s.SetMantExp(s, 1)
		return a.logBall(s, x)
	}
	s := w.oddSeries(z, 1)
	s.SetMantExp(s, 1+roots)
	s.Add(s, w.new().Mul(w.new().SetInt64(int64(e)), w.ln2Ball().mid))
	return a.logBall(s, x)
}

func (a *arith) logBall(s *big.Float, x ball) (ball, error) {
	m := a.new().Set(s)
	rad := a.grow(m, 4)
	if m.Sign() != 0 && m.MantExp(nil) < -40 { // cancellation: an absolute bound
		rad = widen(rad, newRad().SetMantExp(big.NewFloat(1), -int(a.prec)-8))
	}
	if x.rad.Sign() != 0 { // |log(m±r) - log m| ≤ r/(m-r)
		inv, err := a.inv(x)
		if err != nil {
			return ball{}, err
		}
		rad = widen(rad, newRad().Mul(x.rad, inv.magnitude()))
	}
	return a.check(ball{m, rad})
}
