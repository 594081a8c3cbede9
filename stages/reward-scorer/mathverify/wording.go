package mathverify

import (
	"maps"
	"strings"
)

// wordsWith compares when at least one side is text.
func (c *comparer) wordsWith(g, p *node) result {
	a, b := wording(g), wording(p)
	switch {
	case a == b && a != "":
		return equal(MethodWords, "the same words")
	case g.op == opWords && p.op == opWords:
		if x, y := wordSet[a], wordSet[b]; x != nil && y != nil && x.same(y) {
			return equal(MethodWords, "words for the same set")
		}
		if sameWords(g.name, p.name) {
			return equal(MethodWords, "the same words in another order")
		}
		return different(MethodWords, "different words")
	}
	w, other := g, p
	if p.op == opWords {
		w, other = p, g
	}
	if n, ok := numberWords[wording(w)]; ok {
		return c.value(integer(n), other)
	}
	if other.op == opList || other.op == opSet || other.op == opMul && len(wordItems(w)) > 1 {
		return c.unordered(wordItems(g), wordItems(p))
	}
	if set := wordSet[wording(w)]; set != nil {
		return c.value(set, other)
	}
	if name, v := assignment(other); name != nil {
		if g == other {
			return c.value(v, p)
		}
		return c.value(g, v)
	}
	return different(MethodWords, "words against a quantity")
}

// wordItems lists the answers of "\text{B, E and G}" or of a list.
func wordItems(n *node) []*node {
	if n.op != opWords || len(n.name) > 1000 {
		return items(n)
	}
	var out []*node
	for _, part := range strings.Split(strings.ReplaceAll(n.name, " and ", ","), ",") {
		switch part = strings.Trim(part, " ()."); len(part) {
		case 0:
		case 1:
			out = append(out, sym(part))
		default:
			out = append(out, words(part))
		}
	}
	return out
}

// sameWords compares "Monday, Tuesday" with "Tuesday and Monday".
func sameWords(a, b string) bool {
	split := func(s string) map[string]bool {
		set := map[string]bool{}
		for _, part := range strings.Split(strings.ReplaceAll(s, " and ", ","), ",") {
			if w := wording(words(part)); w != "" {
				set[w] = true
			}
		}
		return set
	}
	if !strings.Contains(a, ",") && !strings.Contains(a, " and ") || len(a)+len(b) > 1000 {
		return false
	}
	return maps.Equal(split(a), split(b))
}

var numberWords = map[string]int64{
	"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12, "sixteen": 16,
}

// changesValue says whether words in front of a quantity are more than a remark:
// "not 5" and "half of 5" are not 5, "about 5" is.
func changesValue(s string) bool {
	s = strings.ToLower(s)
	for _, w := range []string{"half", "half of", "twice", "double", "triple", "square of", "cube of", "root of", "minus", "negative", "less than", "more than", "greater than", "fewer than"} {
		if s == w || strings.HasSuffix(s, " "+w) {
			return true
		}
	}
	first, _, _ := strings.Cut(s, " ")
	return first == "no" || first == "not"
}

var wordSet = map[string]*node{
	"all real numbers": seal(&node{op: opReals, name: "R"}), "all reals": seal(&node{op: opReals, name: "R"}),
	"empty set": leaf(opEmpty), "no solution": leaf(opEmpty), "no solutions": leaf(opEmpty),
	"no real solution": leaf(opEmpty), "no real solutions": leaf(opEmpty), "no real roots": leaf(opEmpty),
	"infinity": leaf(opInf),
}

// wording is what text is compared by: lower case, without articles and
// punctuation.
func wording(n *node) string {
	switch n.op {
	case opWords, opSym:
		var kept []string
		for _, w := range strings.FieldsFunc(strings.ToLower(n.name), func(r rune) bool {
			return r == ' ' || r == '.' || r == ',' || r == '!' || r == '"' || r == '\'' || r == '(' || r == ')'
		}) {
			if w != "the" && w != "a" && w != "an" || len(n.name) == 1 {
				kept = append(kept, w)
			}
		}
		return strings.Join(kept, " ")
	case opMul: // letters that spell a word
		var b strings.Builder
		for _, k := range n.kids {
			switch k.op {
			case opSym:
				b.WriteString(strings.ToLower(k.name))
			case opE:
				b.WriteString("e")
			case opI:
				b.WriteString("i")
			default:
				return ""
			}
		}
		return b.String()
	case opE:
		return "e"
	case opI:
		return "i"
	}
	return ""
}
