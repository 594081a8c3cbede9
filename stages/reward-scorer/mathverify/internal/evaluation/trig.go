package evaluation

import (
	"math/big"
)

// sincos returns sine and cosine.
func (a *Arith) sincos(x ball) (sin, cos ball, err error) {
	if err := a.Spend(int(a.Prec) / 2); err != nil {
		return ball{}, ball{}, err
	}
	if x.exactZero() {
		return x, a.small(1), nil
	}
	exp := x.Mid.MantExp(nil)
	if exp > 1500 || x.Rad.Cmp(big.NewFloat(1)) > 0 {
		return ball{}, ball{}, ErrPrecision
	}
	if exp < -int(a.Prec) { // sin x = x and cos x = 1, but for x³ and x²
		return ball{a.new().Set(x.Mid), Widen(x.Rad, a.ulp(x.Mid))}, ball{a.new().SetInt64(1), x.Magnitude()}, nil
	}
	w := a.wider(64 + uint(max(exp, 0)))
	if int(w.Prec) > constantBits-64 {
		return ball{}, ball{}, ErrPrecision
	}
	half := w.new().Set(w.piBall().Mid)
	half.SetMantExp(half, -1)
	q := w.new().Quo(w.new().Set(x.Mid), half)
	k, _ := q.Add(q, big.NewFloat(0.5)).Int(nil)
	if q.Sign() < 0 && !q.IsInt() { // floor
		k.Sub(k, big.NewInt(1))
	}
	r := w.new().Sub(w.new().Set(x.Mid), w.new().Mul(half, w.new().SetInt(k)))
	s, c := w.sincosSeries(r)
	switch new(big.Int).And(k, big.NewInt(3)).Int64() {
	case 1:
		s, c = c, s.Neg(s)
	case 2:
		s, c = s.Neg(s), c.Neg(c)
	case 3:
		s, c = c.Neg(c), s
	}
	// The argument's error carries over unchanged; the rest is an absolute
	// error of rounding the reduced argument.
	rad := func(m *big.Float) *big.Float {
		t := NewRad().SetMantExp(big.NewFloat(1), -int(a.Prec)-16)
		return Widen(Widen(t, a.ulp(m)), x.Rad)
	}
	sm, cm := a.new().Set(s), a.new().Set(c)
	return ball{sm, rad(sm)}, ball{cm, rad(cm)}, nil
}

// atan returns the arc tangent.
func (a *Arith) atan(x ball) (ball, error) {
	if err := a.Spend(int(a.Prec) / 2); err != nil {
		return ball{}, err
	}
	if x.exactZero() {
		return x, nil
	}
	exp := x.Mid.MantExp(nil)
	if exp < -int(a.Prec) { // atan x = x, but for x³/3
		return ball{a.new().Set(x.Mid), Widen(x.Rad, a.ulp(x.Mid))}, nil
	}
	if exp > 64 { // atan x = ±π/2 - atan 1/x
		inv, err := a.inv(x)
		if err != nil {
			return ball{}, err
		}
		small, err := a.atan(inv)
		if err != nil {
			return ball{}, err
		}
		half := a.piBall()
		half = ball{a.new().SetMantExp(half.Mid, -1), half.Rad}
		if x.Mid.Sign() < 0 {
			half = half.neg()
		}
		return a.Sub(half, small), nil
	}
	w := a.wider(64)
	// Shrink with atan x = 2 atan(x/(1+√(1+x²))).
	const halvings = 4
	t := w.new().Set(x.Mid)
	one := w.new().SetInt64(1)
	for range halvings {
		root := w.new().Sqrt(w.new().Add(one, w.new().Mul(t, t)))
		if root.IsInf() {
			return ball{}, ErrPrecision
		}
		t = w.new().Quo(t, root.Add(root, one))
	}
	sum := w.oddSeries(t, -1)
	sum.SetMantExp(sum, halvings)
	m := a.new().Set(sum)
	rad := a.grow(m, 4)
	return a.check(ball{m, Widen(rad, x.Rad)}) // the slope is at most 1
}

// asin and acos go through the arc tangent.
func (a *Arith) asin(x ball) (ball, error) {
	one := a.small(1)
	sq, err := a.mul(x, x)
	if err != nil {
		return ball{}, err
	}
	rest := a.Sub(one, sq)
	if rest.Sign() < 0 {
		return ball{}, errNotReal
	}
	if rest.exactZero() || x.Rad.Sign() == 0 && x.Mid.IsInt() && x.Mid.Sign() != 0 {
		half := a.piBall()
		half = ball{a.new().SetMantExp(half.Mid, -1), half.Rad}
		if x.Mid.Sign() < 0 {
			half = half.neg()
		}
		return half, nil
	}
	root, err := a.sqrt(rest)
	if err != nil {
		return ball{}, err
	}
	t, err := a.div(x, root)
	if err != nil {
		return ball{}, err
	}
	return a.atan(t)
}

func (a *Arith) acos(x ball) (ball, error) {
	s, err := a.asin(x)
	if err != nil {
		return ball{}, err
	}
	half := a.piBall()
	return a.Sub(ball{a.new().SetMantExp(half.Mid, -1), half.Rad}, s), nil
}

// gamma returns Γ(x) for positive x by Stirling's series after shifting x up.
func (a *Arith) gamma(x ball) (ball, error) {
	if x.Sign() <= 0 {
		return ball{}, ErrUnknown
	}
	f, _ := x.Mid.Float64()
	if f > 1e6 {
		return ball{}, ErrPrecision
	}
	if err := a.Spend(int(a.Prec) * 8); err != nil {
		return ball{}, err
	}
	w := a.wider(64)
	product := w.small(1)
	y := x
	for bound := float64(w.Prec) / 3; f < bound; f++ {
		p, err := w.mul(product, y)
		if err != nil {
			return ball{}, err
		}
		product = p
		y = w.add(y, w.small(1))
	}
	l, err := w.stirling(y)
	if err != nil {
		return ball{}, err
	}
	e, err := w.exp(l)
	if err != nil {
		return ball{}, err
	}
	g, err := w.div(e, product)
	if err != nil {
		return ball{}, err
	}
	return a.round(g), nil
}

// stirling returns log Γ(y) for large y: the error is below the first term
// that is left out.
func (a *Arith) stirling(y ball) (ball, error) {
	l, err := a.log(y)
	if err != nil {
		return ball{}, err
	}
	half := a.rat(big.NewRat(1, 2))
	sum, err := a.mul(a.Sub(y, half), l)
	if err != nil {
		return ball{}, err
	}
	sum = a.Sub(sum, y)
	tau := a.piBall()
	lt, err := a.log(ball{a.new().SetMantExp(tau.Mid, 1), NewRad().SetMantExp(tau.Rad, 1)})
	if err != nil {
		return ball{}, err
	}
	lt, _ = a.mul(lt, half)
	sum = a.add(sum, lt)
	inv, err := a.inv(y)
	if err != nil {
		return ball{}, err
	}
	sq, err := a.mul(inv, inv)
	if err != nil {
		return ball{}, err
	}
	power := inv
	const terms = 36
	if a.bern == nil {
		a.bern = bernoulli(2 * terms)
	}
	for k := int64(1); k <= terms; k++ {
		c := new(big.Rat).Quo(a.bern[2*k], big.NewRat(2*k*(2*k-1), 1))
		t, err := a.mul(a.rat(c), power)
		if err != nil {
			return ball{}, err
		}
		if size := t.Magnitude(); size.Sign() == 0 || size.MantExp(nil) < sum.Mid.MantExp(nil)-int(a.Prec) || k == terms {
			return ball{sum.Mid, Widen(sum.Rad, size)}, nil
		}
		sum = a.add(sum, t)
		if power, err = a.mul(power, sq); err != nil {
			return ball{}, err
		}
	}
	return sum, nil
}

// bernoulli returns B_0 … B_n.
func bernoulli(n int) []*big.Rat {
	b := make([]*big.Rat, n+1)
	row := make([]*big.Rat, n+1)
	for m := 0; m <= n; m++ { // Akiyama and Tanigawa
		row[m] = big.NewRat(1, int64(m+1))
		for j := m; j >= 1; j-- {
			d := new(big.Rat).Sub(row[j-1], row[j])
			row[j-1] = d.Mul(d, big.NewRat(int64(j), 1))
		}
		b[m] = new(big.Rat).Set(row[0])
	}
	return b
}
