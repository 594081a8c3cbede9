package mathverify

import (
	"errors"
	"math"
	"math/big"
)

// Limits of exact arithmetic.
const (
	maxBits    = 1 << 17 // of a numerator or denominator
	maxSteps   = 70_000  // per comparison, over all methods; one is about half a microsecond
	maxFact    = 3_000   // largest factorial written out
	maxIndices = 2_000   // terms of a sum or product
)

var (
	errNotRational = errors.New("not a rational number")
	errUndefined   = errors.New("undefined")
	errSteps       = errors.New("the budget of steps is used up")
)

// budget counts the work of one comparison, so that it ends at the same place
// on every machine.
type budget struct {
	left int
	bern []*big.Rat // Bernoulli numbers, once they are needed
}

func (b *budget) spend(n int) error {
	if b.left -= n; b.left < 0 {
		return errSteps
	}
	return nil
}

// env gives values to bound and sampled variables.
type env map[string]*big.Rat

// exact evaluates n in the rationals.
func (b *budget) exact(n *node, vars env) (*big.Rat, error) {
	if err := b.spend(1); err != nil {
		return nil, err
	}
	switch n.op {
	case opNum:
		if n.long != "" {
			return nil, errNotRational
		}
		return n.num, nil
	case opSym:
		if v := vars[n.name]; v != nil {
			return v, nil
		}
		return nil, errNotRational
	case opAdd, opMul:
		if r, ok := smallFraction(n); ok {
			return r.rat(), nil
		}
		return b.fold(n, vars)
	case opPow:
		if r, ok := smallFraction(n); ok {
			return r.rat(), nil
		}
		return b.exactPow(n, vars)
	case opPercent:
		x, err := b.exact(n.kids[0], vars)
		if err != nil {
			return nil, err
		}
		return new(big.Rat).Mul(x, big.NewRat(1, 100)), nil
	case opDeg:
		return b.exact(n.kids[0], vars)
	case opRatio:
		if len(n.kids) != 2 {
			return nil, errNotRational
		}
		x, err := b.exact(n.kids[0], vars)
		if err != nil {
			return nil, err
		}
		y, err := b.exact(n.kids[1], vars)
		if err != nil {
			return nil, err
		}
		if y.Sign() == 0 {
			return nil, errUndefined
		}
		return new(big.Rat).Quo(x, y), nil
	case opBased:
		return exactBased(n)
	case opFunc:
		return b.exactFunc(n, vars)
	case opBig:
		return b.exactBig(n, vars)
	}
	return nil, errNotRational
}

func bitSize(x *big.Rat) int { return x.Num().BitLen() + x.Denom().BitLen() }

func (b *budget) fold(n *node, vars env) (*big.Rat, error) {
	var acc *big.Rat
	whole := new(big.Int) // the integers among the first terms, summed without gcd
	for i, k := range n.kids {
		x, err := b.exact(k, vars)
		if err != nil {
			return nil, err
		}
		if acc == nil {
			if n.op == opAdd && x.IsInt() && x.Num().BitLen() <= 64 {
				whole.Add(whole, x.Num())
				if i == len(n.kids)-1 {
					return new(big.Rat).SetInt(whole), nil
				}
				continue
			}
			acc = new(big.Rat).Set(x)
			if n.op == opAdd {
				acc.Add(acc, new(big.Rat).SetInt(whole))
			}
			continue
		}
		if bitSize(acc)+bitSize(x) > maxBits {
			return nil, errNotRational
		}
		if err := b.spend(bitSize(acc) / 64 * (1 + bitSize(x)/2048)); err != nil {
			return nil, err
		}
		if n.op == opAdd {
			acc.Add(acc, x)
		} else {
			acc.Mul(acc, x)
		}
	}
	return acc, nil
}

func (b *budget) exactPow(n *node, vars env) (*big.Rat, error) {
	x, err := b.exact(n.kids[0], vars)
	if err != nil {
		return nil, err
	}
	e, err := b.exact(n.kids[1], vars)
	if err != nil {
		// 0 to any positive power is 0, however large.
		if x.Sign() == 0 && n.kids[1].op == opPow && positiveTower(n.kids[1]) {
			return new(big.Rat), nil
		}
		return nil, err
	}
	if !e.IsInt() {
		return b.perfectRoot(x, e)
	}
	if x.Sign() == 0 && e.Sign() <= 0 {
		if e.Sign() == 0 {
			return big.NewRat(1, 1), nil
		}
		return nil, errUndefined
	}
	if x.IsInt() && x.Num().BitLen() <= 1 { // 0, 1, -1
		if x.Sign() < 0 && e.Num().Bit(0) == 0 {
			return big.NewRat(1, 1), nil
		}
		return x, nil
	}
	if !e.Num().IsInt64() {
		return nil, errNotRational
	}
	k := e.Num().Int64()
	m := max(k, -k)
	if m < 0 || m > maxBits || int64(bitSize(x))*m > maxBits {
		return nil, errNotRational
	}
	words := int(int64(bitSize(x)) * m / 64)
	if err := b.spend(words + words*words/64); err != nil {
		return nil, err
	}
	num := new(big.Int).Exp(x.Num(), big.NewInt(m), nil)
	den := new(big.Int).Exp(x.Denom(), big.NewInt(m), nil)
	if k < 0 {
		num, den = den, num
	}
	return new(big.Rat).SetFrac(num, den), nil
}

func positiveTower(n *node) bool {
	for n.op == opPow {
		if n.kids[0].op != opNum || n.kids[0].num.Sign() <= 0 {
			return false
		}
		n = n.kids[1]
	}
	return n.op == opNum
}

// perfectRoot returns x^e for a fraction e if it is rational and x ≥ 0.
func (b *budget) perfectRoot(x, e *big.Rat) (*big.Rat, error) {
	if x.Sign() < 0 || bitSize(x) > 4096 || !e.Denom().IsInt64() || e.Denom().Int64() > 64 || e.Num().BitLen() > 8 {
		return nil, errNotRational
	}
	n := int(e.Denom().Int64())
	num, ok := rootOf(x.Num(), n)
	if !ok {
		return nil, errNotRational
	}
	den, ok := rootOf(x.Denom(), n)
	if !ok {
		return nil, errNotRational
	}
	if err := b.spend(bitSize(x) / 8); err != nil {
		return nil, err
	}
	return b.exactPow(pow(rational(new(big.Rat).SetFrac(num, den)), integer(e.Num().Int64())), nil)
}

// rootOf returns the exact n-th root of x ≥ 0.
func rootOf(x *big.Int, n int) (*big.Int, bool) {
	if x.Sign() == 0 || n == 1 {
		return x, true
	}
	if n == 2 && x.IsInt64() && x.Sign() > 0 && x.BitLen() <= 52 {
		r := int64(math.Sqrt(float64(x.Int64())))
		if r*r != x.Int64() {
			return nil, false
		}
		return big.NewInt(r), true
	}
	if n == 2 {
		r := new(big.Int).Sqrt(x)
		return r, new(big.Int).Mul(r, r).Cmp(x) == 0
	}
	lo, hi := big.NewInt(0), new(big.Int).Lsh(big.NewInt(1), uint(x.BitLen()/n+1))
	e := big.NewInt(int64(n))
	for lo.Cmp(hi) < 0 {
		mid := new(big.Int).Add(lo, hi)
		mid.Rsh(mid.Add(mid, big.NewInt(1)), 1)
		if new(big.Int).Exp(mid, e, nil).Cmp(x) <= 0 {
			lo = mid
		} else {
			hi = mid.Sub(mid, big.NewInt(1))
		}
	}
	return lo, new(big.Int).Exp(lo, e, nil).Cmp(x) == 0
}

func exactBased(n *node) (*big.Rat, error) {
	base := n.kids[0].num
	if base == nil || !base.IsInt() || !base.Num().IsInt64() || base.Num().Int64() < 2 || base.Num().Int64() > 10 || len(n.name) > 2000 {
		return nil, errNotRational
	}
	i, ok := new(big.Int).SetString(n.name, int(base.Num().Int64()))
	if !ok {
		return nil, errNotRational
	}
	return new(big.Rat).SetInt(i), nil
}

func (b *budget) exactFunc(n *node, vars env) (*big.Rat, error) {
	args := make([]*big.Rat, len(n.kids))
	for i, k := range n.kids {
		x, err := b.exact(k, vars)
		if err != nil {
			return nil, err
		}
		args[i] = x
	}
	x := args[0]
	switch n.name {
	case "abs", "norm":
		return new(big.Rat).Abs(x), nil
	case "re":
		return x, nil
	case "im":
		return new(big.Rat), nil
	case "floor", "ceil":
		f := new(big.Int).Div(x.Num(), x.Denom()) // Euclidean, and the denominator is positive
		if n.name == "ceil" && !x.IsInt() {
			f.Add(f, big.NewInt(1))
		}
		return new(big.Rat).SetInt(f), nil
	case "root":
		e := args[1]
		if !e.IsInt() || e.Sign() <= 0 {
			return nil, errNotRational
		}
		if x.Sign() < 0 && e.Num().Bit(0) == 1 && e.Num().Cmp(big.NewInt(1)) != 0 {
			r, err := b.perfectRoot(new(big.Rat).Neg(x), new(big.Rat).Inv(e))
			if err != nil {
				return nil, err
			}
			return new(big.Rat).Neg(r), nil
		}
		return b.perfectRoot(x, new(big.Rat).Inv(e))
	case "fact", "gamma":
		k := x
		if n.name == "gamma" {
			k = new(big.Rat).Sub(x, big.NewRat(1, 1))
		}
		if !k.IsInt() || k.Sign() < 0 {
			return nil, errNotRational
		}
		if k.Num().BitLen() > 12 || k.Num().Int64() > maxFact {
			return nil, errNotRational
		}
		m := k.Num().Int64()
		if err := b.spend(int(m)); err != nil {
			return nil, err
		}
		return new(big.Rat).SetInt(new(big.Int).MulRange(1, m)), nil
	case "binom":
		return b.binomial(args)
	case "gcd", "lcm":
		return divisors(n.name, args)
	case "max", "min":
		best := x
		for _, a := range args[1:] {
			if c := a.Cmp(best); c > 0 && n.name == "max" || c < 0 && n.name == "min" {
				best = a
			}
		}
		return best, nil
	case "mod":
		if len(args) != 2 || args[1].Sign() == 0 {
			return nil, errUndefined
		}
		q := new(big.Rat).Quo(x, args[1])
		f := new(big.Int).Div(q.Num(), q.Denom())
		return new(big.Rat).Sub(x, q.Mul(new(big.Rat).SetInt(f), args[1])), nil
	case "logb":
		return exactLog(x, args[1])
	}
	return nil, errNotRational
}

func (b *budget) binomial(args []*big.Rat) (*big.Rat, error) {
	n, k := args[0], args[1]
	if k.IsInt() && k.Sign() < 0 && n.IsInt() && n.Sign() >= 0 {
		return new(big.Rat), nil
	}
	if !k.IsInt() || k.Sign() < 0 || !n.IsInt() || !n.Num().IsInt64() || !k.Num().IsInt64() {
		return nil, errNotRational
	}
	m, j := n.Num().Int64(), k.Num().Int64()
	if m >= 0 {
		if j > m {
			return new(big.Rat), nil
		}
		j = min(j, m-j)
	}
	if j > 1000 || m > 1<<40 {
		return nil, errNotRational
	}
	if err := b.spend(int(j) * 4); err != nil {
		return nil, err
	}
	if m < 0 {
		return nil, errNotRational
	}
	return new(big.Rat).SetInt(new(big.Int).Binomial(m, j)), nil
}

// divisors is gcd or lcm, over fractions too: the largest number of which all
// are integer multiples, and the smallest positive common multiple.
func divisors(name string, args []*big.Rat) (*big.Rat, error) {
	acc := new(big.Rat).Abs(args[0])
	for _, a := range args[1:] {
		a = new(big.Rat).Abs(a)
		if acc.Sign() == 0 || a.Sign() == 0 {
			if name == "lcm" {
				return new(big.Rat), nil
			}
			acc.Add(acc, a)
			continue
		}
		den := new(big.Int).Mul(acc.Denom(), a.Denom())
		x := new(big.Int).Mul(acc.Num(), a.Denom())
		y := new(big.Int).Mul(a.Num(), acc.Denom())
		g := new(big.Int).GCD(nil, nil, x, y)
		if name == "gcd" {
			acc = new(big.Rat).SetFrac(g, den)
		} else {
			acc = new(big.Rat).SetFrac(x.Mul(x, y), g.Mul(g, den))
		}
	}
	return acc, nil
}

// exactLog is the logarithm of x to a base, if it is an integer.
func exactLog(base, x *big.Rat) (*big.Rat, error) {
	if base.Sign() <= 0 || base.Cmp(big.NewRat(1, 1)) == 0 {
		return nil, errUndefined
	}
	if x.Sign() <= 0 || bitSize(x) > 4096 || bitSize(base) > 1024 || base.Cmp(big.NewRat(1, 1)) < 0 {
		return nil, errNotRational
	}
	y, sign := new(big.Rat).Set(x), int64(1)
	one := big.NewRat(1, 1)
	if y.Cmp(one) < 0 {
		y.Inv(y)
		sign = -1
	}
	for k := int64(0); k < 512; k++ {
		if y.Cmp(one) == 0 {
			return big.NewRat(sign*k, 1), nil
		}
		if y.Cmp(base) < 0 {
			break
		}
		y.Quo(y, base)
	}
	return nil, errNotRational
}

// exactBig evaluates finite sums and products, and integrals of polynomials.
func (b *budget) exactBig(n *node, vars env) (*big.Rat, error) {
	if n.name == "int" {
		return b.exactIntegral(n, vars)
	}
	if n.name != "sum" && n.name != "prod" || n.kids[2].op != opSym || n.kids[2].name == "" {
		return nil, errNotRational
	}
	lo, err := b.exact(n.kids[0], vars)
	if err != nil {
		return nil, err
	}
	hi, err := b.exact(n.kids[1], vars)
	if err != nil {
		return nil, err
	}
	if !lo.IsInt() || !hi.IsInt() || !lo.Num().IsInt64() || !hi.Num().IsInt64() {
		return nil, errNotRational
	}
	from, to := lo.Num().Int64(), hi.Num().Int64()
	if to-from > maxIndices && n.name == "sum" {
		return b.longSum(n, from, to, vars)
	}
	if to-from > maxIndices || to-from < -maxIndices {
		return nil, errNotRational
	}
	inner := env{}
	for k, v := range vars {
		inner[k] = v
	}
	if n.name == "prod" && from == 1 && n.kids[3].same(n.kids[2]) {
		return b.exact(call("fact", n.kids[1]), vars)
	}
	acc := big.NewRat(0, 1)
	if n.name == "prod" {
		acc.SetInt64(1)
	}
	for k := from; k <= to; k++ {
		inner[n.kids[2].name] = big.NewRat(k, 1)
		x, err := b.exact(n.kids[3], inner)
		if err != nil {
			return nil, err
		}
		if bitSize(acc)+bitSize(x) > maxBits/8 {
			return nil, errNotRational
		}
		if n.name == "sum" {
			acc.Add(acc, x)
		} else {
			acc.Mul(acc, x)
		}
		if err := b.spend(2 + bitSize(acc)/16); err != nil {
			return nil, err
		}
	}
	return acc, nil
}
