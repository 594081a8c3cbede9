package reading

import (
	"strings"
	"unicode"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// NameLike says whether n only names a quantity: x, f(x), AB, |AB|, \sin x, a/b,
// x+y, (x, y).
func NameLike(n *expr.Node) bool {
	switch n.Op {
	case expr.OpWords:
		return NameInWords(n.Name)
	case expr.OpSym, expr.OpRel: // a relation as a factor: P(X = 2)
		return true
	case expr.OpFunc:
		if n.Name[0] == '@' || n.Name == "sub" {
			return true
		}
		return allNames(n.Kids)
	case expr.OpMul, expr.OpTuple, expr.OpRatio, expr.OpAdd, expr.OpSetOp:
		return allNames(n.Kids)
	case expr.OpPow:
		return NameLike(n.Kids[0]) && n.Kids[1].Op == expr.OpNum && n.Kids[1].Num.Cmp(expr.MinusOne) == 0
	case expr.OpE, expr.OpI:
		return false
	}
	return false
}

// NameInWords says whether words only name a quantity, as "the area of the
// square" and "AB" do.
func NameInWords(text string) bool {
	for _, w := range strings.Fields(text) {
		lower := strings.ToLower(w)
		if class := ClassOf(lower); class.free() || class == quantifier || units[lower] != "" || len(w) <= 4 && strings.ToUpper(w) == w {
			continue
		}
		return false
	}
	return true
}

// FunctionLike says whether a name is y, f(x) or P(x).
func FunctionLike(n *expr.Node) bool {
	if n.Op == expr.OpMul {
		first := n.Kids[0]
		return first.Op == expr.OpSym && first.Name != "" && unicode.IsUpper(rune(first.Name[0]))
	}
	return n.Op == expr.OpSym || n.Op == expr.OpWords || n.Op == expr.OpFunc && n.Name[0] == '@'
}

func allNames(kids []*expr.Node) bool {
	for _, k := range kids {
		if !NameLike(k) {
			return false
		}
	}
	return len(kids) > 0
}

// Assignment reads "x = 5" as a name and a value; nil if n is none.
func Assignment(n *expr.Node) (name, value *expr.Node) {
	if n.Op != expr.OpRel || len(n.Kids) != 2 || n.Rels[0] != "=" && n.Rels[0] != "~" {
		return nil, nil
	}
	if NameLike(n.Kids[0]) {
		return n.Kids[0], n.Kids[1]
	}
	if NameLike(n.Kids[1]) && len(expr.SymbolsOf(n.Kids[0])) == 0 {
		return n.Kids[1], n.Kids[0]
	}
	return nil, nil
}
