package mathverify

import (
	"strings"
	"unicode"
)

// nameLike says whether n only names a quantity: x, f(x), AB, |AB|, \sin x, a/b,
// x+y, (x, y).
func nameLike(n *node) bool {
	switch n.op {
	case opWords:
		return nameInWords(n.name)
	case opSym, opRel: // a relation as a factor: P(X = 2)
		return true
	case opFunc:
		if n.name[0] == '@' || n.name == "sub" {
			return true
		}
		return allNames(n.kids)
	case opMul, opTuple, opRatio, opAdd, opSetOp:
		return allNames(n.kids)
	case opPow:
		return nameLike(n.kids[0]) && n.kids[1].op == opNum && n.kids[1].num.Cmp(minusOne) == 0
	case opE, opI:
		return false
	}
	return false
}

// nameInWords says whether words only name a quantity, as "the area of the
// square" and "AB" do.
func nameInWords(text string) bool {
	for _, w := range strings.Fields(text) {
		lower := strings.ToLower(w)
		if class := classOf(lower); class.free() || class == quantifier || units[lower] != "" || len(w) <= 4 && strings.ToUpper(w) == w {
			continue
		}
		return false
	}
	return true
}

// functionLike says whether a name is y, f(x) or P(x).
func functionLike(n *node) bool {
	if n.op == opMul {
		first := n.kids[0]
		return first.op == opSym && first.name != "" && unicode.IsUpper(rune(first.name[0]))
	}
	return n.op == opSym || n.op == opWords || n.op == opFunc && n.name[0] == '@'
}

func allNames(kids []*node) bool {
	for _, k := range kids {
		if !nameLike(k) {
			return false
		}
	}
	return len(kids) > 0
}

// assignment reads "x = 5" as a name and a value; nil if n is none.
func assignment(n *node) (name, value *node) {
	if n.op != opRel || len(n.kids) != 2 || n.rels[0] != "=" && n.rels[0] != "~" {
		return nil, nil
	}
	if nameLike(n.kids[0]) {
		return n.kids[0], n.kids[1]
	}
	if nameLike(n.kids[1]) && len(symbolsOf(n.kids[0])) == 0 {
		return n.kids[1], n.kids[0]
	}
	return nil, nil
}
