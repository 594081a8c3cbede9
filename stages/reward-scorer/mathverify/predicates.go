package mathverify

import (
	"math/big"
	"sort"
	"strings"
)

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func hasOp(n *node, o op) bool { return n.any(func(k *node) bool { return k.op == o }) }

func inexact(n *node) bool {
	return n.any(func(k *node) bool { return k.op == opNum && k.dec })
}

// symbolsOf lists the variables of both sides in a fixed order.
func symbolsOf(sides ...*node) []string {
	set := map[string]bool{}
	for _, n := range sides {
		n.any(func(k *node) bool {
			if k.op == opSym {
				set[k.name] = true
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

// isRelational: an inequality, a membership, or several of them.
func isRelational(n *node) bool {
	switch n.op {
	case opRel:
		for _, r := range n.rels {
			if opposite[r] == "" && r != "!=" && r != "in" {
				return false
			}
		}
		return true
	case opList:
		for _, k := range n.kids {
			if !isRelational(k) {
				return false
			}
		}
		return len(n.kids) > 0
	}
	return false
}

func isEquation(n *node) bool { return n.rels[0] == "=" || n.rels[0] == "~" }

// isMatrix says, without evaluating, whether n is written as a matrix or as a
// product or power of one. Such factors may not change places.
func isMatrix(n *node) bool {
	switch n.op {
	case opMatrix:
		return true
	case opPow:
		return isMatrix(n.kids[0])
	case opMul, opAdd:
		for _, k := range n.kids {
			if isMatrix(k) {
				return true
			}
		}
	}
	return false
}

func clipText(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

var minusInf = mul(integer(-1), leaf(opInf))
var plusInf = leaf(opInf)

var minusOne = big.NewRat(-1, 1)

var opposite = map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<="}
