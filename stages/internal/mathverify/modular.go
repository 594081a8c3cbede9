package mathverify

import (
	"errors"
	"math/big"
	"math/bits"
	"strings"
)

// Two primes below 2^61. Equal values in both fields at random points prove
// equality of polynomials up to a chance of about 10^-30; different values
// prove difference.
var primes = [2]uint64{1<<61 - 1, 1<<60 - 93}

var (
	errOpaque = errors.New("not a rational function")
	errPole   = errors.New("a zero in the denominator")
)

// field evaluates nodes modulo a prime. Parts that are no rational functions
// become unknowns of their own if opaque is set: equal values then still prove
// equality, different ones prove nothing.
type field struct {
	*budget
	p      uint64
	seed   uint64
	opaque bool
	met    bool // an opaque part was met
	pi, e  bool // π or e was met: one of them alone behaves like a variable
}

func (f *field) mul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	_, r := bits.Div64(hi, lo, f.p)
	return r
}

func (f *field) add(a, b uint64) uint64 { return (a + b) % f.p }

func (f *field) pow(a uint64, e uint64) uint64 {
	r := uint64(1)
	for ; e > 0; e >>= 1 {
		if e&1 == 1 {
			r = f.mul(r, a)
		}
		a = f.mul(a, a)
	}
	return r
}

func (f *field) inv(a uint64) (uint64, error) {
	if a == 0 {
		return 0, errPole
	}
	return f.pow(a, f.p-2), nil
}

func (f *field) digits(s string) (uint64, bool) {
	var v uint64
	for len(s) > 0 {
		n := min(len(s), 17)
		chunk, scale := uint64(0), uint64(1)
		for i := range n {
			if !isDigit(s[i]) {
				return 0, false
			}
			chunk, scale = chunk*10+uint64(s[i]-'0'), scale*10
		}
		v = f.add(f.mul(v, scale%f.p), chunk%f.p)
		s = s[n:]
	}
	return v, true
}

func (f *field) int(i *big.Int) uint64 {
	m := new(big.Int).Mod(i, new(big.Int).SetUint64(f.p))
	return m.Uint64()
}

// unknown is the value of a variable or an opaque part: a hash of what it is.
func (f *field) unknown(n *node) uint64 {
	return mix(n.hash[0]^mix(f.seed+n.hash[1])^f.p) % f.p
}

func (f *field) value(n *node) (uint64, error) {
	if err := f.spend(1); err != nil {
		return 0, err
	}
	switch n.op {
	case opNum:
		return f.number(n)
	case opSym:
		return f.unknown(n), nil
	case opAdd:
		var acc uint64
		for _, k := range n.kids {
			v, err := f.value(k)
			if err != nil {
				return 0, err
			}
			acc = f.add(acc, v)
		}
		return acc, nil
	case opMul:
		acc := uint64(1)
		for _, k := range n.kids {
			v, err := f.value(k)
			if err != nil {
				return 0, err
			}
			acc = f.mul(acc, v)
		}
		return acc, nil
	case opPow:
		return f.power(n)
	case opPercent:
		v, err := f.value(n.kids[0])
		if err != nil {
			return 0, err
		}
		inv, err := f.inv(100)
		return f.mul(v, inv), err
	case opDeg:
		return f.value(n.kids[0])
	case opPi:
		f.pi = true
		return f.unknown(n), nil
	case opE:
		f.e = true
		return f.unknown(n), nil
	}
	if r, err := f.exact(n, nil); err == nil {
		return f.rational(r)
	} else if errors.Is(err, errSteps) {
		return 0, err
	}
	if n.op == opFunc && n.name == "fact" {
		if v, err := f.factorial(n.kids[0]); err == nil {
			return v, nil
		}
	}
	f.met = true
	if f.opaque {
		return f.unknown(n), nil
	}
	return 0, errOpaque
}

// factorial computes k! for k up to a hundred thousand.
func (f *field) factorial(n *node) (uint64, error) {
	r, err := f.exact(n, nil)
	if err != nil || !r.IsInt() || r.Sign() < 0 || r.Num().BitLen() > 17 {
		return 0, errOpaque
	}
	k := r.Num().Uint64()
	if err := f.spend(int(k / 4)); err != nil {
		return 0, err
	}
	v := uint64(1)
	for i := uint64(2); i <= k; i++ {
		v = f.mul(v, i)
	}
	return v, nil
}

func (f *field) rational(r *big.Rat) (uint64, error) {
	den, err := f.inv(f.int(r.Denom()))
	return f.mul(f.int(r.Num()), den), err
}

func (f *field) number(n *node) (uint64, error) {
	if n.long == "" {
		return f.rational(n.num)
	}
	if err := f.spend(len(n.long) / 16); err != nil {
		return 0, err
	}
	whole, fraction, _ := strings.Cut(n.long, ".")
	v, ok := f.digits(whole + fraction)
	if !ok {
		f.met = true // with an exponent beyond all measure
		return f.unknown(n), nil
	}
	inv, err := f.inv(f.pow(10, uint64(len(fraction))))
	return f.mul(v, inv), err
}

// power handles integer exponents of any size, written as towers too.
func (f *field) power(n *node) (uint64, error) {
	base, err := f.value(n.kids[0])
	if err != nil {
		return 0, err
	}
	e, err := f.exponent(n.kids[1], f.p-1)
	if err != nil {
		f.met = true
		if f.opaque && !errors.Is(err, errSteps) {
			return f.unknown(n), nil
		}
		return 0, err
	}
	if base == 0 {
		r, err := f.exact(n.kids[1], nil)
		if err == nil && r.Sign() < 0 {
			return 0, errPole
		}
		if err == nil && r.Sign() == 0 {
			return 1, nil
		}
		return 0, nil
	}
	return f.pow(base, e), nil
}

// exponent reduces an integer exponent modulo m. Towers of positive integers
// are reduced level by level with Euler's theorem where base and modulus are
// coprime, and by repeated squaring of the written-out exponent otherwise.
func (f *field) exponent(n *node, m uint64) (uint64, error) {
	if r, err := f.exact(n, nil); err == nil {
		if !r.IsInt() {
			return 0, errOpaque
		}
		v := new(big.Int).Mod(r.Num(), new(big.Int).SetUint64(m))
		return v.Uint64(), nil
	}
	if n.op == opPow && positiveTower(n) && n.kids[0].num.IsInt() {
		e, err := f.exact(n.kids[1], nil)
		if err == nil && e.IsInt() && e.Sign() > 0 {
			mod := new(big.Int).SetUint64(m)
			if e.Num().BitLen() > 1<<14 {
				return 0, errOpaque
			}
			if err := f.spend(e.Num().BitLen()); err != nil {
				return 0, err
			}
			return new(big.Int).Exp(n.kids[0].num.Num(), e.Num(), mod).Uint64(), nil
		}
	}
	return 0, errOpaque
}
