package evaluation

import (
	"math/big"
)

// toFixed is x·2^places, rounded down in size.
func toFixed(x *big.Float, places uint) *big.Int {
	i, _ := new(big.Float).SetMantExp(x, int(places)).Int(nil)
	return i
}

// fromFixed is the float for i·2^-places.
func (a *Arith) fromFixed(i *big.Int, places uint) *big.Float {
	f := a.new().SetInt(i)
	return f.SetMantExp(f, -int(places))
}

// expSeries sums 1 + r + r²/2 + … for |r| < 2^-8.
func (a *Arith) expSeries(r *big.Float) *big.Float {
	places := a.Prec
	x := toFixed(r, places)
	term := new(big.Int).Lsh(big.NewInt(1), places)
	sum := new(big.Int).Set(term)
	var by big.Int
	for i := int64(1); i < 4000 && term.Sign() != 0; i++ {
		term.Rsh(term.Mul(term, x), places)
		if term.Quo(term, by.SetInt64(i)); term.Cmp(minusOneInt) == 0 {
			break
		}
		sum.Add(sum, term)
	}
	return a.fromFixed(sum, places)
}

var minusOneInt = big.NewInt(-1)

// sincosSeries sums both series for |r| ≤ 0.8.
func (a *Arith) sincosSeries(r *big.Float) (s, c *big.Float) {
	places := a.Prec
	x := toFixed(r, places)
	term := new(big.Int).Lsh(big.NewInt(1), places)
	sums := [2]*big.Int{new(big.Int).Set(term), new(big.Int)}
	var by big.Int
	for i := int64(1); i < 4000 && term.Sign() != 0; i++ {
		term.Rsh(term.Mul(term, x), places)
		if term.Quo(term, by.SetInt64(i)); term.Cmp(minusOneInt) == 0 {
			break
		}
		if into := sums[i%2]; i%4 >= 2 {
			into.Sub(into, term)
		} else {
			into.Add(into, term)
		}
	}
	return a.fromFixed(sums[1], places), a.fromFixed(sums[0], places)
}

// oddSeries sums z ± z³/3 + z⁵/5 ± … for small z: the arc tangent with sign -1,
// the inverse hyperbolic tangent with 1. The result is accurate to places
// binary places below z itself.
func (a *Arith) oddSeries(z *big.Float, sign int) *big.Float {
	if z.Sign() == 0 {
		return a.new()
	}
	places := a.Prec + uint(max(0, -z.MantExp(nil)))
	if places > 4*a.Prec { // z and nothing else
		return a.new().Set(z)
	}
	x := toFixed(z, places)
	square := new(big.Int).Mul(x, x)
	square.Rsh(square, places)
	power, sum := new(big.Int).Set(x), new(big.Int).Set(x)
	var by, term big.Int
	for i := int64(3); i < 8000; i += 2 {
		power.Rsh(power.Mul(power, square), places)
		if sign < 0 {
			power.Neg(power)
		}
		if term.Quo(power, by.SetInt64(i)); term.Sign() == 0 || power.Cmp(minusOneInt) == 0 {
			break
		}
		sum.Add(sum, &term)
	}
	return a.fromFixed(sum, places)
}
