package mathverify

import (
	"strconv"
)

// maxUnordered bounds the pairs that are compared one by one.
const maxUnordered = 40

// unordered compares two collections as sets: order and repetition do not
// count.
func (c *comparer) unordered(a, b []*node) result {
	if x, y := spelledChoices(a), spelledChoices(b); x != "" && x == y {
		return equal(MethodWords, "the same choices")
	}
	if len(a) == 0 || len(b) == 0 {
		if len(a) == len(b) {
			return equal(MethodStructure, "both are empty")
		}
		return different(MethodStructure, "one side is empty")
	}
	a, b = c.without(a, b)
	if len(a) == 0 && len(b) == 0 {
		return equal(MethodStructure, "the same answers")
	}
	if len(a) > maxUnordered || len(b) > maxUnordered {
		return different(MethodStructure, "many answers without a twin")
	}
	return c.match(a, b)
}

// spelledChoices writes "A, B, D" and "ABD" alike; "" if these are not several
// letters of choices in order.
func spelledChoices(list []*node) string {
	if len(list) == 1 && list[0].op == opMul {
		list = list[0].kids
	}
	s := ""
	for _, n := range list {
		if n.op != opSym || len(n.name) != 1 || n.name < "A" || n.name > "J" || s != "" && n.name <= s[len(s)-1:] {
			return ""
		}
		s += n.name
	}
	if len(s) < 2 {
		return ""
	}
	return s
}

// without drops answers that have a twin by reading or by exact value, and
// repetitions.
func (c *comparer) without(a, b []*node) (restA, restB []*node) {
	key := func(n *node) string {
		if n.marked && !c.compat {
			return unitOf(n) + " " + remarkOn(n).key() + " " + n.String()
		}
		if n.isExpr() {
			if r, ok := smallFraction(n); ok {
				if r = reduce(r.num, r.den); r.den == 1 {
					return strconv.FormatInt(r.num, 10)
				}
				return strconv.FormatInt(r.num, 10) + "/" + strconv.FormatInt(r.den, 10)
			}
			if r, err := c.exact(n, nil); err == nil && bitSize(r) < 4096 {
				return r.RatString()
			}
		}
		return string(n.hash64())
	}
	keys := func(list []*node) ([]string, map[string]bool) {
		ks, set := make([]string, len(list)), map[string]bool{}
		for i, n := range list {
			ks[i] = key(n)
			set[ks[i]] = true
		}
		return ks, set
	}
	ka, inA := keys(a)
	kb, inB := keys(b)
	rest := func(list []*node, ks []string, other map[string]bool) []*node {
		var out []*node
		seen := map[string]bool{}
		for i, n := range list {
			if !other[ks[i]] && !seen[ks[i]] {
				out = append(out, n)
			}
			seen[ks[i]] = true
		}
		return out
	}
	restA, restB = rest(a, ka, inB), rest(b, kb, inA)
	if len(restA) == 0 && len(restB) > 0 || len(restB) == 0 && len(restA) > 0 {
		// What is left may still equal something that was dropped.
		return a, b
	}
	return restA, restB
}

func (n *node) hash64() []byte {
	b := make([]byte, 0, 16)
	for _, h := range n.hash {
		for range 8 {
			b = append(b, byte(h))
			h >>= 8
		}
	}
	return b
}

// element compares two elements: a set as an element is no number.
func (c *comparer) element(x, y *node) result {
	if !c.compat && x.op != y.op && (x.op == opSet || x.op == opEmpty || y.op == opSet || y.op == opEmpty) && (x.isExpr() || y.isExpr()) {
		return different(MethodStructure, "a set against a number")
	}
	return c.value(x, y)
}

// match looks for a partner of each answer on the other side.
func (c *comparer) match(a, b []*node) result {
	open := result{}
	found := make([]bool, len(b))
	for _, x := range a {
		any := false
		for j, y := range b {
			r := c.element(x, y)
			if r.out == Equal {
				any, found[j] = true, true
				break
			}
			if r.out == Undecided {
				open = r
			}
		}
		if !any {
			if open.out != "" {
				return open
			}
			return different(MethodStructure, "an answer has no partner: "+x.String())
		}
	}
	for j, y := range b {
		if found[j] {
			continue
		}
		any := false
		for _, x := range a {
			r := c.element(x, y)
			if any = r.out == Equal; any {
				break
			}
			if r.out == Undecided {
				open = r
			}
		}
		if !any {
			if open.out != "" {
				return open
			}
			return different(MethodStructure, "an answer has no partner: "+y.String())
		}
	}
	return equal(MethodStructure, "the same answers")
}
