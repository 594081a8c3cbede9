package expr

import (
	"math/big"
	"sort"
	"strings"
)

func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

func IsLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func HasOp(n *Node, o Op) bool { return n.Any(func(k *Node) bool { return k.Op == o }) }

func Inexact(n *Node) bool {
	return n.Any(func(k *Node) bool { return k.Op == OpNum && k.Dec })
}

// SymbolsOf lists the variables of both sides in a fixed order.
func SymbolsOf(sides ...*Node) []string {
	set := map[string]bool{}
	for _, n := range sides {
		n.Any(func(k *Node) bool {
			if k.Op == OpSym {
				set[k.Name] = true
			}
			return false
		})
	}
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// IsRelational: an inequality, a membership, or several of them.
func IsRelational(n *Node) bool {
	switch n.Op {
	case OpRel:
		for _, r := range n.Rels {
			if Opposite[r] == "" && r != "!=" && r != "in" {
				return false
			}
		}
		return true
	case OpList:
		for _, k := range n.Kids {
			if !IsRelational(k) {
				return false
			}
		}
		return len(n.Kids) > 0
	}
	return false
}

func IsEquation(n *Node) bool { return n.Rels[0] == "=" || n.Rels[0] == "~" }

// IsMatrix says, without evaluating, whether n is written as a matrix or as a
// product or power of one. Such factors may not change places.
func IsMatrix(n *Node) bool {
	switch n.Op {
	case OpMatrix:
		return true
	case OpPow:
		return IsMatrix(n.Kids[0])
	case OpMul, OpAdd:
		for _, k := range n.Kids {
			if IsMatrix(k) {
				return true
			}
		}
	}
	return false
}

func ClipText(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

var MinusInf = Mul(Integer(-1), Leaf(OpInf))

var PlusInf = Leaf(OpInf)

var MinusOne = big.NewRat(-1, 1)

var Opposite = map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<="}
