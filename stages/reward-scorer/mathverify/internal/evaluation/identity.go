package evaluation

import (
	"errors"
	"math/big"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// Field maps expressions into F_p[i]. The map respects sums and products, so
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
type Field struct {
	Modulus
	*Budget
	Seed     uint64
	Met      bool // an opaque part was met
	Pi, E    bool // π or e was met: one of them alone behaves like a variable
	Beyond   bool // a root, an exponential or an angle was met
	roots    map[uint64]elem
	Cofactor *uint64 // the one radicand too large to factor, of the whole comparison
}

// scale is what the denominators in exponents and angles must divide.
const scale = 5040

// unknown is the value of a variable or an opaque part: a hash of what it is.
func (f *Field) unknown(a, b uint64) uint64 { return expr.Mix(a^expr.Mix(f.Seed+b)^f.p) % f.p }

func (f *Field) opaque(n *expr.Node) elem {
	f.Met = true
	return elem{re: f.unknown(n.Hash[0], n.Hash[1])}
}

// named is an opaque part that is known by a name and a value.
func (f *Field) named(name string, v elem) elem {
	return elem{re: f.unknown(expr.HashText(v.re, name), v.im)}
}

func (f *Field) Value(n *expr.Node) (elem, error) {
	if err := f.Spend(1); err != nil {
		return elem{}, err
	}
	switch n.Op {
	case expr.OpNum:
		return f.number(n)
	case expr.OpSym:
		return elem{re: f.unknown(n.Hash[0], n.Hash[1])}, nil
	case expr.OpI:
		return elem{im: 1}, nil
	case expr.OpAdd:
		var acc elem
		for _, k := range n.Kids {
			v, err := f.Value(k)
			if err != nil {
				return elem{}, err
			}
			acc = f.add(acc, v)
		}
		return acc, nil
	case expr.OpMul:
		acc := elem{re: 1}
		for _, k := range n.Kids {
			v, err := f.Value(k)
			if err != nil {
				return elem{}, err
			}
			acc = f.mul(acc, v)
		}
		return acc, nil
	case expr.OpPow:
		return f.power(n)
	case expr.OpPercent:
		v, err := f.Value(n.Kids[0])
		if err != nil {
			return elem{}, err
		}
		return f.mul(v, elem{re: f.inv64(100)}), nil
	case expr.OpDeg:
		return f.Value(n.Kids[0])
	case expr.OpPi:
		f.Pi = true
		return elem{re: f.unknown(n.Hash[0], n.Hash[1])}, nil
	case expr.OpE:
		return f.exponential(expr.Integer(1))
	case expr.OpFunc:
		return f.function(n)
	}
	if r, err := f.Exact(n, nil); err == nil {
		return f.rational(r)
	} else if errors.Is(err, ErrSteps) {
		return elem{}, err
	}
	return f.opaque(n), nil
}

func (f *Field) function(n *expr.Node) (elem, error) {
	switch n.Name {
	case "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch":
		v, err := f.circular(n)
		if errors.Is(err, errOpaque) {
			break
		}
		return v, err
	case "root":
		if k, err := f.Exact(n.Kids[1], nil); err == nil && k.IsInt() && k.Sign() > 0 && k.Num().BitLen() < 8 {
			return f.radical(n.Kids[0], k.Num().Int64(), 1)
		}
		return f.opaque(n), nil
	}
	if r, err := f.Exact(n, nil); err == nil {
		return f.rational(r)
	} else if errors.Is(err, ErrSteps) {
		return elem{}, err
	}
	if n.Name == "fact" {
		if v, err := f.factorial(n.Kids[0]); err == nil {
			return v, nil
		}
	}
	if n.Name == "abs" && expr.HasOp(n.Kids[0], expr.OpI) {
		if re, im, ok := f.complexRat(n.Kids[0]); ok {
			return f.radical(expr.Rational(new(big.Rat).Add(new(big.Rat).Mul(re, re), new(big.Rat).Mul(im, im))), 2, 1)
		}
	}
	f.Met = true
	if len(n.Kids) != 1 || n.Name == "det" || n.Name == "tr" || n.Kids[0].Op != expr.OpSym && !n.Kids[0].IsExpr() {
		return f.opaque(n), nil
	}
	v, err := f.Value(n.Kids[0])
	switch {
	case err != nil:
		return elem{}, err
	case n.Name == "abs" && v.im == 0: // |x-3| is |3-x|
		v = f.mul(v, v)
	}
	return f.named(n.Name, v), nil
}

// complexRat evaluates sums, products and whole powers of complex numbers with
// rational parts; the parts are the caller's.
func (b *Budget) complexRat(n *expr.Node) (re, im *big.Rat, ok bool) {
	if n.Op == expr.OpI {
		return new(big.Rat), big.NewRat(1, 1), true
	}
	if r, err := b.Exact(n, nil); err == nil {
		return new(big.Rat).Set(r), new(big.Rat), BitSize(r) < 2048
	}
	times := 1
	kids := n.Kids
	switch n.Op {
	case expr.OpAdd:
		re, im = new(big.Rat), new(big.Rat)
	case expr.OpMul:
		re, im = big.NewRat(1, 1), new(big.Rat)
	case expr.OpPow:
		e, err := b.Exact(n.Kids[1], nil)
		if err != nil || !e.IsInt() || e.Sign() < 0 || e.Num().BitLen() > 6 {
			return nil, nil, false
		}
		re, im, times, kids = big.NewRat(1, 1), new(big.Rat), int(e.Num().Int64()), n.Kids[:1]
	default:
		return nil, nil, false
	}
	for range times {
		for _, k := range kids {
			x, y, ok := b.complexRat(k)
			if !ok || BitSize(re)+BitSize(im) > 4096 || b.Spend(4) != nil {
				return nil, nil, false
			}
			if n.Op == expr.OpAdd {
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
func (f *Field) factorial(n *expr.Node) (elem, error) {
	r, err := f.Exact(n, nil)
	if err != nil || !r.IsInt() || r.Sign() < 0 || r.Num().BitLen() > 17 {
		return elem{}, errOpaque
	}
	k := r.Num().Uint64()
	if err := f.Spend(int(k / 4)); err != nil {
		return elem{}, err
	}
	v := uint64(1)
	for i := uint64(2); i <= k; i++ {
		v = f.mul64(v, i)
	}
	return elem{re: v}, nil
}

func (f *Field) rational(r *big.Rat) (elem, error) {
	if r.IsInt() {
		return elem{re: f.int(r.Num())}, nil
	}
	den := f.int(r.Denom())
	if den == 0 {
		return elem{}, errPole
	}
	return elem{re: f.mul64(f.int(r.Num()), f.inv64(den))}, nil
}

func (f *Field) number(n *expr.Node) (elem, error) {
	if n.Long == "" {
		return f.rational(n.Num)
	}
	if err := f.Spend(len(n.Long) / 16); err != nil {
		return elem{}, err
	}
	whole, fraction, _ := strings.Cut(n.Long, ".")
	v, ok := f.Digits(whole + fraction)
	if !ok {
		return f.opaque(n), nil // with an exponent beyond all measure
	}
	return elem{re: f.mul64(v, f.inv64(f.pow64(10, uint64(len(fraction)))))}, nil
}

// power handles integer exponents of any size, written as towers too,
// fractions, and exponents with variables.
func (f *Field) power(n *expr.Node) (elem, error) {
	base, exponent := n.Kids[0], n.Kids[1]
	e, err := f.Exact(exponent, nil)
	if err == nil && !e.IsInt() {
		if e.Denom().BitLen() > 6 || !e.Num().IsInt64() {
			return f.opaque(n), nil
		}
		if base.Op == expr.OpE {
			return f.exponential(exponent)
		}
		return f.radical(base, e.Denom().Int64(), e.Num().Int64())
	}
	if err != nil {
		if errors.Is(err, ErrSteps) {
			return elem{}, err
		}
		if v, err := f.symbolicPower(base, exponent); !errors.Is(err, errOpaque) {
			return v, err
		}
	}
	b, errB := f.Value(base)
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
	case errors.Is(err, ErrSteps):
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
func (f *Field) exponent(n *expr.Node, m uint64) (uint64, error) {
	if r, err := f.Exact(n, nil); err == nil {
		if !r.IsInt() {
			return 0, errOpaque
		}
		v := new(big.Int).Mod(r.Num(), new(big.Int).SetUint64(m))
		return v.Uint64(), nil
	}
	if n.Op == expr.OpPow && positiveTower(n) && n.Kids[0].Num.IsInt() {
		e, err := f.Exact(n.Kids[1], nil)
		if err == nil && e.IsInt() && e.Sign() > 0 {
			mod := new(big.Int).SetUint64(m)
			if e.Num().BitLen() > 1<<14 {
				return 0, errOpaque
			}
			if err := f.Spend(e.Num().BitLen()); err != nil {
				return 0, err
			}
			return new(big.Int).Exp(n.Kids[0].Num.Num(), e.Num(), mod).Uint64(), nil
		}
	}
	return 0, errOpaque
}

// radical is base^(num/index).
func (f *Field) radical(base *expr.Node, index, num int64) (elem, error) {
	r, err := f.Exact(base, nil)
	switch {
	case errors.Is(err, ErrSteps):
		return elem{}, err
	case err != nil:
		v, err := f.Value(base)
		if err != nil {
			return elem{}, err
		}
		f.Met = true
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
func (f *Field) rationalRoot(r *big.Rat, index int64) (elem, error) {
	if !r.Num().IsInt64() || !r.Denom().IsInt64() || r.Num().BitLen()+r.Denom().BitLen() > 62 || index > 64 {
		f.Met = true
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
			f.Met = true
			return f.named("root", elem{f.int(r.Num())<<1 ^ uint64(index), den}), nil
		}
	}
	// a^(1/n) b^(-1/n) = (a b^(n-1))^(1/n) / b, prime by prime.
	for _, part := range [2]struct {
		value uint64
		power int64
	}{{uint64(num), 1}, {den, index - 1}} {
		var err error
		Factor(part.value, func(prime uint64, count int64, whole bool) {
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
func (f *Field) primeRoot(prime uint64, index, count int64, certain bool) (elem, error) {
	if count == 0 {
		return elem{re: 1}, nil
	}
	f.Beyond = true
	if !certain {
		if *f.Cofactor == 0 {
			*f.Cofactor = prime
		}
		if *f.Cofactor != prime {
			f.Met = true
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
		f.Met = true
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

// Factor calls f with the prime factors of n and their powers. A factor that is
// perhaps no prime comes last with certain false.
func Factor(n uint64, f func(prime uint64, count int64, certain bool)) {
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
		if r, ok := RootOf(new(big.Int).SetUint64(n), 2); ok {
			f(r.Uint64(), 2, r.Uint64() < bound*bound)
			return
		}
	}
	f(n, 1, n < bound*bound)
}
