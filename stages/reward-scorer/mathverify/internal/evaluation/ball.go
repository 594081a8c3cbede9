package evaluation

import (
	"errors"
	"math"
	"math/big"
	"sync"
)

// ball is a real number known to lie within rad of mid.
type ball struct {
	Mid *big.Float
	Rad *big.Float // of radPrec bits, rounded away from zero
}

const radPrec = 32

var (
	ErrPrecision = errors.New("the precision does not suffice")
	errNotReal   = errors.New("not a real number")
	ErrUnknown   = errors.New("no method for this expression")
)

// Arith computes with balls at one precision.
type Arith struct {
	*Budget
	Prec uint
	pi   *ball
	ln2  *ball
}

func NewRad() *big.Float { return new(big.Float).SetPrec(radPrec).SetMode(big.AwayFromZero) }

func (a *Arith) new() *big.Float { return new(big.Float).SetPrec(a.Prec) }

// ulp bounds the error of rounding x.
func (a *Arith) ulp(x *big.Float) *big.Float {
	r := NewRad()
	if x.Sign() == 0 {
		return r
	}
	return r.SetMantExp(big.NewFloat(1), x.MantExp(nil)-int(a.Prec))
}

// check refuses results that over- or underflowed.
func (a *Arith) check(b ball) (ball, error) {
	if b.Mid.IsInf() || b.Rad.IsInf() {
		return b, ErrPrecision
	}
	return b, nil
}

func (a *Arith) rat(r *big.Rat) ball {
	m := a.new().SetRat(r)
	if r.IsInt() && uint(r.Num().BitLen()) <= a.Prec {
		return ball{m, NewRad()}
	}
	return ball{m, a.ulp(m)}
}

func (a *Arith) small(i int64) ball { return ball{a.new().SetInt64(i), NewRad()} }

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

func (a *Arith) constant(full *big.Float) *ball {
	m := a.new().Set(full)
	return &ball{m, a.ulp(m)}
}

func (a *Arith) piBall() ball {
	if a.pi == nil {
		a.pi = a.constant(piFull())
	}
	return *a.pi
}

func (a *Arith) ln2Ball() ball {
	if a.ln2 == nil {
		a.ln2 = a.constant(ln2Full())
	}
	return *a.ln2
}

func (x ball) exactZero() bool { return x.Mid.Sign() == 0 && x.Rad.Sign() == 0 }

// HasZero says whether 0 lies in the ball.
func (x ball) HasZero() bool { return new(big.Float).Abs(x.Mid).Cmp(x.Rad) <= 0 }

// Sign is the sign of all numbers in the ball, or 0 if they differ.
func (x ball) Sign() int {
	if x.HasZero() {
		return 0
	}
	return x.Mid.Sign()
}

func (x ball) neg() ball { return ball{new(big.Float).Neg(x.Mid), x.Rad} }

// Widen adds radii. A float of big shifts one number to the other's exponent,
// which for exponents far apart costs the difference in memory; so a radius that
// is negligible beside the other is rounded up into it instead.
func Widen(r, s *big.Float) *big.Float {
	if r.Sign() == 0 {
		return NewRad().Set(s)
	}
	if s.Sign() == 0 {
		return NewRad().Set(r)
	}
	if r.Cmp(s) < 0 {
		r, s = s, r
	}
	if r.MantExp(nil)-s.MantExp(nil) > 2*radPrec {
		s = NewRad().SetMantExp(big.NewFloat(1), r.MantExp(nil)-radPrec)
	}
	return NewRad().Add(r, s)
}

func (a *Arith) add(x, y ball) ball {
	if x.Mid.Sign() != 0 && y.Mid.Sign() != 0 {
		gap := x.Mid.MantExp(nil) - y.Mid.MantExp(nil)
		if gap < 0 {
			x, y, gap = y, x, -gap
		}
		if gap > int(a.Prec)+radPrec { // y is only an error of x
			m := a.new().Set(x.Mid)
			r := Widen(Widen(x.Rad, y.Magnitude()), a.ulp(m))
			return ball{m, r}
		}
	}
	m := a.new().Add(x.Mid, y.Mid)
	return ball{m, Widen(Widen(x.Rad, y.Rad), a.ulp(m))}
}

func (a *Arith) Sub(x, y ball) ball { return a.add(x, y.neg()) }

// Magnitude bounds |x| for all numbers in the ball.
func (x ball) Magnitude() *big.Float {
	return Widen(NewRad().Abs(x.Mid), x.Rad)
}

func (a *Arith) mul(x, y ball) (ball, error) {
	m := a.new().Mul(x.Mid, y.Mid)
	if m.Sign() == 0 && x.Mid.Sign() != 0 && y.Mid.Sign() != 0 {
		return ball{}, ErrPrecision
	}
	r := a.ulp(m)
	if x.Rad.Sign() != 0 {
		r = Widen(r, NewRad().Mul(x.Rad, y.Magnitude()))
	}
	if y.Rad.Sign() != 0 {
		r = Widen(r, NewRad().Mul(NewRad().Abs(x.Mid), y.Rad))
	}
	return a.check(ball{m, r})
}

func (a *Arith) inv(x ball) (ball, error) {
	if x.HasZero() {
		return ball{}, ErrPrecision
	}
	m := a.new().Quo(a.new().SetInt64(1), x.Mid)
	r := a.ulp(m)
	if x.Rad.Sign() != 0 {
		// |1/x - 1/m| ≤ rad / (|m| (|m|-rad))
		least := new(big.Float).SetPrec(radPrec).SetMode(big.ToZero).Abs(x.Mid)
		var den *big.Float
		if least.MantExp(nil)-x.Rad.MantExp(nil) < 2*radPrec {
			den = new(big.Float).SetPrec(radPrec).SetMode(big.ToZero).Sub(least, x.Rad)
		} else {
			den = new(big.Float).SetPrec(radPrec).SetMode(big.ToZero).Mul(least, big.NewFloat(0.999))
		}
		if den.Sign() <= 0 {
			return ball{}, ErrPrecision
		}
		den.Mul(den, least)
		r = Widen(r, NewRad().Quo(x.Rad, den))
	}
	return a.check(ball{m, r})
}

func (a *Arith) div(x, y ball) (ball, error) {
	i, err := a.inv(y)
	if err != nil {
		return ball{}, err
	}
	return a.mul(x, i)
}

func (a *Arith) sqrt(x ball) (ball, error) {
	if x.exactZero() {
		return x, nil
	}
	switch x.Sign() {
	case -1:
		return ball{}, errNotReal
	case 0:
		return ball{}, ErrPrecision
	}
	m := a.new().Sqrt(x.Mid)
	r := a.ulp(m)
	if x.Rad.Sign() != 0 {
		den := new(big.Float).SetPrec(radPrec).SetMode(big.ToZero).Set(m)
		r = Widen(r, NewRad().Quo(x.Rad, den))
	}
	return a.check(ball{m, r})
}

func (a *Arith) abs(x ball) ball {
	if x.Mid.Sign() < 0 {
		return x.neg()
	}
	return x
}

// grow widens the ball by a relative error of 2^-(prec-guard), which covers the
// roundings inside the series below.
func (a *Arith) grow(m *big.Float, guard int) *big.Float {
	r := a.ulp(m)
	return r.SetMantExp(r, guard)
}

func (a *Arith) wider(bits uint) *Arith { return &Arith{Budget: a.Budget, Prec: a.Prec + bits} }

// round brings a ball to this precision.
func (a *Arith) round(x ball) ball {
	m := a.new().Set(x.Mid)
	return ball{m, Widen(x.Rad, a.ulp(m))}
}

func (a *Arith) exp(x ball) (ball, error) {
	if err := a.Spend(int(a.Prec) / 4); err != nil {
		return ball{}, err
	}
	if x.exactZero() {
		return a.small(1), nil
	}
	f, _ := x.Mid.Float64()
	if math.Abs(f) > 1e9 || x.Rad.Cmp(big.NewFloat(0.25)) > 0 {
		return ball{}, ErrPrecision
	}
	if x.Mid.Sign() != 0 && x.Mid.MantExp(nil) < -int(a.Prec) { // 1 and an error of 2|x|
		m := x.Magnitude()
		return ball{a.new().SetInt64(1), m.SetMantExp(m, 1)}, nil
	}
	w := a.wider(64)
	k := int64(math.Round(f / math.Ln2))
	r := w.new().Sub(w.new().Set(x.Mid), w.new().Mul(w.new().SetInt64(k), w.ln2Ball().Mid))
	const halvings = 8
	r.SetMantExp(r, -halvings)
	sum := w.expSeries(r)
	for range halvings {
		sum.Mul(sum, sum)
	}
	m := a.new().SetMantExp(sum, int(k))
	rad := a.grow(m, 2)
	if x.Rad.Sign() != 0 { // e^(m±r) - e^m ≤ 2 r e^m for r ≤ 1/4
		t := NewRad().Mul(NewRad().Abs(m), x.Rad)
		rad = Widen(rad, t.Mul(t, big.NewFloat(2)))
	}
	return a.check(ball{m, rad})
}

func (a *Arith) log(x ball) (ball, error) {
	if err := a.Spend(int(a.Prec) / 4); err != nil {
		return ball{}, err
	}
	switch {
	case x.exactZero():
		return ball{}, ErrUndefined
	case x.Sign() < 0:
		return ball{}, errNotReal
	case x.Sign() == 0:
		return ball{}, ErrPrecision
	}
	w := a.wider(64)
	m := w.new()
	e := w.new().Set(x.Mid).MantExp(m)
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
	s.Add(s, w.new().Mul(w.new().SetInt64(int64(e)), w.ln2Ball().Mid))
	return a.logBall(s, x)
}

func (a *Arith) logBall(s *big.Float, x ball) (ball, error) {
	m := a.new().Set(s)
	rad := a.grow(m, 4)
	if m.Sign() != 0 && m.MantExp(nil) < -40 { // cancellation: an absolute bound
		rad = Widen(rad, NewRad().SetMantExp(big.NewFloat(1), -int(a.Prec)-8))
	}
	if x.Rad.Sign() != 0 { // |log(m±r) - log m| ≤ r/(m-r)
		inv, err := a.inv(x)
		if err != nil {
			return ball{}, err
		}
		rad = Widen(rad, NewRad().Mul(x.Rad, inv.Magnitude()))
	}
	return a.check(ball{m, rad})
}
