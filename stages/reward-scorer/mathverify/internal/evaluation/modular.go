package evaluation

import (
	"errors"
	"math/big"
	"math/bits"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// Two primes below 2^61, both 3 modulo 4, so that -1 has no root modulo either
// and the field of p² elements is F_p[i].
var Primes = [2]uint64{1<<61 - 1, 1<<60 - 93}

var (
	errOpaque = errors.New("not a function of a kind that fields know")
	errPole   = errors.New("a zero in the denominator")
)

// elem is re + i·im in F_p[i].
type elem struct{ re, im uint64 }

// Modulus is the arithmetic of one field.
type Modulus struct{ p uint64 }

// NewModulus is the field of p elements.
func NewModulus(p uint64) Modulus { return Modulus{p} }

func (f Modulus) mul64(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if f.p == 1<<61-1 {
		r := (hi<<3 | lo>>61) + lo&f.p
		if r >= f.p {
			r -= f.p
		}
		return r
	}
	_, r := bits.Div64(hi, lo, f.p)
	return r
}

func (f Modulus) add64(a, b uint64) uint64 {
	if a += b; a >= f.p {
		a -= f.p
	}
	return a
}

func (f Modulus) neg64(a uint64) uint64 {
	if a == 0 {
		return 0
	}
	return f.p - a
}

func (f Modulus) pow64(a, e uint64) uint64 {
	r := uint64(1)
	for ; e > 0; e >>= 1 {
		if e&1 == 1 {
			r = f.mul64(r, a)
		}
		a = f.mul64(a, a)
	}
	return r
}

// inv64 inverts a, which is not 0, by Euclid's algorithm.
func (f Modulus) inv64(a uint64) uint64 {
	if a == 1 {
		return 1
	}
	var s0, s1 int64 = 0, 1
	r0, r1 := f.p, a
	for r1 != 0 {
		q := r0 / r1
		r0, r1 = r1, r0-q*r1
		s0, s1 = s1, s0-int64(q)*s1
	}
	if s0 < 0 {
		return f.p - uint64(-s0)
	}
	return uint64(s0)
}

func (f Modulus) add(a, b elem) elem { return elem{f.add64(a.re, b.re), f.add64(a.im, b.im)} }

func (f Modulus) neg(a elem) elem { return elem{f.neg64(a.re), f.neg64(a.im)} }

func (f Modulus) mul(a, b elem) elem {
	if a.im == 0 && b.im == 0 {
		return elem{re: f.mul64(a.re, b.re)}
	}
	return elem{
		re: f.add64(f.mul64(a.re, b.re), f.neg64(f.mul64(a.im, b.im))),
		im: f.add64(f.mul64(a.re, b.im), f.mul64(a.im, b.re)),
	}
}

func (f Modulus) inv(a elem) (elem, error) {
	norm := f.add64(f.mul64(a.re, a.re), f.mul64(a.im, a.im))
	if norm == 0 {
		return elem{}, errPole
	}
	if a.im == 0 {
		return elem{re: f.inv64(a.re)}, nil
	}
	i := f.inv64(norm)
	return elem{f.mul64(a.re, i), f.mul64(f.neg64(a.im), i)}, nil
}

// pow raises to e ≥ 0.
func (f Modulus) pow(a elem, e uint64) elem {
	if a.im == 0 {
		return elem{re: f.pow64(a.re, e%(f.p-1))}
	}
	r := elem{re: 1}
	for ; e > 0; e >>= 1 {
		if e&1 == 1 {
			r = f.mul(r, a)
		}
		a = f.mul(a, a)
	}
	return r
}

// powInt raises to an exponent of either sign.
func (f Modulus) powInt(a elem, e int64) (elem, error) {
	if e >= 0 {
		return f.pow(a, uint64(e)), nil
	}
	if a == (elem{}) {
		return a, errPole
	}
	i, err := f.inv(a)
	return f.pow(i, uint64(-e)), err
}

// sqrt64 is a root of q ≠ 0 in F_p[i]: real if q is a square modulo p, else i
// times a root of -q.
func (f Modulus) sqrt64(q uint64) elem {
	r := f.pow64(q, (f.p+1)/4)
	if f.mul64(r, r) == q {
		return elem{re: r}
	}
	return elem{im: f.pow64(f.neg64(q), (f.p+1)/4)}
}

func (f Modulus) Digits(s string) (uint64, bool) {
	var v uint64
	for len(s) > 0 {
		n := min(len(s), 17)
		chunk, scale := uint64(0), uint64(1)
		for i := range n {
			if !expr.IsDigit(s[i]) {
				return 0, false
			}
			chunk, scale = chunk*10+uint64(s[i]-'0'), scale*10
		}
		v = f.add64(f.mul64(v, scale%f.p), chunk%f.p)
		s = s[n:]
	}
	return v, true
}

func (f Modulus) int(i *big.Int) uint64 {
	if i.IsInt64() {
		v := i.Int64()
		if v >= 0 {
			return uint64(v) % f.p
		}
		return f.neg64(uint64(-v) % f.p)
	}
	m := new(big.Int).Mod(i, new(big.Int).SetUint64(f.p))
	return m.Uint64()
}
