package mathverify

import (
	"errors"
	"math/big"
	"strings"
)

// field maps expressions into F_p[i]. The map respects sums and products, so
// equal values of different images prove a difference, and equal images in two
// fields at random arguments prove equality up to a chance of about 10^-30.
//
//   - A variable becomes a random element.
//   - √q for a prime q becomes a root of q: which one does not matter, because
//     changing the sign of one such root is a symmetry of the numbers.
//   - e^(m/scale) for a monomial m becomes a random element, and e^(im/scale) a
//     random element of norm 1: sines and cosines follow from these.
//   - Any other part becomes an unknown of its own (met): equal images then
//     still prove equality, different ones prove nothing.
type field struct {
	modulus
	*budget
	seed     uint64
	met      bool // an opaque part was met
	pi, e    bool // π or e was met: one of them alone behaves like a variable
	beyond   bool // a root, an exponential or an angle was met
	roots    map[uint64]elem
	cofactor *uint64 // the one radicand too large to factor, of the whole comparison
}

// scale is what the denominators in exponents and angles must divide.
const scale = 5040

// unknown is the value of a variable or an opaque part: a hash of what it is.
func (f *field) unknown(a, b uint64) uint64 { return mix(a^mix(f.seed+b)^f.p) % f.p }

func (f *field) opaque(n *node) elem {
	f.met = true
	return elem{re: f.unknown(n.hash[0], n.hash[1])}
}

// named is an opaque part that is known by a name and a value.
func (f *field) named(name string, v elem) elem {
	return elem{re: f.unknown(hashText(v.re, name), v.im)}
}

func (f *field) value(n *node) (elem, error) {
	if err := f.spend(1); err != nil {
		return elem{}, err
	}
	switch n.op {
	case opNum:
		return f.number(n)
	case opSym:
		return elem{re: f.unknown(n.hash[0], n.hash[1])}, nil
	case opI:
		return elem{im: 1}, nil
	case opAdd:
		var acc elem
		for _, k := range n.kids {
			v, err := f.value(k)
			if err != nil {
				return elem{}, err
			}
			acc = f.add(acc, v)
		}
		return acc, nil
	case opMul:
		acc := elem{re: 1}
		for _, k := range n.kids {
			v, err := f.value(k)
			if err != nil {
				return elem{}, err
			}
			acc = f.mul(acc, v)
		}
		return acc, nil
	case opPow:
		return f.power(n)
	case opPercent:
		v, err := f.value(n.kids[0])
		if err != nil {
			return elem{}, err
		}
		return f.mul(v, elem{re: f.inv64(100)}), nil
	case opDeg:
		return f.value(n.kids[0])
	case opPi:
		f.pi = true
		return elem{re: f.unknown(n.hash[0], n.hash[1])}, nil
	case opE:
		return f.exponential(integer(1))
	case opFunc:
		return f.function(n)
	}
	if r, err := f.exact(n, nil); err == nil {
		return f.rational(r)
	} else if errors.Is(err, errSteps) {
		return elem{}, err
	}
	return f.opaque(n), nil
}

func (f *field) function(n *node) (elem, error) {
	switch n.name {
	case "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch":
		v, err := f.circular(n)
		if errors.Is(err, errOpaque) {
			break
		}
		return v, err
	case "root":
		if k, err := f.exact(n.kids[1], nil); err == nil && k.IsInt() && k.Sign() > 0 && k.Num().BitLen() < 8 {
			return f.radical(n.kids[0], k.Num().Int64(), 1)
		}
		return f.opaque(n), nil
	}
	if r, err := f.exact(n, nil); err == nil {
		return f.rational(r)
	} else if errors.Is(err, errSteps) {
		return elem{}, err
	}
	if n.name == "fact" {
		if v, err := f.factorial(n.kids[0]); err == nil {
			return v, nil
		}
	}
	if n.name == "abs" && hasOp(n.kids[0], opI) {
		if re, im, ok := f.complexRat(n.kids[0]); ok {
			return f.radical(rational(new(big.Rat).Add(new(big.Rat).Mul(re, re), new(big.Rat).Mul(im, im))), 2, 1)
		}
	}
	f.met = true
	if len(n.kids) != 1 || n.name == "det" || n.name == "tr" || n.kids[0].op != opSym && !n.kids[0].isExpr() {
		return f.opaque(n), nil
	}
	v, err := f.value(n.kids[0])
	switch {
	case err != nil:
		return elem{}, err
	case n.name == "abs" && v.im == 0: // |x-3| is |3-x|
		v = f.mul(v, v)
	}
	return f.named(n.name, v), nil
}

// complexRat evaluates sums, products and whole powers of complex numbers with
// rational parts; the parts are the caller's.
func (b *budget) complexRat(n *node) (re, im *big.Rat, ok bool) {
	if n.op == opI {
		return new(big.Rat), big.NewRat(1, 1), true
	}
	if r, err := b.exact(n, nil); err == nil {
		return new(big.Rat).Set(r), new(big.Rat), bitSize(r) < 2048
	}
	times := 1
	kids := n.kids
	switch n.op {
	case opAdd:
		re, im = new(big.Rat), new(big.Rat)
	case opMul:
		re, im = big.NewRat(1, 1), new(big.Rat)
	case opPow:
		e, err := b.exact(n.kids[1], nil)
		if err != nil || !e.IsInt() || e.Sign() < 0 || e.Num().BitLen() > 6 {
			return nil, nil, false
		}
		re, im, times, kids = big.NewRat(1, 1), new(big.Rat), int(e.Num().Int64()), n.kids[:1]
	default:
		return nil, nil, false
	}
	for range times {
		for _, k := range kids {
			x, y, ok := b.complexRat(k)
			if !ok || bitSize(re)+bitSize(im) > 4096 || b.spend(4) != nil {
				return nil, nil, false
			}
			if n.op == opAdd {
				re.Add(re, x)
				im.Add(im, y)
				continue
			}
			xy := new(big.Rat).Mul(im, y)
			yx := new(big.Rat).Mul(re, y)
			re.Sub(re.Mul(re, x), xy)
			im.Add(im.Mul(im, x), yx)
		}
	}
	return re, im, true
}

// factorial computes k! for k up to a hundred thousand.
func (f *field) factorial(n *node) (elem, error) {
	r, err := f.exact(n, nil)
	if err != nil || !r.IsInt() || r.Sign() < 0 || r.Num().BitLen() > 17 {
		return elem{}, errOpaque
	}
	k := r.Num().Uint64()
	if err := f.spend(int(k / 4)); err != nil {
		return elem{}, err
	}
	v := uint64(1)
	for i := uint64(2); i <= k; i++ {
		v = f.mul64(v, i)
	}
	return elem{re: v}, nil
}

func (f *field) rational(r *big.Rat) (elem, error) {
	if r.IsInt() {
		return elem{re: f.int(r.Num())}, nil
	}
	den := f.int(r.Denom())
	if den == 0 {
		return elem{}, errPole
	}
	return elem{re: f.mul64(f.int(r.Num()), f.inv64(den))}, nil
}

func (f *field) number(n *node) (elem, error) {
	if n.long == "" {
		return f.rational(n.num)
	}
	if err := f.spend(len(n.long) / 16); err != nil {
		return elem{}, err
	}
	whole, fraction, _ := strings.Cut(n.long, ".")
	v, ok := f.digits(whole + fraction)
	if !ok {
		return f.opaque(n), nil // with an exponent beyond all measure
	}
	return elem{re: f.mul64(v, f.inv64(f.pow64(10, uint64(len(fraction)))))}, nil
}

// power handles integer exponents of any size, written as towers too,
// fractions, and exponents with variables.
func (f *field) power(n *node) (elem, error) {
	base, exponent := n.kids[0], n.kids[1]
	e, err := f.exact(exponent, nil)
	if err == nil && !e.IsInt() {
		if e.Denom().BitLen() > 6 || !e.Num().IsInt64() {
			return f.opaque(n), nil
		}
		if base.op == opE {
			return f.exponential(exponent)
		}
		return f.radical(base, e.Denom().Int64(), e.Num().Int64())
	}
	if err != nil {
		if errors.Is(err, errSteps) {
			return elem{}, err
		}
		if v, err := f.symbolicPower(base, exponent); !errors.Is(err, errOpaque) {
			return v, err
		}
	}
	b, errB := f.value(base)
	if errB != nil {
		return elem{}, errB
	}
	if err == nil && e.Num().IsInt64() {
		return f.powInt(b, e.Num().Int64())
	}
	if b.im != 0 {
		return f.opaque(n), nil
	}
	k, err := f.exponent(exponent, f.p-1)
	switch {
	case errors.Is(err, errSteps):
		return elem{}, err
	case err != nil:
		return f.opaque(n), nil
	case b.re == 0 && e != nil && e.Sign() < 0:
		return elem{}, errPole
	case b.re == 0:
		return elem{}, nil
	}
	return elem{re: f.pow64(b.re, k)}, nil
}

// exponent reduces an integer exponent modulo m. A tower of positive integers
// is reduced from its written-out upper part.
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

// radical is base^(num/index).
func (f *field) radical(base *node, index, num int64) (elem, error) {
	r, err := f.exact(base, nil)
	switch {
	case errors.Is(err, errSteps):
		return elem{}, err
	case err != nil:
		v, err := f.value(base)
		if err != nil {
			return elem{}, err
		}
		f.met = true
		return f.powInt(elem{re: f.unknown(v.re^uint64(index)<<56, v.im+1)}, num)
	case r.Sign() == 0:
		if num < 0 {
			return elem{}, errPole
		}
		return elem{}, nil
	}
	v, err := f.rationalRoot(r, index)
	if err != nil {
		return elem{}, err
	}
	return f.powInt(v, num)
}

// rationalRoot is the principal root of a rational number; odd roots of
// negative numbers are real.
func (f *field) rationalRoot(r *big.Rat, index int64) (elem, error) {
	if !r.Num().IsInt64() || !r.Denom().IsInt64() || r.Num().BitLen()+r.Denom().BitLen() > 62 || index > 64 {
		f.met = true
		return f.named("root", elem{f.int(r.Num())<<1 ^ uint64(index), f.int(r.Denom())}), nil
	}
	acc := elem{re: 1}
	num, den := r.Num().Int64(), uint64(r.Denom().Int64())
	if num < 0 {
		num = -num
		switch {
		case index == 2:
			acc = elem{im: 1}
		case index%2 == 1:
			acc = f.neg(acc)
		default:
			f.met = true
			return f.named("root", elem{f.int(r.Num())<<1 ^ uint64(index), den}), nil
		}
	}
	// a^(1/n) b^(-1/n) = (a b^(n-1))^(1/n) / b, prime by prime.
	for _, part := range [2]struct {
		value uint64
		power int64
	}{{uint64(num), 1}, {den, index - 1}} {
		var err error
		factor(part.value, func(prime uint64, count int64, whole bool) {
			if err != nil {
				return
			}
			count *= part.power
			var root elem
			if root, err = f.primeRoot(prime, index, count%index, whole); err == nil {
				acc = f.mul(acc, f.mul(root, f.pow(elem{re: prime % f.p}, uint64(count/index))))
			}
		})
		if err != nil {
			return elem{}, err
		}
	}
	return f.mul(acc, elem{re: f.inv64(den % f.p)}), nil
}

// primeRoot is prime^(count/index). Square roots are true roots in the field,
// others unknowns. Of numbers that are perhaps no primes there may be only one,
// as roots of several could depend on each other.
func (f *field) primeRoot(prime uint64, index, count int64, certain bool) (elem, error) {
	if count == 0 {
		return elem{re: 1}, nil
	}
	f.beyond = true
	if !certain {
		if *f.cofactor == 0 {
			*f.cofactor = prime
		}
		if *f.cofactor != prime {
			f.met = true
			return f.named("cofactor", elem{prime, uint64(index)<<32 | uint64(count)}), nil
		}
	}
	for count%2 == 0 && index%2 == 0 {
		count, index = count/2, index/2
	}
	if index != 2 {
		for d := int64(3); d <= index; d++ {
			for index%d == 0 && count%d == 0 {
				index, count = index/d, count/d
			}
		}
		f.met = true
		return f.pow(f.named("root", elem{prime, uint64(index)}), uint64(count)), nil
	}
	r, ok := f.roots[prime]
	if !ok {
		r = f.sqrt64(prime % f.p)
		if f.roots == nil {
			f.roots = map[uint64]elem{}
		}
		f.roots[prime] = r
	}
	return r, nil
}

// factor calls f with the prime factors of n and their powers. A factor that is
// perhaps no prime comes last with certain false.
func factor(n uint64, f func(prime uint64, count int64, certain bool)) {
	const bound = 1000
	for d := uint64(2); d < bound && d*d <= n; d++ {
		count := int64(0)
		for n%d == 0 {
			n, count = n/d, count+1
		}
		if count > 0 {
			f(d, count, true)
		}
	}
	if n == 1 {
		return
	}
	if n >= bound*bound {
		if r, ok := rootOf(new(big.Int).SetUint64(n), 2); ok {
			f(r.Uint64(), 2, r.Uint64() < bound*bound)
			return
		}
	}
	f(n, 1, n < bound*bound)
}
