package deciding

import (
	"slices"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

// maxSigns bounds the ± of one answer.
const maxSigns = 16

// expandPM turns x ± y into the two answers.
func expandPM(n *expr.Node) *expr.Node {
	pm := func(k *expr.Node) bool { return k.Op == expr.OpPM }
	switch {
	case n.Op == expr.OpList || n.Op == expr.OpSet:
		if !n.Any(pm) {
			return n
		}
		var kids []*expr.Node
		for _, k := range n.Kids {
			if e := expandPM(k); e.Op == expr.OpList && k.Op != expr.OpList {
				kids = append(kids, e.Kids...)
			} else {
				kids = append(kids, e)
			}
		}
		return expr.Seal(&expr.Node{Op: n.Op, Name: n.Name, Kids: kids})
	case !n.Any(pm):
		return n
	case n.Op == expr.OpRel && plainSet(n.Kids[len(n.Kids)-1]): // x = {1±√5, -2}
		kids := slices.Clone(n.Kids)
		kids[len(kids)-1] = expandPM(kids[len(kids)-1])
		return expr.Seal(&expr.Node{Op: expr.OpRel, Kids: kids, Rels: n.Rels})
	}
	signs := 0
	n.Any(func(k *expr.Node) bool {
		if k.Op == expr.OpPM {
			signs++
		}
		return signs > maxSigns
	})
	if signs > maxSigns {
		return n // no answer has so many; it is not read
	}
	choose := func(upper bool) *expr.Node {
		return n.Rewrite(func(k *expr.Node) *expr.Node {
			if k.Op != expr.OpPM {
				return k
			}
			if (k.Name == "+-") == upper {
				return expr.Add(k.Kids...)
			}
			return expr.Sub(k.Kids[0], k.Kids[1])
		})
	}
	return expr.Tree(expr.OpList, choose(true), choose(false))
}

// regroup makes "p = 5, q = 2 and p = 7, q = 2" two pairs: a name that comes
// again begins the next answer.
func regroup(n *expr.Node) *expr.Node {
	n = spreadUnequal(n)
	if n.Op != expr.OpList || len(n.Kids) < 4 {
		return n
	}
	names := make([]*expr.Node, len(n.Kids))
	period := 0
	for i, k := range n.Kids {
		name, _ := reading.Assignment(k)
		if name == nil {
			return n
		}
		names[i] = name
		if period == 0 && i > 0 && name.Same(names[0]) {
			period = i
		}
	}
	if period < 2 || len(names)%period != 0 {
		return n
	}
	var groups []*expr.Node
	for i := 0; i < len(names); i += period {
		for j := range period {
			if !names[i+j].Same(names[j]) {
				return n
			}
		}
		groups = append(groups, expr.Tree(expr.OpTuple, n.Kids[i:i+period]...))
	}
	return expr.Seal(&expr.Node{Op: expr.OpList, Kids: groups, Name: n.Name})
}
