package mathverify

import (
	"math/big"
	"slices"
	"strings"
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
func against(r, s remark) agreement {
	a, b := r.only(s), s.only(r)
	for _, x := range a {
		for _, y := range b {
			if opposed(x.text, y.text) {
				return contradict
			}
		}
	}
	switch {
	case len(a) == 0 && len(b) == 0:
		return agree
	case len(a) > 0 && len(b) > 0 && a.allFree() && b.allFree():
		if countsOnly(a) || countsOnly(b) {
			return agree
		}
		return unclear
	case len(a) > 0 && len(b) > 0:
		return unclear
	case a.allFree() && b.allFree():
		return agree
	case a.denies() || b.denies():
		return denied
	}
	return unclear
}

// countsOnly says whether all words count without saying what.
func countsOnly(r remark) bool {
	return !slices.ContainsFunc(r, func(w remarkWord) bool { return !generic[w.text] })
}

// sayings compares two answers that are words alone.
func sayings(g, p *node) result {
	a, b := sayingOf(g.name), sayingOf(p.name)
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
			if opposed(v, w) {
				return different(MethodWords, "words that contradict each other: "+v+" and "+w)
			}
		}
	}
	for _, only := range [][]string{x, y} {
		if len(x)+len(y) == len(only) && slices.ContainsFunc(only, func(w string) bool { return classOf(w) == denial }) {
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
	return !slices.ContainsFunc(list, func(w string) bool { return !kinds[w] && classOf(w) != glue })
}

// wordsWith compares when at least one side is words alone.
func (c *comparer) wordsWith(g, p *node) result {
	if g.op == opWords && p.op == opWords {
		if x, y := wordSet[setKey(g)], wordSet[setKey(p)]; x != nil && y != nil && x.same(y) {
			return equal(MethodWords, "words for the same set")
		}
		return sayings(g, p)
	}
	w, other := g, p
	if p.op == opWords {
		w, other = p, g
	}
	if s := spelled(other); s != "" && s == strings.Join(sayingOf(w.name), "") {
		return equal(MethodWords, "the same letters")
	}
	if set := wordSet[setKey(w)]; set != nil {
		return c.value(set, other)
	}
	if name, v := assignment(other); name != nil {
		if g == other {
			return c.value(v, p)
		}
		return c.value(g, v)
	}
	return undecided(MethodWords, "words against a quantity")
}

func setKey(n *node) string {
	if n.op != opWords {
		return ""
	}
	return strings.Join(sayingOf(n.name), " ")
}

// wordSet are the words for sets, as sayingOf writes them.
var wordSet = map[string]*node{
	"all real number": seal(&node{op: opReals, name: "R"}), "all real": seal(&node{op: opReals, name: "R"}), "real number": seal(&node{op: opReals, name: "R"}),
	"half": rational(big.NewRat(1, 2)), "all integer": seal(&node{op: opReals, name: "Z"}), "empty set": leaf(opEmpty), "no solution": leaf(opEmpty), "no root": leaf(opEmpty),
}

// spelled is the word that a product of letters spells, or "".
func spelled(n *node) string {
	if n.op == opSym || n.op == opE || n.op == opI {
		return strings.ToLower(n.String())
	}
	if n.op != opMul {
		return ""
	}
	var b strings.Builder
	for _, k := range n.kids {
		if k.op != opSym && k.op != opE && k.op != opI || len(k.name) > 1 {
			return ""
		}
		b.WriteString(strings.ToLower(k.String()))
	}
	return b.String()
}
