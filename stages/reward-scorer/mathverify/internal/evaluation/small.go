package evaluation

import (
	"math/big"
	"math/bits"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// fraction is a rational number of two machine words.
type fraction struct{ Num, Den int64 }

const fractionLimit = 1 << 31

// SmallFraction evaluates sums, products and whole powers of small numbers
// without allocating; ok is false beyond that, and is no verdict.
func SmallFraction(n *expr.Node) (r fraction, ok bool) {
	switch n.Op {
	case expr.OpNum:
		if n.Long != "" || !n.Num.IsInt() && !n.Num.Denom().IsInt64() || !n.Num.Num().IsInt64() {
			return r, false
		}
		r = fraction{n.Num.Num().Int64(), 1}
		if !n.Num.IsInt() {
			r.Den = n.Num.Denom().Int64()
		}
		return r, fits(r)
	case expr.OpAdd, expr.OpMul:
		r = fraction{0, 1}
		if n.Op == expr.OpMul {
			r.Num = 1
		}
		for _, k := range n.Kids {
			x, ok := SmallFraction(k)
			if !ok {
				return r, false
			}
			if n.Op == expr.OpMul {
				r = Reduce(r.Num*x.Num, r.Den*x.Den)
			} else if r.Den == x.Den {
				r = Reduce(r.Num+x.Num, r.Den)
			} else {
				if bits.Len64(uint64(r.Den))+bits.Len64(uint64(x.Den)) > 32 {
					return r, false
				}
				r = Reduce(r.Num*x.Den+x.Num*r.Den, r.Den*x.Den)
			}
			if !fits(r) {
				return r, false
			}
		}
		return r, true
	case expr.OpPow:
		e := n.Kids[1]
		if e.Op != expr.OpNum || e.Long != "" || !e.Num.IsInt() || !e.Num.Num().IsInt64() {
			return r, false
		}
		k := e.Num.Num().Int64()
		x, ok := SmallFraction(n.Kids[0])
		if !ok || k < -8 || k > 8 || x.Num == 0 {
			return r, false
		}
		if k < 0 {
			k = -k
			x = fraction{x.Den, x.Num}
			if x.Den < 0 {
				x = fraction{-x.Num, -x.Den}
			}
		}
		r = fraction{1, 1}
		for ; k > 0; k-- {
			if r = (fraction{r.Num * x.Num, r.Den * x.Den}); !fits(r) {
				return r, false
			}
		}
		return r, true
	}
	return r, false
}

func fits(r fraction) bool {
	return r.Num < fractionLimit && r.Num > -fractionLimit && r.Den < fractionLimit && r.Den > 0
}

func Reduce(num, den int64) fraction {
	a, b := num, den
	if a < 0 {
		a = -a
	}
	for b != 0 {
		a, b = b, a%b
	}
	if a > 1 {
		num, den = num/a, den/a
	}
	return fraction{num, den}
}

func (r fraction) Rat() *big.Rat { return big.NewRat(r.Num, r.Den) }
