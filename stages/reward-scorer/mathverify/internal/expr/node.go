package expr

import (
	"math/big"
	"strconv"
	"strings"
)

// Op is what a node is.
type Op uint8

const (
	OpNum      Op = iota
	OpSym         // a variable; name
	OpPi          // π
	OpE           // e
	OpI           // imaginary unit
	OpInf         // +∞
	OpAdd         // sum of kids
	OpMul         // product of kids
	OpPow         // kids: base, exponent
	OpFunc        // name of kids
	OpBig         // sum, prod, int, lim: kids depend on the name
	OpPM          // kids: x±y as (x, y); name "+-" or "-+"
	OpPercent     // kids[0] per cent
	OpDeg         // kids[0] degrees
	OpList        // several answers, no order
	OpTuple       // ordered, in round brackets: also an open interval
	OpBrack       // ordered, in square brackets: also a closed interval
	OpSet         // in braces
	OpInterval    // kids lo, hi; name is the brackets, such as "[)"
	OpSetOp       // cup, cap, setminus of kids
	OpMatrix      // kids row by row, cols
	OpRel         // kids are the sides; rels between them
	OpRatio       // a:b
	OpWords       // text
	OpBased       // digits in a base: name digits, kids[0] base
	OpReals       // the real line, or another standard set by name
	OpEmpty       // the empty set
	OpBuilder     // {x | condition}: kids[0] is the condition
)

// Trees built by calculation, not by reading, are given up beyond maxBuilt
// nodes; nothing walks through one of maxSize.
const (
	MaxBuilt = 3_000
	MaxSize  = 1 << 20
)

// Node is one vertex of a reading. Nodes are never changed once they are
// shared.
type Node struct {
	Op     Op
	Name   string
	Kids   []*Node
	Rels   []string
	Num    *big.Rat
	Cols   int
	Unit   string // of a quantity, at the top of an answer
	Remark Remark // words beside an answer
	Marked bool   // a unit or words stand here or below, which hash leaves out
	Dec    bool   // opNum: written with a decimal point
	Long   string // opNum: the digits, if too many for num
	Hash   [2]uint64
	Depth  int32 // of the tree below, at least 1
	Size   int32 // nodes of the tree below, shared ones each time, at most maxSize
}

func Leaf(o Op) *Node { return Seal(&Node{Op: o}) }

func Sym(name string) *Node { return Seal(&Node{Op: OpSym, Name: name}) }

func Words(text string) *Node { return Seal(&Node{Op: OpWords, Name: text}) }

// smallIntegers are made once: most numbers in answers are among them.
var smallIntegers = func() [1024]*Node {
	var all [1024]*Node
	for i := range all {
		all[i] = Seal(&Node{Op: OpNum, Num: big.NewRat(int64(i)-1, 1)})
	}
	return all
}()

func Integer(i int64) *Node {
	if i >= -1 && i < int64(len(smallIntegers))-1 {
		return smallIntegers[i+1]
	}
	return Seal(&Node{Op: OpNum, Num: big.NewRat(i, 1)})
}

func Rational(r *big.Rat) *Node { return Seal(&Node{Op: OpNum, Num: r}) }

func Tree(o Op, k ...*Node) *Node { return Seal(&Node{Op: o, Kids: k}) }

func Call(name string, k ...*Node) *Node {
	return Seal(&Node{Op: OpFunc, Name: name, Kids: k})
}

func Add(k ...*Node) *Node {
	if len(k) == 1 {
		return k[0]
	}
	if !anyOp(k, OpAdd) {
		return Tree(OpAdd, k...)
	}
	flat := make([]*Node, 0, len(k))
	for _, n := range k {
		if n.Op == OpAdd {
			flat = append(flat, n.Kids...)
		} else {
			flat = append(flat, n)
		}
	}
	if len(flat) == 1 {
		return flat[0]
	}
	return Tree(OpAdd, flat...)
}

func anyOp(nodes []*Node, o Op) bool {
	for _, n := range nodes {
		if n.Op == o {
			return true
		}
	}
	return false
}

func Mul(k ...*Node) *Node {
	if len(k) == 1 {
		return k[0]
	}
	if len(k) <= 16 && !anyOp(k, OpMul) {
		return Tree(OpMul, k...)
	}
	flat := make([]*Node, 0, len(k))
	for _, n := range k {
		if n.Op == OpMul {
			flat = append(flat, n.Kids...)
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
	return Tree(OpMul, flat...)
}

// runs writes repeated factors as powers, so that a long product of one number
// is no more work than the power.
func runs(flat []*Node) []*Node {
	out := flat[:0:0]
	for i := 0; i < len(flat); {
		j := i + 1
		for j < len(flat) && flat[j].Same(flat[i]) {
			j++
		}
		if j-i > 3 {
			out = append(out, Pow(flat[i], Integer(int64(j-i))))
		} else {
			out = append(out, flat[i:j]...)
		}
		i = j
	}
	return out
}

func Neg(n *Node) *Node {
	if n.Op == OpNum && n.Long == "" {
		return Seal(&Node{Op: OpNum, Num: new(big.Rat).Neg(n.Num), Dec: n.Dec})
	}
	return Mul(Integer(-1), n)
}

func Div(a, b *Node) *Node { return Mul(a, Pow(b, Integer(-1))) }

func Pow(a, b *Node) *Node { return Tree(OpPow, a, b) }

func Sub(a, b *Node) *Node { return Add(a, Neg(b)) }

// Mix is a 64-bit finaliser in the manner of splitmix.
func Mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func HashText(seed uint64, s string) uint64 {
	h := seed ^ 14695981039346656037
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return Mix(h)
}

// Seal computes hash and depth. Commutative nodes hash their kids without
// order, so that a+b and b+a have one hash.
func Seal(n *Node) *Node {
	for lane := range n.Hash {
		h := Mix(uint64(n.Op) + uint64(lane)*0x9e3779b97f4a7c15 + uint64(n.Cols)<<20)
		h = HashText(h, n.Name)
		for _, r := range n.Rels {
			h = HashText(h, r)
		}
		if n.Num != nil {
			for _, w := range n.Num.Num().Bits() {
				h = Mix(h ^ uint64(w))
			}
			for _, w := range n.Num.Denom().Bits() {
				h = Mix(h + uint64(w))
			}
			if n.Num.Sign() < 0 {
				h = ^h
			}
		}
		if n.Long != "" {
			h = HashText(h, n.Long)
		}
		o := n.Op
		if o == OpMul && severalMatrices(n.Kids) {
			o = OpPow // matrices in a product keep their order
		}
		switch o {
		case OpAdd, OpMul, OpSet, OpList:
			var sum, xor uint64
			for _, k := range n.Kids {
				sum += Mix(k.Hash[lane])
				xor ^= Mix(k.Hash[lane] + 77)
			}
			h = Mix(h+sum) ^ Mix(xor)
		default:
			for _, k := range n.Kids {
				h = Mix(h*31 + k.Hash[lane])
			}
		}
		n.Hash[lane] = h
	}
	n.Depth, n.Size = 1, 1
	for _, k := range n.Kids {
		n.Marked = n.Marked || k.Marked
		n.Depth = max(n.Depth, k.Depth+1)
		n.Size = min(n.Size+k.Size, MaxSize)
	}
	return n
}

func severalMatrices(factors []*Node) bool {
	seen := false
	for _, k := range factors {
		if (k.Op == OpMatrix || k.Op == OpPow || k.Op == OpAdd) && IsMatrix(k) {
			if seen {
				return true
			}
			seen = true
		}
	}
	return false
}

func (n *Node) Same(m *Node) bool { return n.Hash == m.Hash }

// Any says whether some node of the tree satisfies f.
func (n *Node) Any(f func(*Node) bool) bool {
	if f(n) {
		return true
	}
	for _, k := range n.Kids {
		if k.Any(f) {
			return true
		}
	}
	return false
}

// Rewrite maps the tree bottom-up.
func (n *Node) Rewrite(f func(*Node) *Node) *Node {
	if len(n.Kids) == 0 {
		return f(n)
	}
	kids, changed := make([]*Node, len(n.Kids)), false
	for i, k := range n.Kids {
		kids[i] = k.Rewrite(f)
		changed = changed || kids[i] != k
	}
	if changed {
		m := *n
		m.Kids = kids
		n = Seal(&m)
	}
	return f(n)
}

// IsExpr says whether n is a quantity, as opposed to a set, a relation or text.
func (n *Node) IsExpr() bool { return n.Op <= OpDeg || n.Op == OpBased }

// MaxRead is how many bytes a reading takes at most in a verdict.
const MaxRead = 400

// String renders the reading for people.
func (n *Node) String() string {
	var b strings.Builder
	n.write(&b)
	s := b.String()
	if len(s) > MaxRead {
		s = strings.ToValidUTF8(s[:MaxRead], "") + "…"
	}
	return s
}

func (n *Node) list(b *strings.Builder, sep string) {
	for i, k := range n.Kids {
		if i > 0 {
			b.WriteString(sep)
		}
		k.write(b)
	}
}

func (n *Node) write(b *strings.Builder) {
	if b.Len() > MaxRead {
		return
	}
	wrap := func(open, sep, shut string) { b.WriteString(open); n.list(b, sep); b.WriteString(shut) }
	switch n.Op {
	case OpNum:
		switch {
		case n.Long != "":
			b.WriteString(n.Long[:min(len(n.Long), 60)] + "…")
		case n.Num.IsInt():
			b.WriteString(clip(n.Num.Num()))
		default:
			b.WriteString(clip(n.Num.Num()) + "/" + clip(n.Num.Denom()))
		}
	case OpSym, OpWords:
		b.WriteString(n.Name)
	case OpPi:
		b.WriteString("pi")
	case OpE:
		b.WriteString("e")
	case OpI:
		b.WriteString("i")
	case OpInf:
		b.WriteString("oo")
	case OpAdd:
		wrap("(", " + ", ")")
	case OpMul:
		wrap("", "*", "")
	case OpPow:
		wrap("(", ")^(", ")")
	case OpFunc, OpBig:
		wrap(n.Name+"(", ", ", ")")
	case OpPM:
		wrap("", " "+n.Name+" ", "")
	case OpPercent:
		wrap("", "", "%")
	case OpDeg:
		wrap("", "", "°")
	case OpTuple:
		wrap("(", ", ", ")")
	case OpBrack:
		wrap("[", ", ", "]")
	case OpSet:
		wrap("{", ", ", "}")
	case OpList:
		wrap("", "; ", "")
	case OpInterval:
		wrap(n.Name[:1], ", ", n.Name[1:])
	case OpSetOp:
		wrap("", " "+n.Name+" ", "")
	case OpMatrix:
		b.WriteString("matrix")
		wrap("[", ", ", "]")
	case OpRel:
		for i, k := range n.Kids {
			if i > 0 {
				b.WriteString(" " + n.Rels[i-1] + " ")
			}
			k.write(b)
		}
	case OpRatio:
		wrap("", ":", "")
	case OpBased:
		b.WriteString(n.Name + "_")
		wrap("", "", "")
	case OpReals:
		b.WriteString(n.Name)
	case OpEmpty:
		b.WriteString("{}")
	case OpBuilder:
		wrap("{ | ", "", "}")
	}
	if n.Unit != "" {
		b.WriteString(" " + n.Unit)
	}
	if len(n.Remark) > 0 {
		b.WriteString(" <")
		for i, w := range n.Remark {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(w.Text)
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

func (n *Node) Hash64() []byte {
	b := make([]byte, 0, 16)
	for _, h := range n.Hash {
		for range 8 {
			b = append(b, byte(h))
			h >>= 8
		}
	}
	return b
}
