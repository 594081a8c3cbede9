package evaluation

import (
	"errors"
	"math/big"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// Integrals, infinite sums and products, and limits are estimated at two orders
// of a method that converges fast. Two orders that agree and a value that
// agrees with the finer one to twice as many places count as equality; a
// difference is not proved so, and is left undecided.
const (
	EstimatePrecision = 160 // of the terms
	agreeOrders       = -42 // binary exponent, relative, of the two orders' gap
	AgreeValues       = -84 // of the finer one's gap to the other side
)

var errConverge = errors.New("no method that converges")

// Free is n without its bound variables, for listing the others.
func Free(n *expr.Node) *expr.Node {
	return n.Rewrite(func(k *expr.Node) *expr.Node {
		at := BoundAt(k)
		if at < 0 || k.Kids[at].Op != expr.OpSym {
			return k
		}
		name := k.Kids[at].Name
		return k.Rewrite(func(s *expr.Node) *expr.Node {
			if s.Op == expr.OpSym && s.Name == name {
				return expr.Integer(2)
			}
			return s
		})
	})
}

// sampler evaluates the body of n at values of its bound variable.
func (v *Numeric) sampler(n *expr.Node, prec uint) func(*big.Float) (*big.Float, error) {
	inner := &Numeric{Arith: &Arith{Budget: v.Budget, Prec: prec}, Vars: Env{}, Estimate: v.Estimate}
	for k, x := range v.Vars {
		inner.Vars[k] = x
	}
	name, body := n.Kids[BoundAt(n)].Name, n.Kids[len(n.Kids)-1]
	return func(x *big.Float) (*big.Float, error) {
		r, _ := x.Rat(nil)
		if r == nil || BitSize(r) > 20_000 {
			return nil, ErrPrecision
		}
		inner.Vars[name] = r
		y, err := inner.Eval(body)
		if err != nil {
			return nil, err
		}
		if !y.Real {
			return nil, errNotReal
		}
		return y.Re.Mid, nil
	}
}

// guess is the ball of an estimate, if two orders agree.
func (v *Numeric) guess(coarse, fine *big.Float) (Cball, error) {
	d := v.new().Sub(fine, coarse)
	size := 1
	if fine.Sign() != 0 {
		size = max(size, fine.MantExp(nil))
	}
	if fine.IsInf() || d.Sign() != 0 && d.MantExp(nil) > size+agreeOrders {
		return Cball{}, errConverge
	}
	return v.realBall(ball{v.new().Set(fine), NewRad()}), nil
}

// estimateBig is the value of an integral, infinite sum or product, or limit.
func (v *Numeric) estimateBig(n *expr.Node) (Cball, error) {
	if BoundAt(n) < 0 || n.Kids[BoundAt(n)].Op != expr.OpSym {
		return Cball{}, ErrUnknown
	}
	switch n.Name {
	case "int":
		return v.estimateIntegral(n)
	case "sum", "prod":
		return v.estimateSeries(n)
	}
	return v.estimateLimit(n)
}

// estimateSeries applies Levin's u-transform to the partial sums or products.
func (v *Numeric) estimateSeries(n *expr.Node) (Cball, error) {
	if !n.Kids[1].Same(expr.PlusInf) {
		return Cball{}, ErrUnknown
	}
	lo, err := v.Exact(n.Kids[0], v.Vars)
	if err != nil || !lo.IsInt() || lo.Num().BitLen() > 20 {
		return Cball{}, ErrUnknown
	}
	const terms, prec = 52, 512
	f := v.sampler(n, prec)
	wide := func() *big.Float { return new(big.Float).SetPrec(prec) }
	sums, steps := make([]*big.Float, terms), make([]*big.Float, terms)
	acc := wide()
	if n.Name == "prod" {
		acc.SetInt64(1)
	}
	for j := range terms {
		if err := v.Spend(40); err != nil {
			return Cball{}, err
		}
		t, err := f(wide().SetInt64(lo.Num().Int64() + int64(j)))
		if err != nil {
			return Cball{}, err
		}
		next := wide()
		if n.Name == "sum" {
			next.Add(acc, t)
		} else {
			next.Mul(acc, t)
		}
		sums[j], steps[j] = next, wide().Sub(next, acc)
		acc = next
	}
	if !decays(steps) {
		return Cball{}, errConverge
	}
	coarse, ok := levin(sums[:terms-8], steps[:terms-8])
	if !ok {
		return Cball{}, errConverge
	}
	fine, ok := levin(sums, steps)
	if !ok {
		return Cball{}, errConverge
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
func (v *Numeric) estimateLimit(n *expr.Node) (Cball, error) {
	to := n.Kids[1]
	if to.Same(expr.PlusInf) {
		return v.approach(n, nil, 1)
	}
	if to.Same(expr.MinusInf) {
		return v.approach(n, nil, -1)
	}
	at, err := v.Exact(to, v.Vars)
	if err != nil {
		return Cball{}, ErrUnknown
	}
	switch n.Name {
	case "lim+":
		return v.approach(n, at, 1)
	case "lim-":
		return v.approach(n, at, -1)
	}
	right, err := v.approach(n, at, 1)
	if err != nil {
		return Cball{}, err
	}
	left, err := v.approach(n, at, -1)
	if errors.Is(err, errNotReal) {
		return right, nil
	}
	if err != nil {
		return Cball{}, err
	}
	return v.guess(left.Re.Mid, right.Re.Mid)
}

// approach goes to at, or to infinity if at is nil, from one side.
func (v *Numeric) approach(n *expr.Node, at *big.Rat, side int64) (Cball, error) {
	const steps, prec = 20, 384
	f := v.sampler(n, prec)
	wide := func() *big.Float { return new(big.Float).SetPrec(prec) }
	row := make([]*big.Float, 0, steps)
	var coarse, middle *big.Float
	for j := range steps {
		if err := v.Spend(40); err != nil {
			return Cball{}, err
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
			return Cball{}, err
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
		return Cball{}, errConverge
	}
	return v.guess(coarse, row[steps-1])
}

// steady looks beside the points, which could all lie on one phase of an
// oscillation: sin(π/x) is 0 at each of them.
func (v *Numeric) steady(f func(*big.Float) (*big.Float, error), at *big.Rat, x *big.Float) bool {
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
	change.Abs(change).Add(change, wide().SetMantExp(big.NewFloat(1), -EstimatePrecision/2))
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

// BoundAt is the place of the bound variable among the kids, or -1.
func BoundAt(n *expr.Node) int {
	switch {
	case n.Op != expr.OpBig:
		return -1
	case (n.Name == "sum" || n.Name == "prod" || n.Name == "int" && n.Kids[0].Op != expr.OpEmpty) && len(n.Kids) == 4:
		return 2
	case len(n.Kids) == 3 && (n.Name == "lim" || n.Name == "lim+" || n.Name == "lim-"):
		return 0
	}
	return -1
}
