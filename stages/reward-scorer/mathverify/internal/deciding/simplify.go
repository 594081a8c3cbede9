package deciding

import (
	"math/big"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// simplify writes logarithms of powers and quotients of factorials so that
// nothing large has to be calculated: ln b^x is x ln b for a positive constant
// b, and (n+2)!/n! is (n+1)(n+2).
func (c *comparer) simplify(n *expr.Node) *expr.Node {
	return n.Rewrite(func(k *expr.Node) *expr.Node {
		switch {
		case k.Op == expr.OpFunc && k.Name == "ln" && isPositivePower(k.Kids[0]):
			return expr.Mul(k.Kids[0].Kids[1], c.simplify(expr.Call("ln", k.Kids[0].Kids[0])))
		case k.Op == expr.OpFunc && k.Name == "ln" && k.Kids[0].Op == expr.OpE:
			return expr.Integer(1)
		case k.Op == expr.OpFunc && k.Name == "logb" && isPositivePower(k.Kids[1]):
			return expr.Mul(k.Kids[1].Kids[1], expr.Call("logb", k.Kids[0], k.Kids[1].Kids[0]))
		case k.Op == expr.OpFunc && k.Name == "root" && isPositivePower(k.Kids[0]) && k.Kids[1].Op == expr.OpNum && k.Kids[1].Num.Sign() > 0:
			return expr.Pow(k.Kids[0].Kids[0], expr.Div(k.Kids[0].Kids[1], k.Kids[1]))
		case k.Op == expr.OpFunc && k.Name == "mod":
			return c.modular(k)
		case k.Op == expr.OpMul:
			return c.cancelFactorials(k)
		}
		return k
	})
}

// simplifies says whether simplify could change n.
func simplifies(n *expr.Node) bool {
	return n.Any(func(k *expr.Node) bool {
		switch {
		case k.Op == expr.OpFunc && (k.Name == "ln" || k.Name == "logb" || k.Name == "mod"):
			return true
		case k.Op == expr.OpFunc && k.Name == "root":
			return k.Kids[0].Op == expr.OpPow
		case k.Op == expr.OpPow:
			return k.Kids[0].Op == expr.OpFunc && k.Kids[0].Name == "fact"
		}
		return false
	})
}

func isPositivePower(n *expr.Node) bool {
	return n.Op == expr.OpPow && (n.Kids[0].Op == expr.OpE || n.Kids[0].Op == expr.OpPi || n.Kids[0].Op == expr.OpNum && n.Kids[0].Num.Sign() > 0) && !expr.HasOp(n.Kids[1], expr.OpI)
}

// maxFalling is how many factors a quotient of factorials may have left.
const maxFalling = 1000

// cancelFactorials replaces a!/b! with constants a and b close to each other.
func (c *comparer) cancelFactorials(n *expr.Node) *expr.Node {
	isFact := func(k *expr.Node) bool { return k.Op == expr.OpFunc && k.Name == "fact" }
	for i, up := range n.Kids {
		if !isFact(up) {
			continue
		}
		for j, k := range n.Kids {
			if i == j || k.Op != expr.OpPow || !isFact(k.Kids[0]) || k.Kids[1].Op != expr.OpNum || k.Kids[1].Num.Cmp(expr.MinusOne) != 0 {
				continue
			}
			a, errA := c.Exact(up.Kids[0], nil)
			b, errB := c.Exact(k.Kids[0].Kids[0], nil)
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
			rest := []*expr.Node{expr.Rational(value)}
			for l, k := range n.Kids {
				if l != i && l != j {
					rest = append(rest, k)
				}
			}
			return c.cancelFactorials(expr.Mul(rest...))
		}
	}
	return n
}

// modular writes a mod m for a power too large to write out.
func (c *comparer) modular(n *expr.Node) *expr.Node {
	m, err := c.Exact(n.Kids[1], nil)
	if err != nil || !m.IsInt() || m.Sign() <= 0 || m.Num().BitLen() > 512 {
		return n
	}
	if r, ok := c.residue(n.Kids[0], m.Num()); ok {
		return expr.Rational(new(big.Rat).SetInt(r))
	}
	return n
}

// residue is n modulo m for integers built of sums, products and powers.
func (c *comparer) residue(n *expr.Node, m *big.Int) (*big.Int, bool) {
	if x, err := c.Exact(n, nil); err == nil {
		return new(big.Int).Mod(x.Num(), m), x.IsInt()
	}
	switch n.Op {
	case expr.OpAdd, expr.OpMul:
		acc := big.NewInt(0)
		if n.Op == expr.OpMul {
			acc.SetInt64(1)
		}
		for _, k := range n.Kids {
			x, ok := c.residue(k, m)
			if !ok {
				return nil, false
			}
			if n.Op == expr.OpAdd {
				acc.Add(acc, x)
			} else {
				acc.Mul(acc, x)
			}
		}
		return acc.Mod(acc, m), true
	case expr.OpPow:
		e, err := c.Exact(n.Kids[1], nil)
		if err != nil || !e.IsInt() || e.Sign() < 0 || e.Num().BitLen() > 1<<12 || c.Spend(e.Num().BitLen()) != nil {
			return nil, false
		}
		x, ok := c.residue(n.Kids[0], m)
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
func (c *comparer) height(n *expr.Node) int {
	total := 0
	switch {
	case n.Op == expr.OpNum && n.Long != "":
		return heightLimit + 1
	case n.Op == expr.OpNum:
		total = evaluation.BitSize(n.Num)
	case n.Op == expr.OpPow:
		base := c.height(n.Kids[0])
		if e, err := c.Exact(n.Kids[1], nil); err == nil {
			f, _ := new(big.Float).SetRat(new(big.Rat).Abs(e)).Float64()
			if f*float64(base) > heightLimit {
				return heightLimit + 1
			}
			total = base + int(f*float64(base))
		} else {
			total = base + c.height(n.Kids[1])
		}
	case n.Op == expr.OpFunc && n.Name == "fact":
		if k, err := c.Exact(n.Kids[0], nil); err == nil {
			total = k.Num().BitLen() * int(min(k.Num().Uint64(), heightLimit))
		}
	default:
		for _, k := range n.Kids {
			if total += c.height(k); total > heightLimit {
				break
			}
		}
	}
	return min(total, heightLimit+1)
}
