package reading

import (
	"slices"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// item reads one answer: a relation, a set or a quantity, with its unit and the
// words beside it; or words alone.
func (p *parser) item(stop func(Token) bool) (*expr.Node, error) {
	unit, before, after := p.unit, p.before, p.after
	p.unit, p.before, p.after = "", nil, nil
	defer func() { p.unit, p.before, p.after = unit, before, after }()
	start := p.pos
	p.takeBefore(stop)
	if t := p.peek(); p.pos > start && (t.Kind == tEnd || stop(t) || p.separator(t) != "") {
		return p.wordsSince(start), nil
	}
	var first *expr.Node
	switch t := p.peek(); {
	case t.Kind == TRel && len(p.before) > 0 && (t.Text == "=" || t.Text == "~" || expr.Opposite[t.Text] != "" || t.Text == "!="):
		first = p.wordsSince(start) // "area = 5"
		p.before = nil
		if p.unit == "" && SayingOf(first.Name)[0] == "" {
			first = expr.Sym("")
		}
	case t.Kind == TRel && (expr.Opposite[t.Text] != "" || t.Text == "!="): // "at least 5"
		first = expr.Sym("")
	default:
		for p.peek().Is(TRel, "~") || p.peek().Is(TRel, "=") || p.peek().Is(TRel, "in") {
			p.pos++
		}
		n, err := p.side()
		if err != nil {
			return nil, err
		}
		first = n
	}
	if p.peek().Kind == TPost {
		first = p.post(first)
	}
	if p.peek().Kind != TRel {
		return p.finish(first), nil
	}
	return p.relation(first)
}

// takeBefore takes the words in front of an answer, with the punctuation among
// them. Signs of money are its unit.
func (p *parser) takeBefore(stop func(Token) bool) {
	start := p.pos
	for {
		t := p.peek()
		switch {
		case t.Kind == TWord && p.separator(t) == "":
			if currency[units[strings.ToLower(t.Text)]] && startsQuantity(p.peekAt(1)) {
				return
			}
			p.before = append(p.before, t.Text)
		case p.pos > start && (t.Op(".") || t.Op(":")) && p.toks[p.pos-1].Kind == TWord:
		case p.pos > start && t.Op(",") && p.fillers() && !stop(t): // "so, 5"
		default:
			return
		}
		p.pos++
	}
}

// fillers says whether all words before say nothing.
func (p *parser) fillers() bool {
	for _, w := range p.before {
		if ClassOf(strings.ToLower(w)) != Filler {
			return false
		}
	}
	return len(p.before) > 0
}

// post makes "5 or more" a relation and "5 below zero" its negative.
func (p *parser) post(n *expr.Node) *expr.Node {
	t := p.peek()
	p.pos++
	if t.Text == "neg" {
		return expr.Neg(n)
	}
	return expr.Seal(&expr.Node{Op: expr.OpRel, Kids: []*expr.Node{expr.Sym(""), p.finish(n)}, Rels: []string{t.Text}})
}

// relation reads the sides that follow the first.
func (p *parser) relation(first *expr.Node) (*expr.Node, error) {
	rel := &expr.Node{Op: expr.OpRel, Kids: []*expr.Node{first}}
	outer := p.before
	p.before = nil
	if len(p.after) > 0 {
		rel.Kids[0] = p.finish(first)
		p.after = nil
	}
	p.unit = ""
	for p.peek().Kind == TRel {
		rel.Rels = append(rel.Rels, p.peek().Text)
		p.pos++
		if p.peek().Kind == TRel && p.peek().Text == "=" { // "≤ ="
			p.pos++
		}
		start := p.pos
		none := func(Token) bool { return false }
		p.takeBefore(none)
		if t := p.peek(); p.pos > start && !startsQuantity(t) {
			rel.Kids = append(rel.Kids, p.wordsSince(start))
			p.before = nil
			break
		}
		next, err := p.side()
		if err != nil {
			return nil, err
		}
		if p.peek().Is(TPost, "neg") {
			next = p.post(next)
		}
		rel.Kids = append(rel.Kids, p.finish(next))
		p.unit, p.before, p.after = "", nil, nil
	}
	p.before = outer
	if len(rel.Kids) > 2 && rel.Kids[0].Op == expr.OpWords && rel.Rels[0] == "=" && NameLike(rel.Kids[1]) && NameInWords(rel.Kids[0].Name) { // "the answer is x = 5"
		rel.Kids, rel.Rels = rel.Kids[1:], rel.Rels[1:]
	}
	return p.finish(expr.Seal(rel)), nil
}

// finish gives an answer its unit and the words beside it.
func (p *parser) finish(n *expr.Node) *expr.Node {
	if p.unit == "" && len(p.before) == 0 && len(p.after) == 0 {
		return n
	}
	r := remarkOf(p.before, p.after)
	if p.unit == "" && len(r) == 0 {
		return n
	}
	m := *n // the hash leaves unit and words out on purpose
	if p.unit != "" {
		m.Unit = p.unit
	}
	if len(r) > 0 {
		m.Remark = append(slices.Clip(m.Remark), r...)
	}
	m.Marked = true
	return &m
}

// wordsSince is an answer of words alone.
func (p *parser) wordsSince(start int) *expr.Node {
	var parts []string
	for _, t := range p.toks[start:p.pos] {
		if t.Kind == TWord {
			parts = append(parts, t.Text)
		}
	}
	return expr.Words(strings.Join(parts, " "))
}

// wordAfter takes a word behind a quantity: a sign in words, or a remark.
func (p *parser) wordAfter(factors []*expr.Node) []*expr.Node {
	text := strings.ToLower(p.peek().Text)
	if next := p.peekAt(1); text == "for" && (next.Word("all") || next.Word("any") || next.Word("every")) {
		p.pos = len(p.toks) // it holds for all: nothing more is said
		return factors
	}
	last := factors[len(factors)-1]
	rest := factors[: len(factors)-1 : len(factors)-1]
	free := len(p.after) == 0 && (p.unit == "" || currency[p.unit])
	switch {
	case free && multiples[text] > 0:
		p.pos++
		return append(factors, expr.Integer(multiples[text]))
	case free && last.Op == expr.OpNum && text != "quarters" && text != "quarter" && text != "half" && denominator(text) > 0 && strings.HasSuffix(text, "s"): // "7 tenths"
		p.pos++
		return append(factors, expr.Pow(expr.Integer(denominator(text)), expr.Integer(-1)))
	case free && powers[text] > 0:
		p.pos++
		return append(rest, expr.Pow(last, expr.Integer(powers[text])))
	case units[text] == "percent" || text == "per" && p.peekAt(1).Word("cent"):
		if text == "per" {
			p.pos++
		}
		p.pos++
		return []*expr.Node{expr.Tree(expr.OpPercent, expr.Mul(factors...))}
	case units[text] == "degree":
		p.pos++
		n := expr.Tree(expr.OpDeg, expr.Mul(factors...))
		if p.unitAt(0) == "C" || p.unitAt(0) == "F" { // a temperature
			n = expr.Mul(factors...)
		}
		return []*expr.Node{n}
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
	case t.Op("*"), t.Op("/"):
		return p.unitAt(1) != "" && (t.Op("*") || p.unit != "")
	case t.Op("("):
		return p.unitAt(1) != "" && p.peekAt(2).Op(")")
	case t.Kind == TLetter:
		return p.unitAt(0) != "" && !p.peekAt(1).Op("(") && (!p.UnitLetters || t.upright || p.unitEnds(1))
	}
	return true
}

// unitEnds says whether the answer ends n tokens ahead, but for more units.
func (p *parser) unitEnds(n int) bool {
	t := p.peekAt(n)
	return t.Kind == tEnd || t.Op("^") || t.Op("/") || t.Op(",") || t.Op(")") || t.Op(".") || t.Kind == TWord || t.Kind == TRel || t.Op("*")
}

// nextAnswer says whether an answer of its own begins here without a comma: a
// number behind a word, as in "5 ft 3 in" or "3 by 4", or "y = 2" behind \quad.
func (p *parser) nextAnswer() bool {
	t := p.peek()
	switch t.Kind {
	case TNum:
		return p.pos > 0 && (p.toks[p.pos-1].Kind == TWord || p.toks[p.pos-1].upright && p.unit != "")
	case TLetter:
		return t.wide && p.pos > 0 && (p.peekAt(1).Is(TRel, "=") || p.peekAt(1).Op("_") && p.peekAt(3).Is(TRel, "="))
	}
	return false
}

// currency are the units that stand before the number.
var currency = map[string]bool{"dollar": true, "euro": true, "gbp": true, "yen": true, "rupee": true, "yuan": true, "peso": true}
