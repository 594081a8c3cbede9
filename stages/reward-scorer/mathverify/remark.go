package mathverify

import (
	"math/big"
	"slices"
	"strings"
)

// remark is the words that stand with a quantity and that a filler is not: what
// is counted, what is said of it. Words that belong to a place in front of or
// behind the quantity bear a mark for it.
type remark []remarkWord

type remarkWord struct {
	text string
	free bool // may stand on one side only
}

// remarkOf makes a remark of the words in front of a quantity and behind it.
func remarkOf(before, after []string) remark {
	var r remark
	for place, list := range [][]string{before, after} {
		for i, w := range list {
			lower := strings.ToLower(w)
			subject := w != lower && place == 0 && i+1 < len(list) && possessing[list[i+1]]
			w = lower
			list[i] = lower
			class := classOf(w)
			switch {
			case class == filler, class == unknownWord && subject:
				continue
			case class == quantifier:
				if i+1 < len(list) && nounFollows(list[i+1:]) {
					class = adjective
				}
			}
			if class == noun && operations[w] || w == "of" && place == 0 && i == len(list)-1 && (i == 0 || !measures[list[i-1]]) {
				class = unknownWord
			}
			if (powers[w] > 0 || powerWords[w] != "") && (i > 0 && singular(list[i-1]) == "unit" || i+1 < len(list) && singular(list[i+1]) == "unit") {
				continue // "9 units squared"
			}
			text := w
			switch {
			case monthNames[w] != "":
				text = monthNames[w]
			case class == noun || class == adjective:
				text = singular(w)
			case class == unknownWord && place == 0 && !months[w] && opposites[w] == "":
				text = w + " …" // "below 7" is not "7 below"
			}
			r = append(r, remarkWord{text, class.free()})
		}
	}
	return r
}

// possessing are the verbs behind a name that only tell who has what is counted:
// "John has 7 apples".
var possessing = map[string]bool{"has": true, "have": true, "had": true, "gets": true, "got": true, "needs": true, "earns": true, "earned": true, "pays": true, "paid": true, "makes": true, "made": true, "spends": true, "spent": true, "takes": true, "took": true, "sold": true, "sells": true, "bought": true, "buys": true}

// nounFollows says whether a noun comes, behind no more than adjectives.
func nounFollows(list []string) bool {
	for _, w := range list {
		switch classOf(w) {
		case noun:
			return true
		case adjective, quantifier, filler:
		default:
			return false
		}
	}
	return false
}

func (r remark) has(text string) bool {
	return slices.ContainsFunc(r, func(w remarkWord) bool { return w.text == text })
}

// key is what two remarks that say the same share.
func (r remark) key() string {
	var parts []string
	for _, w := range r {
		parts = append(parts, w.text)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), " ")
}

// only returns the words of r that are not in s.
func (r remark) only(s remark) remark {
	var out remark
	for _, w := range r {
		if !s.has(w.text) {
			out = append(out, w)
		}
	}
	return out
}

func (r remark) allFree() bool {
	return !slices.ContainsFunc(r, func(w remarkWord) bool { return !w.free })
}

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
func (r remark) against(s remark) agreement {
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
		if a.generic() || b.generic() {
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

// generic says whether all words count without saying what.
func (r remark) generic() bool {
	return !slices.ContainsFunc(r, func(w remarkWord) bool { return !generic[w.text] })
}

func (r remark) denies() bool {
	return slices.ContainsFunc(r, func(w remarkWord) bool { return classOf(strings.TrimSuffix(w.text, " …")) == denial })
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

// sayingOf is the words of an answer in the form in which they are compared.
func sayingOf(text string) []string {
	all := strings.Fields(strings.ToLower(text))
	var kept []string
	for _, w := range all {
		if class := classOf(w); class == filler && w != "yes" {
			continue
		}
		if m := monthNames[w]; m != "" {
			w = m
		}
		kept = append(kept, singular(w))
	}
	if len(kept) == 0 {
		return all
	}
	if len(kept) > 1 && kept[0] == "no" && kept[1] == "real" { // "no real solution"
		kept = append(kept[:1], kept[2:]...)
	}
	return kept
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
