package deciding

import (
	"strconv"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// maxUnordered bounds the pairs that are compared one by one.
const maxUnordered = 40

// unordered compares two collections as sets: order and repetition do not
// count.
func (c *comparer) unordered(a, b []*expr.Node) result {
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
func spelledChoices(list []*expr.Node) string {
	if len(list) == 1 && list[0].Op == expr.OpMul {
		list = list[0].Kids
	}
	s := ""
	for _, n := range list {
		if n.Op != expr.OpSym || len(n.Name) != 1 || n.Name < "A" || n.Name > "J" || s != "" && n.Name <= s[len(s)-1:] {
			return ""
		}
		s += n.Name
	}
	if len(s) < 2 {
		return ""
	}
	return s
}

// without drops answers that have a twin by reading or by exact value, and
// repetitions.
func (c *comparer) without(a, b []*expr.Node) (restA, restB []*expr.Node) {
	key := func(n *expr.Node) string {
		if n.Marked && !c.Compat {
			return unitOf(n) + " " + remarkOn(n).Key() + " " + n.String()
		}
		if n.IsExpr() {
			if r, ok := evaluation.SmallFraction(n); ok {
				if r = evaluation.Reduce(r.Num, r.Den); r.Den == 1 {
					return strconv.FormatInt(r.Num, 10)
				}
				return strconv.FormatInt(r.Num, 10) + "/" + strconv.FormatInt(r.Den, 10)
			}
			if r, err := c.Exact(n, nil); err == nil && evaluation.BitSize(r) < 4096 {
				return r.RatString()
			}
		}
		return string(n.Hash64())
	}
	keys := func(list []*expr.Node) ([]string, map[string]bool) {
		ks, set := make([]string, len(list)), map[string]bool{}
		for i, n := range list {
			ks[i] = key(n)
			set[ks[i]] = true
		}
		return ks, set
	}
	ka, inA := keys(a)
	kb, inB := keys(b)
	rest := func(list []*expr.Node, ks []string, other map[string]bool) []*expr.Node {
		var out []*expr.Node
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

// element compares two elements: a set as an element is no number.
func (c *comparer) element(x, y *expr.Node) result {
	if !c.Compat && x.Op != y.Op && (x.Op == expr.OpSet || x.Op == expr.OpEmpty || y.Op == expr.OpSet || y.Op == expr.OpEmpty) && (x.IsExpr() || y.IsExpr()) {
		return different(MethodStructure, "a set against a number")
	}
	return c.value(x, y)
}

// match looks for a partner of each answer on the other side.
func (c *comparer) match(a, b []*expr.Node) result {
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
