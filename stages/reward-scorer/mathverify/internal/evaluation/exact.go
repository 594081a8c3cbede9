package evaluation

import (
	"errors"
	"math"
	"math/big"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// Limits of exact arithmetic.
const (
	maxBits    = 1 << 17 // of a numerator or denominator
	MaxSteps   = 70_000  // per comparison, over all methods; one is about half a microsecond
	maxFact    = 3_000   // largest factorial written out
	maxIndices = 2_000   // terms of a sum or product
)

var (
	errNotRational = errors.New("not a rational number")
	ErrUndefined   = errors.New("undefined")
	ErrSteps       = errors.New("the budget of steps is used up")
)

// Budget counts the work of one comparison, so that it ends at the same place
// on every machine.
type Budget struct {
	Left int
	bern []*big.Rat // Bernoulli numbers, once they are needed
}

func (b *Budget) Spend(n int) error {
	if b.Left -= n; b.Left < 0 {
		return ErrSteps
	}
	return nil
}

// Env gives values to bound and sampled variables.
type Env map[string]*big.Rat

// Exact evaluates n in the rationals.
func (b *Budget) Exact(n *expr.Node, vars Env) (*big.Rat, error) {
	if err := b.Spend(1); err != nil {
		return nil, err
	}
	switch n.Op {
	case expr.OpNum:
		if n.Long != "" {
			return nil, errNotRational
		}
		return n.Num, nil
	case expr.OpSym:
		if v := vars[n.Name]; v != nil {
			return v, nil
		}
		return nil, errNotRational
	case expr.OpAdd, expr.OpMul:
		if r, ok := SmallFraction(n); ok {
			return r.Rat(), nil
		}
		return b.fold(n, vars)
	case expr.OpPow:
		if r, ok := SmallFraction(n); ok {
			return r.Rat(), nil
		}
		return b.exactPow(n, vars)
	case expr.OpPercent:
		x, err := b.Exact(n.Kids[0], vars)
		if err != nil {
			return nil, err
		}
		return new(big.Rat).Mul(x, big.NewRat(1, 100)), nil
	case expr.OpDeg:
		return b.Exact(n.Kids[0], vars)
	case expr.OpRatio:
		if len(n.Kids) != 2 {
			return nil, errNotRational
		}
		x, err := b.Exact(n.Kids[0], vars)
		if err != nil {
			return nil, err
		}
		y, err := b.Exact(n.Kids[1], vars)
		if err != nil {
			return nil, err
		}
		if y.Sign() == 0 {
			return nil, ErrUndefined
		}
		return new(big.Rat).Quo(x, y), nil
	case expr.OpBased:
		return exactBased(n)
	case expr.OpFunc:
		return b.exactFunc(n, vars)
	case expr.OpBig:
		return b.exactBig(n, vars)
	}
	return nil, errNotRational
}

func BitSize(x *big.Rat) int { return x.Num().BitLen() + x.Denom().BitLen() }

func (b *Budget) fold(n *expr.Node, vars Env) (*big.Rat, error) {
	var acc *big.Rat
	whole := new(big.Int) // the integers among the first terms, summed without gcd
	for i, k := range n.Kids {
		x, err := b.Exact(k, vars)
		if err != nil {
			return nil, err
		}
		if acc == nil {
			if n.Op == expr.OpAdd && x.IsInt() && x.Num().BitLen() <= 64 {
				whole.Add(whole, x.Num())
				if i == len(n.Kids)-1 {
					return new(big.Rat).SetInt(whole), nil
				}
				continue
			}
			acc = new(big.Rat).Set(x)
			if n.Op == expr.OpAdd {
				acc.Add(acc, new(big.Rat).SetInt(whole))
			}
			continue
		}
		if BitSize(acc)+BitSize(x) > maxBits {
			return nil, errNotRational
		}
		if err := b.Spend(BitSize(acc) / 64 * (1 + BitSize(x)/2048)); err != nil {
			return nil, err
		}
		if n.Op == expr.OpAdd {
			acc.Add(acc, x)
		} else {
			acc.Mul(acc, x)
		}
	}
	return acc, nil
}

func (b *Budget) exactPow(n *expr.Node, vars Env) (*big.Rat, error) {
	x, err := b.Exact(n.Kids[0], vars)
	if err != nil {
		return nil, err
	}
	e, err := b.Exact(n.Kids[1], vars)
	if err != nil {
		// 0 to any positive power is 0, however large.
		if x.Sign() == 0 && n.Kids[1].Op == expr.OpPow && positiveTower(n.Kids[1]) {
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
		return nil, ErrUndefined
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
	if m < 0 || m > maxBits || int64(BitSize(x))*m > maxBits {
		return nil, errNotRational
	}
	words := int(int64(BitSize(x)) * m / 64)
	if err := b.Spend(words + words*words/64); err != nil {
		return nil, err
	}
	num := new(big.Int).Exp(x.Num(), big.NewInt(m), nil)
	den := new(big.Int).Exp(x.Denom(), big.NewInt(m), nil)
	if k < 0 {
		num, den = den, num
	}
	return new(big.Rat).SetFrac(num, den), nil
}

func positiveTower(n *expr.Node) bool {
	for n.Op == expr.OpPow {
		if n.Kids[0].Op != expr.OpNum || n.Kids[0].Num.Sign() <= 0 {
			return false
		}
		n = n.Kids[1]
	}
	return n.Op == expr.OpNum
}

// perfectRoot returns x^e for a fraction e if it is rational and x ≥ 0.
func (b *Budget) perfectRoot(x, e *big.Rat) (*big.Rat, error) {
	if x.Sign() < 0 || BitSize(x) > 4096 || !e.Denom().IsInt64() || e.Denom().Int64() > 64 || e.Num().BitLen() > 8 {
		return nil, errNotRational
	}
	n := int(e.Denom().Int64())
	num, ok := RootOf(x.Num(), n)
	if !ok {
		return nil, errNotRational
	}
	den, ok := RootOf(x.Denom(), n)
	if !ok {
		return nil, errNotRational
	}
	if err := b.Spend(BitSize(x) / 8); err != nil {
		return nil, err
	}
	return b.exactPow(expr.Pow(expr.Rational(new(big.Rat).SetFrac(num, den)), expr.Integer(e.Num().Int64())), nil)
}

// RootOf returns the exact n-th root of x ≥ 0.
func RootOf(x *big.Int, n int) (*big.Int, bool) {
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

func exactBased(n *expr.Node) (*big.Rat, error) {
	base := n.Kids[0].Num
	if base == nil || !base.IsInt() || !base.Num().IsInt64() || base.Num().Int64() < 2 || base.Num().Int64() > 10 || len(n.Name) > 2000 {
		return nil, errNotRational
	}
	i, ok := new(big.Int).SetString(n.Name, int(base.Num().Int64()))
	if !ok {
		return nil, errNotRational
	}
	return new(big.Rat).SetInt(i), nil
}

func (b *Budget) exactFunc(n *expr.Node, vars Env) (*big.Rat, error) {
	args := make([]*big.Rat, len(n.Kids))
	for i, k := range n.Kids {
		x, err := b.Exact(k, vars)
		if err != nil {
			return nil, err
		}
		args[i] = x
	}
	x := args[0]
	switch n.Name {
	case "abs", "norm":
		return new(big.Rat).Abs(x), nil
	case "re":
		return x, nil
	case "im":
		return new(big.Rat), nil
	case "floor", "ceil":
		f := new(big.Int).Div(x.Num(), x.Denom()) // Euclidean, and the denominator is positive
		if n.Name == "ceil" && !x.IsInt() {
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
		if n.Name == "gamma" {
			k = new(big.Rat).Sub(x, big.NewRat(1, 1))
		}
		if !k.IsInt() || k.Sign() < 0 {
			return nil, errNotRational
		}
		if k.Num().BitLen() > 12 || k.Num().Int64() > maxFact {
			return nil, errNotRational
		}
		m := k.Num().Int64()
		if err := b.Spend(int(m)); err != nil {
			return nil, err
		}
		return new(big.Rat).SetInt(new(big.Int).MulRange(1, m)), nil
	case "binom":
		return b.binomial(args)
	case "gcd", "lcm":
		return Divisors(n.Name, args)
	case "max", "min":
		best := x
		for _, a := range args[1:] {
			if c := a.Cmp(best); c > 0 && n.Name == "max" || c < 0 && n.Name == "min" {
				best = a
			}
		}
		return best, nil
	case "mod":
		if len(args) != 2 || args[1].Sign() == 0 {
			return nil, ErrUndefined
		}
		q := new(big.Rat).Quo(x, args[1])
		f := new(big.Int).Div(q.Num(), q.Denom())
		return new(big.Rat).Sub(x, q.Mul(new(big.Rat).SetInt(f), args[1])), nil
	case "logb":
		return exactLog(x, args[1])
	}
	return nil, errNotRational
}

func (b *Budget) binomial(args []*big.Rat) (*big.Rat, error) {
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
	if err := b.Spend(int(j) * 4); err != nil {
		return nil, err
	}
	if m < 0 {
		return nil, errNotRational
	}
	return new(big.Rat).SetInt(new(big.Int).Binomial(m, j)), nil
}

// Divisors is gcd or lcm, over fractions too: the largest number of which all
// are integer multiples, and the smallest positive common multiple.
func Divisors(name string, args []*big.Rat) (*big.Rat, error) {
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
		return nil, ErrUndefined
	}
	if x.Sign() <= 0 || BitSize(x) > 4096 || BitSize(base) > 1024 || base.Cmp(big.NewRat(1, 1)) < 0 {
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
func (b *Budget) exactBig(n *expr.Node, vars Env) (*big.Rat, error) {
	if n.Name == "int" {
		return b.exactIntegral(n, vars)
	}
	if n.Name != "sum" && n.Name != "prod" || n.Kids[2].Op != expr.OpSym || n.Kids[2].Name == "" {
		return nil, errNotRational
	}
	lo, err := b.Exact(n.Kids[0], vars)
	if err != nil {
		return nil, err
	}
	hi, err := b.Exact(n.Kids[1], vars)
	if err != nil {
		return nil, err
	}
	if !lo.IsInt() || !hi.IsInt() || !lo.Num().IsInt64() || !hi.Num().IsInt64() {
		return nil, errNotRational
	}
	from, to := lo.Num().Int64(), hi.Num().Int64()
	if to-from > maxIndices && n.Name == "sum" {
		return b.longSum(n, from, to, vars)
	}
	if to-from > maxIndices || to-from < -maxIndices {
		return nil, errNotRational
	}
	inner := Env{}
	for k, v := range vars {
		inner[k] = v
	}
	if n.Name == "prod" && from == 1 && n.Kids[3].Same(n.Kids[2]) {
		return b.Exact(expr.Call("fact", n.Kids[1]), vars)
	}
	acc := big.NewRat(0, 1)
	if n.Name == "prod" {
		acc.SetInt64(1)
	}
	for k := from; k <= to; k++ {
		inner[n.Kids[2].Name] = big.NewRat(k, 1)
		x, err := b.Exact(n.Kids[3], inner)
		if err != nil {
			return nil, err
		}
		if BitSize(acc)+BitSize(x) > maxBits/8 {
			return nil, errNotRational
		}
		if n.Name == "sum" {
			acc.Add(acc, x)
		} else {
			acc.Mul(acc, x)
		}
		if err := b.Spend(2 + BitSize(acc)/16); err != nil {
			return nil, err
		}
	}
	return acc, nil
}
