package mathverify

import (
	"errors"
	"math/big"
	"strconv"
)

// Integrals, infinite sums and products, and limits are estimated at two orders
// of a method that converges fast. Two orders that agree and a value that
// agrees with the finer one to twice as many places count as equality; a
// difference is not proved so, and is left undecided.
const (
	estimatePrecision = 160 // of the terms
	agreeOrders       = -42 // binary exponent, relative, of the two orders' gap
	agreeValues       = -84 // of the finer one's gap to the other side
)

var errConverge = errors.New("no method that converges")

// estimated compares if a side holds something that can only be estimated.
func (c *comparer) estimated(g, p *node) (result, bool) {
	if !hasOp(g, opBig) && !hasOp(p, opBig) {
		return result{}, false
	}
	names := symbolsOf(free(g), free(p))
	rounds := 1
	if len(names) > 0 {
		rounds = 2
	}
	seed := mix(g.hash[0] ^ p.hash[0])
	for round := range rounds {
		vars := env{}
		for i, name := range names {
			seed = mix(seed + uint64(i) + 1)
			vars[name] = pick(seed, ranges[2+round*4%len(ranges)])
		}
		v := &numeric{arith: &arith{budget: &c.budget, prec: estimatePrecision}, vars: vars, complex: hasOp(g, opI) || hasOp(p, opI), estimate: true}
		x, err := v.eval(g)
		if err != nil {
			return result{}, false
		}
		y, err := v.eval(p)
		if err != nil || !x.real || !y.real {
			return result{}, false
		}
		d := new(big.Float).Abs(v.sub(x.re, y.re).mid)
		size := 1
		for _, s := range []*big.Float{x.re.mid, y.re.mid} {
			if s.Sign() != 0 {
				size = max(size, s.MantExp(nil))
			}
		}
		if rounded := inexact(g) || inexact(p); rounded && moderate(x.re.mid) && moderate(y.re.mid) {
			dr, _ := d.Rat(nil)
			xr, _ := x.re.mid.Rat(nil)
			yr, _ := y.re.mid.Rat(nil)
			if !c.within(dr, xr, yr) {
				return result{}, false
			}
			continue
		}
		if d.Sign() != 0 && d.MantExp(nil) > size+agreeValues {
			return result{}, false
		}
		if c.height(g)+c.height(p) > -agreeValues {
			return result{}, false // parts of them may be smaller than what is compared
		}
	}
	if inexact(g) || inexact(p) {
		return equal(MethodTolerance, "the same within the tolerance for decimals, by a numerical estimate"), true
	}
	return equal(MethodInterval, "equal to "+strconv.Itoa(-agreeValues)+" binary places, by a numerical estimate"), true
}

// free is n without its bound variables, for listing the others.
func free(n *node) *node {
	return n.rewrite(func(k *node) *node {
		at := boundAt(k)
		if at < 0 || k.kids[at].op != opSym {
			return k
		}
		name := k.kids[at].name
		return k.rewrite(func(s *node) *node {
			if s.op == opSym && s.name == name {
				return integer(2)
			}
			return s
		})
	})
}

// sampler evaluates the body of n at values of its bound variable.
func (v *numeric) sampler(n *node, prec uint) func(*big.Float) (*big.Float, error) {
	inner := &numeric{arith: &arith{budget: v.budget, prec: prec}, vars: env{}, estimate: v.estimate}
	for k, x := range v.vars {
		inner.vars[k] = x
	}
	name, body := n.kids[boundAt(n)].name, n.kids[len(n.kids)-1]
	return func(x *big.Float) (*big.Float, error) {
		r, _ := x.Rat(nil)
		if r == nil || bitSize(r) > 20_000 {
			return nil, errPrecision
		}
		inner.vars[name] = r
		y, err := inner.eval(body)
		if err != nil {
			return nil, err
		}
		if !y.real {
			return nil, errNotReal
		}
		return y.re.mid, nil
	}
}

// guess is the ball of an estimate, if two orders agree.
func (v *numeric) guess(coarse, fine *big.Float) (cball, error) {
	d := v.new().Sub(fine, coarse)
	size := 1
	if fine.Sign() != 0 {
		size = max(size, fine.MantExp(nil))
	}
	if fine.IsInf() || d.Sign() != 0 && d.MantExp(nil) > size+agreeOrders {
		return cball{}, errConverge
	}
	return v.realBall(ball{v.new().Set(fine), newRad()}), nil
}

// estimateBig is the value of an integral, infinite sum or product, or limit.
func (v *numeric) estimateBig(n *node) (cball, error) {
	if boundAt(n) < 0 || n.kids[boundAt(n)].op != opSym {
		return cball{}, errUnknown
	}
	switch n.name {
	case "int":
		return v.estimateIntegral(n)
	case "sum", "prod":
		return v.estimateSeries(n)
	}
	return v.estimateLimit(n)
}

// estimateSeries applies Levin's u-transform to the partial sums or products.
func (v *numeric) estimateSeries(n *node) (cball, error) {
	if !n.kids[1].same(plusInf) {
		return cball{}, errUnknown
	}
	lo, err := v.exact(n.kids[0], v.vars)
	if err != nil || !lo.IsInt() || lo.Num().BitLen() > 20 {
		return cball{}, errUnknown
	}
	const terms, prec = 52, 512
	f := v.sampler(n, prec)
	wide := func() *big.Float { return new(big.Float).SetPrec(prec) }
	sums, steps := make([]*big.Float, terms), make([]*big.Float, terms)
	acc := wide()
	if n.name == "prod" {
		acc.SetInt64(1)
	}
	for j := range terms {
		if err := v.spend(40); err != nil {
			return cball{}, err
		}
		t, err := f(wide().SetInt64(lo.Num().Int64() + int64(j)))
		if err != nil {
			return cball{}, err
		}
		next := wide()
		if n.name == "sum" {
			next.Add(acc, t)
		} else {
			next.Mul(acc, t)
		}
		sums[j], steps[j] = next, wide().Sub(next, acc)
		acc = next
	}
	if !decays(steps) {
		return cball{}, errConverge
	}
	coarse, ok := levin(sums[:terms-8], steps[:terms-8])
	if !ok {
		return cball{}, errConverge
	}
	fine, ok := levin(sums, steps)
	if !ok {
		return cball{}, errConverge
	}
	return v.guess(coarse, fine)
}

// decays says whether a series with these terms can be trusted to converge:
// terms of one sign must fall faster than 1/n, others at all. The transform
// gives values to divergent series too.
func decays(terms []*big.Float) bool {
	last := len(terms) - 1
	if terms[last].Sign() == 0 || terms[last-1].Sign() == 0 || terms[last/2].Sign() == 0 {
		return false
	}
	ratio := func(a, b *big.Float) float64 {
		q, _ := new(big.Float).SetPrec(64).Quo(a, b).Float64()
		return q
	}
	q := ratio(terms[last], terms[last-1])
	half := ratio(terms[last], terms[last/2])
	if q > 0 {
		return float64(last)*(1-q) > 1.1 && half < 0.49 && half > 0
	}
	return q > -1 && half > -0.9 && half < 0.9
}

func levin(sums, steps []*big.Float) (*big.Float, bool) {
	k := len(sums) - 1
	prec := sums[0].Prec()
	wide := func() *big.Float { return new(big.Float).SetPrec(prec) }
	num, den := wide(), wide()
	choose := big.NewInt(1)
	for j := 0; j <= k; j++ {
		if steps[j].Sign() == 0 {
			return nil, false
		}
		// (-1)^j C(k,j) ((j+1)/(k+1))^(k-2) / step, up to a factor that cancels
		w := wide().SetInt(new(big.Int).Exp(big.NewInt(int64(j+1)), big.NewInt(int64(k-2)), nil))
		w.Mul(w, wide().SetInt(choose))
		w.Quo(w, steps[j])
		if j%2 == 1 {
			w.Neg(w)
		}
		num.Add(num, wide().Mul(w, sums[j]))
		den.Add(den, w)
		choose.Mul(choose, big.NewInt(int64(k-j)))
		choose.Quo(choose, big.NewInt(int64(j+1)))
	}
	if den.Sign() == 0 {
		return nil, false
	}
	return num.Quo(num, den), true
}

// estimateLimit extrapolates from points that halve their distance.
func (v *numeric) estimateLimit(n *node) (cball, error) {
	to := n.kids[1]
	if to.same(plusInf) {
		return v.approach(n, nil, 1)
	}
	if to.same(minusInf) {
		return v.approach(n, nil, -1)
	}
	at, err := v.exact(to, v.vars)
	if err != nil {
		return cball{}, errUnknown
	}
	switch n.name {
	case "lim+":
		return v.approach(n, at, 1)
	case "lim-":
		return v.approach(n, at, -1)
	}
	right, err := v.approach(n, at, 1)
	if err != nil {
		return cball{}, err
	}
	left, err := v.approach(n, at, -1)
	if errors.Is(err, errNotReal) {
		return right, nil
	}
	if err != nil {
		return cball{}, err
	}
	return v.guess(left.re.mid, right.re.mid)
}

// approach goes to at, or to infinity if at is nil, from one side.
func (v *numeric) approach(n *node, at *big.Rat, side int64) (cball, error) {
	const steps, prec = 20, 384
	f := v.sampler(n, prec)
	wide := func() *big.Float { return new(big.Float).SetPrec(prec) }
	row := make([]*big.Float, 0, steps)
	var coarse, middle *big.Float
	for j := range steps {
		if err := v.spend(40); err != nil {
			return cball{}, err
		}
		x := wide().SetInt64(side)
		if at == nil {
			x.SetMantExp(x, j+3)
		} else {
			x.SetMantExp(x, -j-4)
			x.Add(x, wide().SetRat(at))
		}
		y, err := f(x)
		if err != nil {
			return cball{}, err
		}
		next := make([]*big.Float, 0, j+1)
		next = append(next, wide().Set(y))
		for k := 1; k <= j; k++ { // (2^k new - old) / (2^k - 1)
			t := wide().SetMantExp(next[k-1], k)
			t.Sub(t, row[k-1])
			next = append(next, t.Quo(t, wide().SetInt64(1<<k-1)))
		}
		if j > 0 {
			coarse = row[j-1]
		}
		row = next
		if j == steps/2 {
			middle = x
		}
	}
	if !v.steady(f, at, middle) {
		return cball{}, errConverge
	}
	return v.guess(coarse, row[steps-1])
}

// steady looks beside the points, which could all lie on one phase of an
// oscillation: sin(π/x) is 0 at each of them.
func (v *numeric) steady(f func(*big.Float) (*big.Float, error), at *big.Rat, x *big.Float) bool {
	wide := func() *big.Float { return new(big.Float).SetPrec(x.Prec()) }
	origin := wide()
	if at != nil {
		origin.SetRat(at)
	}
	there := func(times *big.Rat, more int64) (*big.Float, error) {
		y := wide().Sub(x, origin)
		y.Mul(y, wide().SetRat(times))
		y.Add(y, origin)
		return f(y.Add(y, wide().SetInt64(more)))
	}
	one := big.NewRat(1, 1)
	here, err := there(one, 0)
	if err != nil {
		return false
	}
	double, err := there(big.NewRat(2, 1), 0)
	if err != nil {
		return false
	}
	change := wide().Sub(here, double)
	change.Abs(change).Add(change, wide().SetMantExp(big.NewFloat(1), -estimatePrecision/2))
	change.SetMantExp(change, 2)
	near := func(y *big.Float, err error) bool {
		if err != nil {
			return errors.Is(err, errNotReal) && at == nil // a sequence
		}
		d := wide().Sub(y, here)
		return d.Abs(d).Cmp(change) <= 0
	}
	if at == nil {
		y, err := there(one, int64(x.Sign()))
		if err != nil || !near(y, nil) {
			return false
		}
	}
	return near(there(big.NewRat(4, 3), 0)) && near(there(big.NewRat(7, 5), 0))
}

// boundAt is the place of the bound variable among the kids, or -1.
func boundAt(n *node) int {
	switch {
	case n.op != opBig:
		return -1
	case (n.name == "sum" || n.name == "prod" || n.name == "int" && n.kids[0].op != opEmpty) && len(n.kids) == 4:
		return 2
	case len(n.kids) == 3 && (n.name == "lim" || n.name == "lim+" || n.name == "lim-"):
		return 0
	}
	return -1
}
