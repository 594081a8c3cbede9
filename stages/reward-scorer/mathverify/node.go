package mathverify

import (
	"math/big"
	"strconv"
	"strings"
)

// op is what a node is.
type op uint8

const (
	opNum      op = iota
	opSym         // a variable; name
	opPi          // π
	opE           // e
	opI           // imaginary unit
	opInf         // +∞
	opAdd         // sum of kids
	opMul         // product of kids
	opPow         // kids: base, exponent
	opFunc        // name of kids
	opBig         // sum, prod, int, lim: kids depend on the name
	opPM          // kids: x±y as (x, y); name "+-" or "-+"
	opPercent     // kids[0] per cent
	opDeg         // kids[0] degrees
	opList        // several answers, no order
	opTuple       // ordered, in round brackets: also an open interval
	opBrack       // ordered, in square brackets: also a closed interval
	opSet         // in braces
	opInterval    // kids lo, hi; name is the brackets, such as "[)"
	opSetOp       // cup, cap, setminus of kids
	opMatrix      // kids row by row, cols
	opRel         // kids are the sides; rels between them
	opRatio       // a:b
	opWords       // text
	opBased       // digits in a base: name digits, kids[0] base
	opReals       // the real line, or another standard set by name
	opEmpty       // the empty set
	opBuilder     // {x | condition}: kids[0] is the condition
)

// Trees built by calculation, not by reading, are given up beyond maxBuilt
// nodes; nothing walks through one of maxSize.
const (
	maxBuilt = 3_000
	maxSize  = 1 << 20
)

// node is one vertex of a reading. Nodes are never changed once they are
// shared.
type node struct {
	op     op
	name   string
	kids   []*node
	rels   []string
	num    *big.Rat
	cols   int
	unit   string // of a quantity, at the top of an answer
	remark remark // words beside an answer
	marked bool   // a unit or words stand here or below, which hash leaves out
	dec    bool   // opNum: written with a decimal point
	long   string // opNum: the digits, if too many for num
	hash   [2]uint64
	depth  int32 // of the tree below, at least 1
	size   int32 // nodes of the tree below, shared ones each time, at most maxSize
}

func leaf(o op) *node         { return seal(&node{op: o}) }
func sym(name string) *node   { return seal(&node{op: opSym, name: name}) }
func words(text string) *node { return seal(&node{op: opWords, name: text}) }

// smallIntegers are made once: most numbers in answers are among them.
var smallIntegers = func() [1024]*node {
	var all [1024]*node
	for i := range all {
		all[i] = seal(&node{op: opNum, num: big.NewRat(int64(i)-1, 1)})
	}
	return all
}()

func integer(i int64) *node {
	if i >= -1 && i < int64(len(smallIntegers))-1 {
		return smallIntegers[i+1]
	}
	return seal(&node{op: opNum, num: big.NewRat(i, 1)})
}

func rational(r *big.Rat) *node   { return seal(&node{op: opNum, num: r}) }
func tree(o op, k ...*node) *node { return seal(&node{op: o, kids: k}) }
func call(name string, k ...*node) *node {
	return seal(&node{op: opFunc, name: name, kids: k})
}

func add(k ...*node) *node {
	if len(k) == 1 {
		return k[0]
	}
	if !anyOp(k, opAdd) {
		return tree(opAdd, k...)
	}
	flat := make([]*node, 0, len(k))
	for _, n := range k {
		if n.op == opAdd {
			flat = append(flat, n.kids...)
		} else {
			flat = append(flat, n)
		}
	}
	if len(flat) == 1 {
		return flat[0]
	}
	return tree(opAdd, flat...)
}

func anyOp(nodes []*node, o op) bool {
	for _, n := range nodes {
		if n.op == o {
			return true
		}
	}
	return false
}

func mul(k ...*node) *node {
	if len(k) == 1 {
		return k[0]
	}
	if len(k) <= 16 && !anyOp(k, opMul) {
		return tree(opMul, k...)
	}
	flat := make([]*node, 0, len(k))
	for _, n := range k {
		if n.op == opMul {
			flat = append(flat, n.kids...)
		} else {
			flat = append(flat, n)
		}
	}
	if len(flat) > 16 {
		flat = runs(flat)
	}
	if len(flat) == 1 {
		return flat[0]
	}
	return tree(opMul, flat...)
}

// runs writes repeated factors as powers, so that a long product of one number
// is no more work than the power.
func runs(flat []*node) []*node {
	out := flat[:0:0]
	for i := 0; i < len(flat); {
		j := i + 1
		for j < len(flat) && flat[j].same(flat[i]) {
			j++
		}
		if j-i > 3 {
			out = append(out, pow(flat[i], integer(int64(j-i))))
		} else {
			out = append(out, flat[i:j]...)
		}
		i = j
	}
	return out
}

func neg(n *node) *node {
	if n.op == opNum && n.long == "" {
		return seal(&node{op: opNum, num: new(big.Rat).Neg(n.num), dec: n.dec})
	}
	return mul(integer(-1), n)
}

func div(a, b *node) *node { return mul(a, pow(b, integer(-1))) }
func pow(a, b *node) *node { return tree(opPow, a, b) }
func sub(a, b *node) *node { return add(a, neg(b)) }

// mix is a 64-bit finaliser in the manner of splitmix.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func hashText(seed uint64, s string) uint64 {
	h := seed ^ 14695981039346656037
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

// seal computes hash and depth. Commutative nodes hash their kids without
// order, so that a+b and b+a have one hash.
func seal(n *node) *node {
	for lane := range n.hash {
		h := mix(uint64(n.op) + uint64(lane)*0x9e3779b97f4a7c15 + uint64(n.cols)<<20)
		h = hashText(h, n.name)
		for _, r := range n.rels {
			h = hashText(h, r)
		}
		if n.num != nil {
			for _, w := range n.num.Num().Bits() {
				h = mix(h ^ uint64(w))
			}
			for _, w := range n.num.Denom().Bits() {
				h = mix(h + uint64(w))
			}
			if n.num.Sign() < 0 {
				h = ^h
			}
		}
		if n.long != "" {
			h = hashText(h, n.long)
		}
		o := n.op
		if o == opMul && severalMatrices(n.kids) {
			o = opPow // matrices in a product keep their order
		}
		switch o {
		case opAdd, opMul, opSet, opList:
			var sum, xor uint64
			for _, k := range n.kids {
				sum += mix(k.hash[lane])
				xor ^= mix(k.hash[lane] + 77)
			}
			h = mix(h+sum) ^ mix(xor)
		default:
			for _, k := range n.kids {
				h = mix(h*31 + k.hash[lane])
			}
		}
		n.hash[lane] = h
	}
	n.depth, n.size = 1, 1
	for _, k := range n.kids {
		n.marked = n.marked || k.marked
		n.depth = max(n.depth, k.depth+1)
		n.size = min(n.size+k.size, maxSize)
	}
	return n
}

func severalMatrices(factors []*node) bool {
	seen := false
	for _, k := range factors {
		if (k.op == opMatrix || k.op == opPow || k.op == opAdd) && isMatrix(k) {
			if seen {
				return true
			}
			seen = true
		}
	}
	return false
}

func (n *node) same(m *node) bool { return n.hash == m.hash }

// any says whether some node of the tree satisfies f.
func (n *node) any(f func(*node) bool) bool {
	if f(n) {
		return true
	}
	for _, k := range n.kids {
		if k.any(f) {
			return true
		}
	}
	return false
}

// rewrite maps the tree bottom-up.
func (n *node) rewrite(f func(*node) *node) *node {
	if len(n.kids) == 0 {
		return f(n)
	}
	kids, changed := make([]*node, len(n.kids)), false
	for i, k := range n.kids {
		kids[i] = k.rewrite(f)
		changed = changed || kids[i] != k
	}
	if changed {
		m := *n
		m.kids = kids
		n = seal(&m)
	}
	return f(n)
}

// isExpr says whether n is a quantity, as opposed to a set, a relation or text.
func (n *node) isExpr() bool { return n.op <= opDeg || n.op == opBased }

// maxRead is how many bytes a reading takes at most in a verdict.
const maxRead = 400

// String renders the reading for people.
func (n *node) String() string {
	var b strings.Builder
	n.write(&b)
	s := b.String()
	if len(s) > maxRead {
		s = strings.ToValidUTF8(s[:maxRead], "") + "…"
	}
	return s
}

func (n *node) list(b *strings.Builder, sep string) {
	for i, k := range n.kids {
		if i > 0 {
			b.WriteString(sep)
		}
		k.write(b)
	}
}

func (n *node) write(b *strings.Builder) {
	if b.Len() > maxRead {
		return
	}
	wrap := func(open, sep, shut string) { b.WriteString(open); n.list(b, sep); b.WriteString(shut) }
	switch n.op {
	case opNum:
		switch {
		case n.long != "":
			b.WriteString(n.long[:min(len(n.long), 60)] + "…")
		case n.num.IsInt():
			b.WriteString(clip(n.num.Num()))
		default:
			b.WriteString(clip(n.num.Num()) + "/" + clip(n.num.Denom()))
		}
	case opSym, opWords:
		b.WriteString(n.name)
	case opPi:
		b.WriteString("pi")
	case opE:
		b.WriteString("e")
	case opI:
		b.WriteString("i")
	case opInf:
		b.WriteString("oo")
	case opAdd:
		wrap("(", " + ", ")")
	case opMul:
		wrap("", "*", "")
	case opPow:
		wrap("(", ")^(", ")")
	case opFunc, opBig:
		wrap(n.name+"(", ", ", ")")
	case opPM:
		wrap("", " "+n.name+" ", "")
	case opPercent:
		wrap("", "", "%")
	case opDeg:
		wrap("", "", "°")
	case opTuple:
		wrap("(", ", ", ")")
	case opBrack:
		wrap("[", ", ", "]")
	case opSet:
		wrap("{", ", ", "}")
	case opList:
		wrap("", "; ", "")
	case opInterval:
		wrap(n.name[:1], ", ", n.name[1:])
	case opSetOp:
		wrap("", " "+n.name+" ", "")
	case opMatrix:
		b.WriteString("matrix")
		wrap("[", ", ", "]")
	case opRel:
		for i, k := range n.kids {
			if i > 0 {
				b.WriteString(" " + n.rels[i-1] + " ")
			}
			k.write(b)
		}
	case opRatio:
		wrap("", ":", "")
	case opBased:
		b.WriteString(n.name + "_")
		wrap("", "", "")
	case opReals:
		b.WriteString(n.name)
	case opEmpty:
		b.WriteString("{}")
	case opBuilder:
		wrap("{ | ", "", "}")
	}
	if n.unit != "" {
		b.WriteString(" " + n.unit)
	}
	if len(n.remark) > 0 {
		b.WriteString(" <")
		for i, w := range n.remark {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(w.text)
		}
		b.WriteString(">")
	}
}

func clip(i *big.Int) string {
	if i.IsInt64() {
		return strconv.FormatInt(i.Int64(), 10)
	}
	if i.BitLen() > 1200 {
		return "(an integer of " + strconv.Itoa(i.BitLen()) + " bits)"
	}
	return i.String()
}
