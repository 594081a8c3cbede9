package mathverify

import (
	"slices"
	"strings"
)

// item reads one answer: a relation, a set or a quantity, with its unit and the
// words beside it; or words alone.
func (p *parser) item(stop func(token) bool) (*node, error) {
	unit, before, after := p.unit, p.before, p.after
	p.unit, p.before, p.after = "", nil, nil
	defer func() { p.unit, p.before, p.after = unit, before, after }()
	start := p.pos
	p.takeBefore(stop)
	if t := p.peek(); p.pos > start && (t.kind == tEnd || stop(t) || p.separator(t) != "") {
		return p.wordsSince(start), nil
	}
	var first *node
	switch t := p.peek(); {
	case t.kind == tRel && len(p.before) > 0 && (t.text == "=" || t.text == "~" || opposite[t.text] != "" || t.text == "!="):
		first = p.wordsSince(start) // "area = 5"
		p.before = nil
		if p.unit == "" && sayingOf(first.name)[0] == "" {
			first = sym("")
		}
	case t.kind == tRel && (opposite[t.text] != "" || t.text == "!="): // "at least 5"
		first = sym("")
	default:
		for p.peek().is(tRel, "~") || p.peek().is(tRel, "=") || p.peek().is(tRel, "in") {
			p.pos++
		}
		n, err := p.side()
		if err != nil {
			return nil, err
		}
		first = n
	}
	if p.peek().kind == tPost {
		first = p.post(first)
	}
	if p.peek().kind != tRel {
		return p.finish(first), nil
	}
	return p.relation(first)
}

// takeBefore takes the words in front of an answer, with the punctuation among
// them. Signs of money are its unit.
func (p *parser) takeBefore(stop func(token) bool) {
	start := p.pos
	for {
		t := p.peek()
		switch {
		case t.kind == tWord && p.separator(t) == "":
			if currency[units[strings.ToLower(t.text)]] && startsQuantity(p.peekAt(1)) {
				return
			}
			p.before = append(p.before, t.text)
		case p.pos > start && (t.op(".") || t.op(":")) && p.toks[p.pos-1].kind == tWord:
		case p.pos > start && t.op(",") && p.fillers() && !stop(t): // "so, 5"
		default:
			return
		}
		p.pos++
	}
}

// fillers says whether all words before say nothing.
func (p *parser) fillers() bool {
	for _, w := range p.before {
		if classOf(strings.ToLower(w)) != filler {
			return false
		}
	}
	return len(p.before) > 0
}

// post makes "5 or more" a relation and "5 below zero" its negative.
func (p *parser) post(n *node) *node {
	t := p.peek()
	p.pos++
	if t.text == "neg" {
		return neg(n)
	}
	return seal(&node{op: opRel, kids: []*node{sym(""), p.finish(n)}, rels: []string{t.text}})
}

// relation reads the sides that follow the first.
func (p *parser) relation(first *node) (*node, error) {
	rel := &node{op: opRel, kids: []*node{first}}
	outer := p.before
	p.before = nil
	if len(p.after) > 0 {
		rel.kids[0] = p.finish(first)
		p.after = nil
	}
	p.unit = ""
	for p.peek().kind == tRel {
		rel.rels = append(rel.rels, p.peek().text)
		p.pos++
		if p.peek().kind == tRel && p.peek().text == "=" { // "≤ ="
			p.pos++
		}
		start := p.pos
		none := func(token) bool { return false }
		p.takeBefore(none)
		if t := p.peek(); p.pos > start && !startsQuantity(t) {
			rel.kids = append(rel.kids, p.wordsSince(start))
			p.before = nil
			break
		}
		next, err := p.side()
		if err != nil {
			return nil, err
		}
		if p.peek().is(tPost, "neg") {
			next = p.post(next)
		}
		rel.kids = append(rel.kids, p.finish(next))
		p.unit, p.before, p.after = "", nil, nil
	}
	p.before = outer
	if len(rel.kids) > 2 && rel.kids[0].op == opWords && rel.rels[0] == "=" && nameLike(rel.kids[1]) && nameInWords(rel.kids[0].name) { // "the answer is x = 5"
		rel.kids, rel.rels = rel.kids[1:], rel.rels[1:]
	}
	return p.finish(seal(rel)), nil
}

// finish gives an answer its unit and the words beside it.
func (p *parser) finish(n *node) *node {
	r := remarkOf(p.before, p.after)
	if p.unit == "" && len(r) == 0 {
		return n
	}
	m := *n // the hash leaves unit and words out on purpose
	if p.unit != "" {
		m.unit = p.unit
	}
	if len(r) > 0 {
		m.remark = append(slices.Clip(m.remark), r...)
	}
	m.marked = true
	return &m
}

// wordsSince is an answer of words alone.
func (p *parser) wordsSince(start int) *node {
	var parts []string
	for _, t := range p.toks[start:p.pos] {
		if t.kind == tWord {
			parts = append(parts, t.text)
		}
	}
	return words(strings.Join(parts, " "))
}

// wordAfter takes a word behind a quantity: a sign in words, or a remark.
func (p *parser) wordAfter(factors []*node) []*node {
	text := strings.ToLower(p.peek().text)
	if next := p.peekAt(1); text == "for" && (next.word("all") || next.word("any") || next.word("every")) {
		p.pos = len(p.toks) // it holds for all: nothing more is said
		return factors
	}
	last := factors[len(factors)-1]
	rest := factors[: len(factors)-1 : len(factors)-1]
	free := len(p.after) == 0 && p.unit == ""
	switch {
	case free && multiples[text] > 0:
		p.pos++
		return append(factors, integer(multiples[text]))
	case free && last.op == opNum && text != "quarters" && text != "quarter" && text != "half" && denominator(text) > 0 && strings.HasSuffix(text, "s"): // "7 tenths"
		p.pos++
		return append(factors, pow(integer(denominator(text)), integer(-1)))
	case free && powers[text] > 0:
		p.pos++
		return append(rest, pow(last, integer(powers[text])))
	case units[text] == "percent" || text == "per" && p.peekAt(1).word("cent"):
		if text == "per" {
			p.pos++
		}
		p.pos++
		return []*node{tree(opPercent, mul(factors...))}
	case units[text] == "degree":
		p.pos++
		n := tree(opDeg, mul(factors...))
		if p.unitAt(0) == "C" || p.unitAt(0) == "F" { // a temperature
			n = mul(factors...)
		}
		return []*node{n}
	}
	p.after = append(p.after, text)
	p.pos++
	return factors
}

// isUnit says whether a unit stands here, perhaps behind a sign.
func (p *parser) isUnit() bool {
	t := p.peek()
	switch {
	case p.pos == 0 || len(p.after) > 0:
		return false
	case t.op("*"), t.op("/"):
		return p.unitAt(1) != "" && (t.op("*") || p.unit != "")
	case t.op("("):
		return p.unitAt(1) != "" && p.peekAt(2).op(")")
	case t.kind == tLetter:
		return p.unitAt(0) != "" && !p.peekAt(1).op("(") && (!p.unitLetters || t.upright || p.unitEnds(1))
	}
	return true
}

// unitEnds says whether the answer ends n tokens ahead, but for more units.
func (p *parser) unitEnds(n int) bool {
	t := p.peekAt(n)
	return t.kind == tEnd || t.op("^") || t.op("/") || t.op(",") || t.op(")") || t.op(".") || t.kind == tWord || t.kind == tRel || t.op("*")
}

// nextAnswer says whether an answer of its own begins here without a comma: a
// number behind a word, as in "5 ft 3 in" or "3 by 4", or "y = 2" behind \quad.
func (p *parser) nextAnswer() bool {
	t := p.peek()
	switch t.kind {
	case tNum:
		return p.pos > 0 && (p.toks[p.pos-1].kind == tWord || p.toks[p.pos-1].upright && p.unit != "")
	case tLetter:
		return t.wide && p.pos > 0 && (p.peekAt(1).is(tRel, "=") || p.peekAt(1).op("_") && p.peekAt(3).is(tRel, "="))
	}
	return false
}

// currency are the units that stand before the number.
var currency = map[string]bool{"dollar": true, "euro": true, "gbp": true, "yen": true, "rupee": true, "yuan": true, "peso": true}
