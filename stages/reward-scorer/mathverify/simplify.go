package mathverify

import (
	"math/big"
)

// simplify writes logarithms of powers and quotients of factorials so that
// nothing large has to be calculated: ln b^x is x ln b for a positive constant
// b, and (n+2)!/n! is (n+1)(n+2).
func (c *comparer) simplify(n *node) *node {
	return n.rewrite(func(k *node) *node {
		switch {
		case k.op == opFunc && k.name == "ln" && isPositivePower(k.kids[0]):
			return mul(k.kids[0].kids[1], c.simplify(call("ln", k.kids[0].kids[0])))
		case k.op == opFunc && k.name == "ln" && k.kids[0].op == opE:
			return integer(1)
		case k.op == opFunc && k.name == "logb" && isPositivePower(k.kids[1]):
			return mul(k.kids[1].kids[1], call("logb", k.kids[0], k.kids[1].kids[0]))
		case k.op == opFunc && k.name == "root" && isPositivePower(k.kids[0]) && k.kids[1].op == opNum && k.kids[1].num.Sign() > 0:
			return pow(k.kids[0].kids[0], div(k.kids[0].kids[1], k.kids[1]))
		case k.op == opFunc && k.name == "mod":
			return c.modular(k)
		case k.op == opMul:
			return c.cancelFactorials(k)
		}
		return k
	})
}

// simplifies says whether simplify could change n.
func simplifies(n *node) bool {
	return n.any(func(k *node) bool {
		switch {
		case k.op == opFunc && (k.name == "ln" || k.name == "logb" || k.name == "mod"):
			return true
		case k.op == opFunc && k.name == "root":
			return k.kids[0].op == opPow
		case k.op == opPow:
			return k.kids[0].op == opFunc && k.kids[0].name == "fact"
		}
		return false
	})
}

func isPositivePower(n *node) bool {
	return n.op == opPow && (n.kids[0].op == opE || n.kids[0].op == opPi || n.kids[0].op == opNum && n.kids[0].num.Sign() > 0) && !hasOp(n.kids[1], opI)
}

// maxFalling is how many factors a quotient of factorials may have left.
const maxFalling = 1000

// cancelFactorials replaces a!/b! with constants a and b close to each other.
func (c *comparer) cancelFactorials(n *node) *node {
	isFact := func(k *node) bool { return k.op == opFunc && k.name == "fact" }
	for i, up := range n.kids {
		if !isFact(up) {
			continue
		}
		for j, k := range n.kids {
			if i == j || k.op != opPow || !isFact(k.kids[0]) || k.kids[1].op != opNum || k.kids[1].num.Cmp(minusOne) != 0 {
				continue
			}
			a, errA := c.exact(up.kids[0], nil)
			b, errB := c.exact(k.kids[0].kids[0], nil)
			if errA != nil || errB != nil || !a.IsInt() || !b.IsInt() || a.Sign() < 0 || b.Sign() < 0 {
				continue
			}
			gap := new(big.Int).Sub(a.Num(), b.Num())
			if !gap.IsInt64() || gap.Int64() > maxFalling || gap.Int64() < -maxFalling || a.Num().BitLen() > 256 {
				continue
			}
			low, product, inverse := b.Num(), big.NewInt(1), gap.Sign() < 0
			if inverse {
				low = a.Num()
			}
			for m := new(big.Int).Abs(gap).Int64(); m > 0; m-- {
				product.Mul(product, new(big.Int).Add(low, big.NewInt(m)))
			}
			value := new(big.Rat).SetInt(product)
			if inverse {
				value.Inv(value)
			}
			rest := []*node{rational(value)}
			for l, k := range n.kids {
				if l != i && l != j {
					rest = append(rest, k)
				}
			}
			return c.cancelFactorials(mul(rest...))
		}
	}
	return n
}

// modular writes a mod m for a power too large to write out.
func (c *comparer) modular(n *node) *node {
	m, err := c.exact(n.kids[1], nil)
	if err != nil || !m.IsInt() || m.Sign() <= 0 || m.Num().BitLen() > 512 {
		return n
	}
	if r, ok := c.residue(n.kids[0], m.Num()); ok {
		return rational(new(big.Rat).SetInt(r))
	}
	return n
}

// residue is n modulo m for integers built of sums, products and powers.
func (c *comparer) residue(n *node, m *big.Int) (*big.Int, bool) {
	if x, err := c.exact(n, nil); err == nil {
		return new(big.Int).Mod(x.Num(), m), x.IsInt()
	}
	switch n.op {
	case opAdd, opMul:
		acc := big.NewInt(0)
		if n.op == opMul {
			acc.SetInt64(1)
		}
		for _, k := range n.kids {
			x, ok := c.residue(k, m)
			if !ok {
				return nil, false
			}
			if n.op == opAdd {
				acc.Add(acc, x)
			} else {
				acc.Mul(acc, x)
			}
		}
		return acc.Mod(acc, m), true
	case opPow:
		e, err := c.exact(n.kids[1], nil)
		if err != nil || !e.IsInt() || e.Sign() < 0 || e.Num().BitLen() > 1<<12 || c.spend(e.Num().BitLen()) != nil {
			return nil, false
		}
		x, ok := c.residue(n.kids[0], m)
		if !ok {
			return nil, false
		}
		return x.Exp(x, e.Num(), m), true
	}
	return nil, false
}

// heightLimit is the largest height for which agreement of two constants can
// count as equality.
const heightLimit = 3_400

// height bounds, in bits, how small a part of n can be beside the rest: the
// precision must exceed it before agreement means anything. It is capped a
// little above heightLimit.
func (c *comparer) height(n *node) int {
	total := 0
	switch {
	case n.op == opNum && n.long != "":
		return heightLimit + 1
	case n.op == opNum:
		total = bitSize(n.num)
	case n.op == opPow:
		base := c.height(n.kids[0])
		if e, err := c.exact(n.kids[1], nil); err == nil {
			f, _ := new(big.Float).SetRat(new(big.Rat).Abs(e)).Float64()
			if f*float64(base) > heightLimit {
				return heightLimit + 1
			}
			total = base + int(f*float64(base))
		} else {
			total = base + c.height(n.kids[1])
		}
	case n.op == opFunc && n.name == "fact":
		if k, err := c.exact(n.kids[0], nil); err == nil {
			total = k.Num().BitLen() * int(min(k.Num().Uint64(), heightLimit))
		}
	default:
		for _, k := range n.kids {
			if total += c.height(k); total > heightLimit {
				break
			}
		}
	}
	return min(total, heightLimit+1)
}
