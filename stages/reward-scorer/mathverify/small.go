package mathverify

import (
	"math/big"
	"math/bits"
)

// fraction is a rational number of two machine words.
type fraction struct{ num, den int64 }

const fractionLimit = 1 << 31

// smallFraction evaluates sums, products and whole powers of small numbers
// without allocating; ok is false beyond that, and is no verdict.
func smallFraction(n *node) (r fraction, ok bool) {
	switch n.op {
	case opNum:
		if n.long != "" || !n.num.IsInt() && !n.num.Denom().IsInt64() || !n.num.Num().IsInt64() {
			return r, false
		}
		r = fraction{n.num.Num().Int64(), 1}
		if !n.num.IsInt() {
			r.den = n.num.Denom().Int64()
		}
		return r, fits(r)
	case opAdd, opMul:
		r = fraction{0, 1}
		if n.op == opMul {
			r.num = 1
		}
		for _, k := range n.kids {
			x, ok := smallFraction(k)
			if !ok {
				return r, false
			}
			if n.op == opMul {
				r = reduce(r.num*x.num, r.den*x.den)
			} else if r.den == x.den {
				r = reduce(r.num+x.num, r.den)
			} else {
				if bits.Len64(uint64(r.den))+bits.Len64(uint64(x.den)) > 32 {
					return r, false
				}
				r = reduce(r.num*x.den+x.num*r.den, r.den*x.den)
			}
			if !fits(r) {
				return r, false
			}
		}
		return r, true
	case opPow:
		e := n.kids[1]
		if e.op != opNum || e.long != "" || !e.num.IsInt() || !e.num.Num().IsInt64() {
			return r, false
		}
		k := e.num.Num().Int64()
		x, ok := smallFraction(n.kids[0])
		if !ok || k < -8 || k > 8 || x.num == 0 {
			return r, false
		}
		if k < 0 {
			k = -k
			x = fraction{x.den, x.num}
			if x.den < 0 {
				x = fraction{-x.num, -x.den}
			}
		}
		r = fraction{1, 1}
		for ; k > 0; k-- {
			if r = (fraction{r.num * x.num, r.den * x.den}); !fits(r) {
				return r, false
			}
		}
		return r, true
	}
	return r, false
}

func fits(r fraction) bool {
	return r.num < fractionLimit && r.num > -fractionLimit && r.den < fractionLimit && r.den > 0
}

func reduce(num, den int64) fraction {
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

func (r fraction) rat() *big.Rat { return big.NewRat(r.num, r.den) }
