package evaluation

import (
	"math/big"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// estimateIntegral sums by double exponential rules: tanh-sinh between finite
// bounds, exp-sinh on a half line and sinh-sinh on the whole line. The nodes
// never touch the ends, where the integrand may be undefined.
func (v *Numeric) estimateIntegral(n *expr.Node) (Cball, error) {
	lo, hi := n.Kids[0], n.Kids[1]
	if lo.Op == expr.OpEmpty || hi.Op == expr.OpEmpty {
		return Cball{}, ErrUnknown
	}
	q := &quadrature{Numeric: v, levels: 5, f: v.sampler(n, EstimatePrecision+32)}
	var err error
	bound := func(k *expr.Node) *big.Float {
		x, e := v.Eval(k)
		if e != nil || !x.Real {
			err = ErrUnknown
			return nil
		}
		return x.Re.Mid
	}
	switch {
	case lo.Same(expr.MinusInf) && hi.Same(expr.PlusInf):
		q.node, q.levels = q.wholeLine, 6
	case hi.Same(expr.PlusInf):
		q.lo, q.node = bound(lo), q.halfLine
	case lo.Same(expr.MinusInf):
		q.lo, q.node, q.down = bound(hi), q.halfLine, true
	default:
		q.lo, q.hi, q.node = bound(lo), bound(hi), q.segment
	}
	if err != nil {
		return Cball{}, err
	}
	return q.sum()
}

type quadrature struct {
	*Numeric
	f      func(*big.Float) (*big.Float, error)
	lo, hi *big.Float
	down   bool // the half line runs down from lo
	levels int
	// node is x and its weight for u = π/2 sinh t, of which du/dt and e^u are
	// given; left says that t is negative.
	node func(left bool, du, eu *big.Float) (x, weight *big.Float)
}

// wide has room for nodes that lie very close to an end.
func wideFloat() *big.Float { return new(big.Float).SetPrec(EstimatePrecision + 192) }

// sum halves the step until two sums agree.
func (q *quadrature) sum() (Cball, error) {
	total, previous := wideFloat(), (*big.Float)(nil)
	for level := 0; level <= q.levels; level++ {
		step := new(big.Float).SetMantExp(big.NewFloat(1), -level)
		if err := q.level(total, step, level); err != nil {
			return Cball{}, err
		}
		value := wideFloat().Mul(total, step)
		if previous != nil && level > 2 {
			if g, err := q.guess(previous, value); err == nil {
				return g, nil
			}
		}
		previous = value
	}
	return Cball{}, errConverge
}

// level adds the new nodes of a level, on both sides of t = 0 outwards until
// the terms vanish.
func (q *quadrature) level(total, step *big.Float, level int) error {
	small := [2]int{}
	for k := int64(0); small[0] < 3 || small[1] < 3; k++ {
		if level > 0 && k%2 == 0 {
			continue
		}
		t := wideFloat().Mul(step, new(big.Float).SetInt64(k))
		if a, _ := t.Float64(); a > 7 {
			return nil
		}
		if err := q.Spend(8); err != nil {
			return err
		}
		du, eu, err := q.sinh2(t)
		if err != nil {
			return err
		}
		for side := range 2 {
			if small[side] >= 3 || k == 0 && side == 1 {
				continue
			}
			if side == 1 {
				eu = wideFloat().Quo(wideFloat().SetInt64(1), eu)
			}
			x, w := q.node(side == 1, du, eu)
			y, err := q.f(x)
			switch {
			case err == nil:
			case small[side] > 0, w.Sign() == 0, w.MantExp(nil) < 20-EstimatePrecision:
				small[side] = 3
				continue
			default:
				return err
			}
			term := wideFloat().Mul(y, w)
			if term.Sign() == 0 || total.Sign() != 0 && term.MantExp(nil) < total.MantExp(nil)-EstimatePrecision/2-24 {
				small[side]++
				continue
			}
			small[side] = 0
			total.Add(total, term)
		}
	}
	return nil
}

// sinh2 returns u = π/2 sinh t, du/dt and e^u.
func (q *quadrature) sinh2(t *big.Float) (du, eu *big.Float, err error) {
	e, err := q.exp(ball{t, NewRad()})
	if err != nil {
		return nil, nil, err
	}
	inv := wideFloat().Quo(wideFloat().SetInt64(1), e.Mid)
	quarter := wideFloat().SetMantExp(q.piBall().Mid, -2)
	u := wideFloat().Sub(e.Mid, inv)
	u.Mul(u, quarter)
	du = wideFloat().Add(e.Mid, inv)
	du.Mul(du, quarter)
	x, err := q.exp(ball{u, NewRad()})
	return du, x.Mid, err
}

// segment: x runs from lo to hi as 1/(1+e^(-2u)) of the way.
func (q *quadrature) segment(left bool, du, eu *big.Float) (x, w *big.Float) {
	one := wideFloat().SetInt64(1)
	square := wideFloat().Mul(eu, eu)
	if left {
		square.Quo(one, square)
	}
	near := wideFloat().Quo(one, wideFloat().Add(square, one)) // of the way from the nearer end
	length := wideFloat().Sub(q.hi, q.lo)
	w = wideFloat().Mul(near, wideFloat().Sub(one, near))
	w.Mul(w, du).Mul(w, length)
	w.SetMantExp(w, 1)
	near.Mul(near, length)
	if left {
		return near.Add(q.lo, near), w
	}
	return near.Sub(q.hi, near), w
}

// halfLine: x = lo ± e^u.
func (q *quadrature) halfLine(_ bool, du, eu *big.Float) (x, w *big.Float) {
	w = wideFloat().Mul(eu, du)
	if q.down {
		return wideFloat().Sub(q.lo, eu), w
	}
	return wideFloat().Add(q.lo, eu), w
}

// wholeLine: x = sinh u.
func (q *quadrature) wholeLine(_ bool, du, eu *big.Float) (x, w *big.Float) {
	inv := wideFloat().Quo(wideFloat().SetInt64(1), eu)
	x, w = wideFloat().Sub(eu, inv), wideFloat().Add(eu, inv)
	w.Mul(w, du)
	return x.SetMantExp(x, -1), w.SetMantExp(w, -1)
}
