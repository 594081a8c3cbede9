package deciding

import (
	"errors"
	"math/big"
	"strconv"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// firstPrecision is tried first: most differences show at once.
const firstPrecision = 128

// finalPrecision is the binary precision at which agreement counts as equality.
// It grows with the texts and with the numbers in them, as the gap between
// different constants shrinks with both.
func (c *comparer) finalPrecision(sides ...*expr.Node) uint {
	fine := 0
	for _, n := range sides {
		fine += c.height(n)
	}
	return uint(min(max(256, 160+7*c.size, 2*fine+128), maxPrecision))
}

// maxPrecision leaves room for the guard bits of functions below constantBits.
const maxPrecision = 3072

// tooFine says whether the sides hold parts so small that agreement at the
// highest precision means nothing.
func (c *comparer) tooFine(sides ...*expr.Node) bool {
	fine := 0
	for _, n := range sides {
		fine += c.height(n)
	}
	return fine > maxPrecision-256
}

// numbers compares by ball arithmetic: constants at rising precision, other
// expressions at random points.
func (c *comparer) numbers(g, p *expr.Node) result {
	sides, loose := c.abstract(g, p)
	g, p = sides[0], sides[1]
	names := expr.SymbolsOf(g, p)
	if len(names) == 0 {
		return c.constants(g, p)
	}
	r := c.points(g, p, names)
	if loose && r.out == Different {
		return undecided(MethodInterval, "differs in a part that is not evaluated")
	}
	return r
}

// moderate says whether a float can be turned into a rational at no great cost.
func moderate(f *big.Float) bool {
	e := f.MantExp(nil)
	return e < 4000 && e > -4000
}

func (c *comparer) constants(g, p *expr.Node) result {
	rounded := expr.Inexact(g) || expr.Inexact(p)
	for _, prec := range []uint{firstPrecision, c.finalPrecision(g, p)} {
		v := &evaluation.Numeric{Arith: &evaluation.Arith{Budget: &c.Budget, Prec: prec}, Complex: true}
		x, err := v.Eval(g)
		if err == nil {
			var y evaluation.Cball
			if y, err = v.Eval(p); err == nil {
				if r, done := c.judge(v, x, y, rounded, prec != firstPrecision); done {
					if r.out == Equal && r.method == MethodInterval && c.tooFine(g, p) {
						return undecided(MethodLimit, "they agree, but parts of them are smaller than the precision")
					}
					return r
				}
				continue
			}
		}
		switch {
		case errors.Is(err, evaluation.ErrPrecision) && prec == firstPrecision:
		case errors.Is(err, evaluation.ErrSteps):
			return undecided(MethodLimit, "the budget of steps is used up")
		case errors.Is(err, evaluation.ErrUndefined):
			return undecided(MethodInterval, "an undefined value")
		default:
			if r, ok := c.magnitudes(g, p); ok {
				return r
			}
			return undecided(MethodInterval, err.Error())
		}
	}
	if r, ok := c.magnitudes(g, p); ok {
		return r
	}
	return undecided(MethodInterval, "the precision does not suffice")
}

// judge looks at one pair of values. A difference is proved by a ball that
// excludes zero; agreement counts only at the last precision, and only if the
// balls are small.
func (c *comparer) judge(v *evaluation.Numeric, x, y evaluation.Cball, rounded, last bool) (result, bool) {
	d := v.Cadd(x, y.Cneg())
	apart := !d.Re.HasZero() || !d.Im.HasZero()
	if rounded && x.Real && y.Real && (apart || last) && moderate(x.Re.Mid) && moderate(y.Re.Mid) {
		dr, _ := new(big.Float).Add(new(big.Float).Abs(d.Re.Mid), d.Re.Rad).Rat(nil)
		xr, _ := x.Re.Mid.Rat(nil)
		yr, _ := y.Re.Mid.Rat(nil)
		if dr != nil && xr != nil && yr != nil && c.within(dr, xr, yr) {
			return equal(MethodTolerance, "the same within the tolerance for decimals"), true
		}
	}
	if apart {
		return different(MethodInterval, "proved apart by ball arithmetic"), true
	}
	if !last {
		return result{}, false
	}
	size := evaluation.Widen(x.Re.Magnitude(), x.Im.Magnitude())
	if t := evaluation.Widen(y.Re.Magnitude(), y.Im.Magnitude()); t.Cmp(size) > 0 {
		size = t
	}
	bound := -int(v.Prec) / 2
	err := evaluation.Widen(d.Re.Rad, d.Im.Rad)
	if err.Sign() == 0 || err.MantExp(nil) < size.MantExp(nil)+bound || err.MantExp(nil) < bound {
		return equal(MethodInterval, "equal to "+strconv.Itoa(int(v.Prec)/2)+" binary places"), true
	}
	return result{}, false
}

// magnitudes compares constants too large to write down by their logarithms.
func (c *comparer) magnitudes(g, p *expr.Node) (result, bool) {
	a, okA := c.logOf(g)
	b, okB := c.logOf(p)
	if !okA || !okB {
		return result{}, false
	}
	v := &evaluation.Numeric{Arith: &evaluation.Arith{Budget: &c.Budget, Prec: c.finalPrecision(a, b)}}
	x, err := v.Eval(a)
	if err != nil {
		return result{}, false
	}
	y, err := v.Eval(b)
	if err != nil {
		return result{}, false
	}
	d := v.Sub(x.Re, y.Re)
	if hasFactorial(g) || hasFactorial(p) { // Stirling's formula is cut short by less than this
		d.Rad = evaluation.Widen(d.Rad, evaluation.NewRad().SetInt64(1_000_000))
	}
	if !d.HasZero() {
		return different(MethodInterval, "the logarithms are apart"), true
	}
	return result{}, false
}

// logOf writes the logarithm of a positive constant without calculating it.
func (c *comparer) logOf(n *expr.Node) (*expr.Node, bool) {
	switch n.Op {
	case expr.OpNum:
		if n.Long == "" && n.Num.Sign() > 0 {
			return expr.Call("ln", n), true
		}
	case expr.OpE:
		return expr.Integer(1), true
	case expr.OpPi:
		return expr.Call("ln", n), true
	case expr.OpMul:
		parts := make([]*expr.Node, len(n.Kids))
		for i, k := range n.Kids {
			l, ok := c.logOf(k)
			if !ok {
				return nil, false
			}
			parts[i] = l
		}
		return expr.Add(parts...), true
	case expr.OpPow:
		l, ok := c.logOf(n.Kids[0])
		if !ok || hasFactorial(n) {
			return nil, false
		}
		return expr.Mul(n.Kids[1], l), true
	case expr.OpFunc:
		// ln k! = k ln k - k + (ln 2πk)/2 + …; what is left out is allowed for
		// by the caller, up to k = e^10000.
		if k := n.Kids[0]; n.Name == "fact" && !hasFactorial(k) {
			return expr.Add(expr.Mul(k, expr.Call("ln", k)), expr.Neg(k)), true
		}
	}
	return nil, false
}

func hasFactorial(n *expr.Node) bool {
	return n.Any(func(k *expr.Node) bool { return k.Op == expr.OpFunc && k.Name == "fact" })
}

// ranges from which the points are drawn, as (low, high, negative) in about
// 64ths.
var ranges = [][3]int64{
	{40, 200, 0}, {40, 200, 1}, {3, 61, 0}, {3, 61, 2}, {70, 400, 0}, {3, 61, 1}, {200, 1600, 0},
	{70, 640, 1}, {40, 200, 2}, {30, 120, 0}, {65, 90, 0}, {600, 6400, 0},
}

// points evaluates both sides at random points. All points at which both are
// defined must agree, and there must be at least two.
func (c *comparer) points(g, p *expr.Node, names []string) result {
	seed := expr.Mix(g.Hash[0]^p.Hash[0]) + expr.Mix(g.Hash[1]^p.Hash[1])
	discrete := func(n *expr.Node) bool {
		return n.Any(func(k *expr.Node) bool {
			return k.Op == expr.OpFunc && (k.Name == "fact" || k.Name == "gamma" || k.Name == "binom" || k.Name == "gcd" || k.Name == "lcm") || k.Op == expr.OpBig && k.Name != "lim" ||
				k.Op == expr.OpPow && k.Kids[0].Op == expr.OpNum && k.Kids[0].Num.Sign() < 0 && len(expr.SymbolsOf(k.Kids[1])) > 0
		})
	}
	divisors := func(n *expr.Node) bool {
		return n.Any(func(k *expr.Node) bool {
			return k.Op == expr.OpFunc && (k.Name == "gcd" || k.Name == "lcm" || k.Name == "mod")
		})
	}
	whole := discrete(g) || discrete(p)
	rounded := expr.Inexact(g) || expr.Inexact(p)
	final := c.finalPrecision(g, p)
	agreed, wanted, near := 0, 4, 4
	if whole {
		wanted, near = 10, 8
	}
	common := whole && (divisors(g) || divisors(p))
	kinks, far := !whole && (evaluation.Kinked(g) || evaluation.Kinked(p)), new(big.Rat)
	if kinks || whole {
		far = c.reach(g, p)
	}
	// The numerator alone may be larger than any int64; far itself is below maxReach.
	beyond := big.NewRat(min(new(big.Int).Quo(far.Num(), far.Denom()).Int64(), maxWhole), 1)
	var last error
	for round := range 2 * len(ranges) {
		vars := evaluation.Env{}
		for i, name := range names {
			seed = expr.Mix(seed + uint64(i) + 0x9e3779b97f4a7c15)
			vars[name] = pick(seed, ranges[round%len(ranges)])
			switch {
			case whole:
				vars[name] = wholePoint(seed, i, round, common)
				switch {
				case agreed >= near:
					vars[name].Add(vars[name], beyond)
				case common && round%4 == 3: // the number itself, which may be a prime
					vars[name].Mul(vars[name], far)
				}
			case kinks && round >= len(ranges):
				n := vars[name].Mul(vars[name], far)
				if round%2 == 1 {
					n.Mul(n, far)
				}
				n.SetInt(new(big.Int).Quo(n.Num(), n.Denom()))
			}
		}
		prec := uint(firstPrecision)
		if agreed == 0 {
			prec = final
		}
		v := &evaluation.Numeric{Arith: &evaluation.Arith{Budget: &c.Budget, Prec: prec}, Vars: vars, Complex: expr.HasOp(g, expr.OpI) || expr.HasOp(p, expr.OpI)}
		x, err := v.Eval(g)
		if err != nil {
			if last = err; errors.Is(err, evaluation.ErrSteps) || errors.Is(err, evaluation.ErrUnknown) {
				break
			}
			continue
		}
		y, err := v.Eval(p)
		if err != nil {
			if last = err; errors.Is(err, evaluation.ErrSteps) || errors.Is(err, evaluation.ErrUnknown) {
				break
			}
			continue
		}
		r, done := c.judge(v, x, y, rounded, true)
		switch {
		case !done:
			last = evaluation.ErrPrecision
		case r.out == Different:
			return different(MethodInterval, "proved apart at a point by ball arithmetic")
		default:
			agreed++
		}
		// Agreement at positive points is not enough for |x| against x.
		if agreed >= wanted && round >= 3 && !kinks {
			break
		}
	}
	switch {
	case errors.Is(last, evaluation.ErrSteps) && agreed < near:
		return undecided(MethodLimit, "the budget of steps is used up")
	case agreed >= 2 && c.tooFine(g, p):
		return undecided(MethodLimit, "they agree, but parts of them are smaller than the precision")
	case agreed >= 2:
		return equal(MethodInterval, "equal at "+strconv.Itoa(agreed)+" random points")
	case last != nil:
		return undecided(MethodInterval, last.Error())
	}
	return undecided(MethodInterval, "defined at too few points")
}

// maxWhole bounds whole points: sums have as many terms, and their sums more.
const maxWhole = 120

// denominators of the points, so that no one frequency vanishes at all of them.
var denominators = [4]int64{61, 64, 67, 71}

// wholePoint is a positive integer for the i-th variable: even and odd by turns,
// and with factors in common if those are what counts.
func wholePoint(seed uint64, i, round int, common bool) *big.Rat {
	n := 2 + 2*int64(seed%5) + int64(round/4) + int64(round>>(i%2)&1)
	if common {
		n *= []int64{1, 6, 1, 12, 30, 1, 5, 2}[round%8]
	}
	return big.NewRat(n, 1)
}

func pick(seed uint64, r [3]int64) *big.Rat {
	n := r[0] + int64(seed%uint64(r[1]-r[0]+1))
	if r[2] == 1 || r[2] == 2 && seed>>40&1 == 1 {
		n = -n
	}
	return big.NewRat(n, denominators[seed>>50%4])
}
