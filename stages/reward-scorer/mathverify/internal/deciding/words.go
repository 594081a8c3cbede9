package deciding

import (
	"math/big"
	"slices"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

// agreement of two remarks.
type agreement uint8

const (
	agree      agreement = iota // the quantities decide
	unclear                     // equal quantities would still say different things, perhaps
	contradict                  // one denies the other
	denied                      // one denies what the other says: equal quantities are different answers
)

// against compares what is said beside two quantities. Words on one side only
// must be free; words on both sides must be the same.
func against(r, s expr.Remark) agreement {
	a, b := r.Only(s), s.Only(r)
	for _, x := range a {
		for _, y := range b {
			if reading.Opposed(x.Text, y.Text) {
				return contradict
			}
		}
	}
	switch {
	case len(a) == 0 && len(b) == 0:
		return agree
	case len(a) > 0 && len(b) > 0 && a.AllFree() && b.AllFree():
		if countsOnly(a) || countsOnly(b) {
			return agree
		}
		return unclear
	case len(a) > 0 && len(b) > 0:
		return unclear
	case a.AllFree() && b.AllFree():
		return agree
	case a.Denies() || b.Denies():
		return denied
	}
	return unclear
}

// countsOnly says whether all words count without saying what.
func countsOnly(r expr.Remark) bool {
	return !slices.ContainsFunc(r, func(w expr.RemarkWord) bool { return !reading.Generic[w.Text] })
}

// sayings compares two answers that are words alone.
func sayings(g, p *expr.Node) result {
	a, b := reading.SayingOf(g.Name), reading.SayingOf(p.Name)
	if slices.Equal(a, b) {
		return equal(MethodWords, "the same words")
	}
	x, y := difference(a, b), difference(b, a)
	switch {
	case len(x) == 0 && len(y) == 0:
		return undecided(MethodWords, "the same words in another order")
	case len(x) == 0 && len(y) < len(b) && allKinds(y), len(y) == 0 && len(x) < len(a) && allKinds(x):
		return equal(MethodWords, "the same words but for what they are said of")
	}
	for _, v := range x {
		for _, w := range y {
			if reading.Opposed(v, w) {
				return different(MethodWords, "words that contradict each other: "+v+" and "+w)
			}
		}
	}
	for _, only := range [][]string{x, y} {
		if len(x)+len(y) == len(only) && slices.ContainsFunc(only, func(w string) bool { return reading.ClassOf(w) == reading.Denial }) {
			return different(MethodWords, "one side denies what the other says")
		}
	}
	return undecided(MethodWords, "different words")
}

func difference(a, b []string) []string {
	var out []string
	for _, w := range a {
		if !slices.Contains(b, w) {
			out = append(out, w)
		}
	}
	return out
}

func allKinds(list []string) bool {
	return !slices.ContainsFunc(list, func(w string) bool { return !reading.Kinds[w] && reading.ClassOf(w) != reading.Glue })
}

// wordsWith compares when at least one side is words alone.
func (c *comparer) wordsWith(g, p *expr.Node) result {
	if g.Op == expr.OpWords && p.Op == expr.OpWords {
		if x, y := wordSet[setKey(g)], wordSet[setKey(p)]; x != nil && y != nil && x.Same(y) {
			return equal(MethodWords, "words for the same set")
		}
		return sayings(g, p)
	}
	w, other := g, p
	if p.Op == expr.OpWords {
		w, other = p, g
	}
	if s := spelled(other); s != "" && s == strings.Join(reading.SayingOf(w.Name), "") {
		return equal(MethodWords, "the same letters")
	}
	if set := wordSet[setKey(w)]; set != nil {
		return c.value(set, other)
	}
	if name, v := reading.Assignment(other); name != nil {
		if g == other {
			return c.value(v, p)
		}
		return c.value(g, v)
	}
	return undecided(MethodWords, "words against a quantity")
}

func setKey(n *expr.Node) string {
	if n.Op != expr.OpWords {
		return ""
	}
	return strings.Join(reading.SayingOf(n.Name), " ")
}

// wordSet are the words for sets, as sayingOf writes them.
var wordSet = map[string]*expr.Node{
	"all real number": expr.Seal(&expr.Node{Op: expr.OpReals, Name: "R"}), "all real": expr.Seal(&expr.Node{Op: expr.OpReals, Name: "R"}), "real number": expr.Seal(&expr.Node{Op: expr.OpReals, Name: "R"}),
	"half": expr.Rational(big.NewRat(1, 2)), "all integer": expr.Seal(&expr.Node{Op: expr.OpReals, Name: "Z"}), "empty set": expr.Leaf(expr.OpEmpty), "no solution": expr.Leaf(expr.OpEmpty), "no root": expr.Leaf(expr.OpEmpty),
}

// spelled is the word that a product of letters spells, or "".
func spelled(n *expr.Node) string {
	if n.Op == expr.OpSym || n.Op == expr.OpE || n.Op == expr.OpI {
		return strings.ToLower(n.String())
	}
	if n.Op != expr.OpMul {
		return ""
	}
	var b strings.Builder
	for _, k := range n.Kids {
		if k.Op != expr.OpSym && k.Op != expr.OpE && k.Op != expr.OpI || len(k.Name) > 1 {
			return ""
		}
		b.WriteString(strings.ToLower(k.String()))
	}
	return b.String()
}
