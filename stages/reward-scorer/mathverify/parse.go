package mathverify

import (
	"errors"
	"fmt"
	"strings"
)

// errSyntax is wrapped by every error of the parser that is not errLimit.
var errSyntax = errors.New("not understood")

// reading chooses among the meanings of ambiguous spellings.
type reading struct {
	split        bool // "1,234" is two numbers, not one
	decimalComma bool // "2,74" is a decimal
	unitLetters  bool // "5 m" is a length
}

// parser reads one answer by recursive descent. Each token is looked at a
// bounded number of times; nesting is bounded by maxDepth.
type parser struct {
	reading
	toks      []token
	pos       int
	depth     int
	steps     int  // tokens looked at
	bars      int  // open |…| that a bar would close
	brackets  int  // open brackets, in which a comma separates
	integrals int  // open integrals, which "dx" ends
	level     int  // open groups and brackets
	dxLevel   int  // the level at which the innermost integral's "dx" stands
	ambiguous bool // a thousands separator could be a comma
	owned     bool // toks is a copy, and may be changed
	unit      string
	before    []string         // words in front of the current answer
	after     []string         // and behind it
	literals  map[string]*node // short numbers met so far, so that repetition is cheap
}

// parse reads a whole answer.
func parse(toks []token, r reading) (*node, bool, error) {
	p := &parser{reading: r, toks: outward(trim(toks))}
	n, err := p.sequence(func(token) bool { return false })
	if err == nil && p.pos < len(p.toks) {
		err = p.fail("unexpected")
	}
	return n, p.ambiguous, err
}

// readable says why a text cannot be read as an answer.
func readable(text string) error {
	toks, err := lex(text)
	if err == nil {
		_, _, err = parse(toks, reading{})
	}
	return err
}

// own copies the tokens before the first change: "\frac12" splits its "12".
func (p *parser) own() {
	if !p.owned {
		p.toks, p.owned = append([]token(nil), p.toks...), true
	}
}

func (p *parser) peek() token {
	p.steps++
	if p.pos < len(p.toks) {
		return p.toks[p.pos]
	}
	return token{}
}

func (p *parser) peekAt(n int) token {
	p.steps++
	if p.pos+n < len(p.toks) {
		return p.toks[p.pos+n]
	}
	return token{}
}

func (p *parser) fail(what string) error {
	t := p.peek()
	if t.kind == tEnd {
		return fmt.Errorf("%w: %s at the end", errSyntax, what)
	}
	return fmt.Errorf("%w: %s at %q (byte %d)", errSyntax, what, clipText(t.text, 20), t.at)
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return errLimit
	}
	return nil
}

func (p *parser) accept(k kind, text string) bool {
	if p.peek().is(k, text) {
		p.pos++
		return true
	}
	return false
}

// separator says how the token parts two answers: ",", ";", "and", "or", or "".
func (p *parser) separator(t token) string {
	switch {
	case t.op(",") || t.op(`\\`) || t.op("&"):
		return ","
	case t.op(";"):
		return ";"
	case t.kind == tWord || t.kind == tCmd:
		switch strings.ToLower(t.text) {
		case "and", "or":
			return strings.ToLower(t.text)
		}
	}
	return ""
}

// sequence reads answers up to a token that stops it (which it leaves) or the
// end. One answer is returned as it is, several as an opList named after what
// stood between them.
func (p *parser) sequence(stop func(token) bool) (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	var groups [][]*node
	var group []*node
	name := ""
	for {
		for p.separator(p.peek()) != "" {
			switch s := p.separator(p.peek()); s {
			case ";":
				if len(group) > 0 {
					groups, group = append(groups, group), nil
				}
			case "or", "and":
				name = s
			}
			p.pos++
		}
		if t := p.peek(); t.kind == tEnd || stop(t) {
			break
		}
		n, err := p.item(stop)
		if err != nil {
			return nil, err
		}
		if n.op != opWords || len(group) == 0 || !allFillers(n.name) { // "Yes, it is"
			group = append(group, n)
		}
		if t := p.peek(); t.kind != tEnd && !stop(t) && p.separator(t) == "" && !p.nextAnswer() {
			return nil, p.fail("unexpected")
		}
	}
	if len(groups) == 0 && len(group) > 1 && answered(group) {
		group = group[:1]
	}
	if len(groups) == 0 && len(group) == 1 {
		return group[0], nil
	}
	if len(group) > 0 {
		groups = append(groups, group)
	}
	if len(groups) == 0 {
		return nil, p.fail("an answer is missing")
	}
	return assemble(groups, name), nil
}

// answered says whether a yes or no is followed by words alone that repeat it:
// "Yes, he can".
func answered(group []*node) bool {
	for i, n := range group {
		if n.op != opWords || (i == 0) != (strings.EqualFold(n.name, "yes") || strings.EqualFold(n.name, "no")) {
			return false
		}
		for _, w := range strings.Fields(strings.ToLower(n.name)) {
			if i > 0 && (classOf(w) == denial || opposites[w] != "") {
				return false
			}
		}
	}
	return true
}

// allFillers says whether words say nothing.
func allFillers(text string) bool {
	for _, w := range strings.Fields(text) {
		if classOf(w) != filler {
			return false
		}
	}
	return true
}

// assemble makes one node of groups parted by semicolons: "1,2; 3,4" are two
// pairs, "1; 2" two answers.
func assemble(groups [][]*node, name string) *node {
	if len(groups) == 1 {
		if len(groups[0]) == 1 {
			return groups[0][0]
		}
		return seal(&node{op: opList, kids: groups[0], name: name})
	}
	kids := make([]*node, 0, len(groups))
	for _, g := range groups {
		if len(g) == 1 {
			kids = append(kids, g[0])
		} else {
			kids = append(kids, tree(opTuple, g...))
		}
	}
	return seal(&node{op: opList, kids: kids, name: name})
}

// side reads a set expression, a ratio or a quantity.
func (p *parser) side() (*node, error) {
	n, err := p.sum()
	if err != nil {
		return nil, err
	}
	for {
		t := p.peek()
		switch {
		case t.kind == tSetOp:
			p.pos++
			right, err := p.sum()
			if err != nil {
				return nil, err
			}
			n = seal(&node{op: opSetOp, name: t.text, kids: []*node{asSet(n), asSet(right)}})
		case t.op(":"):
			kids, clock := []*node{n}, ""
			for p.accept(tOp, ":") {
				if t := p.peek(); t.kind == tNum && len(t.text) == 2 && t.text[0] == '0' {
					clock = "clock"
				}
				right, err := p.sum()
				if err != nil {
					return nil, err
				}
				kids = append(kids, right)
			}
			n = seal(&node{op: opRatio, name: clock, kids: kids})
		case t.cmd("over") || t.cmd("choose"):
			p.pos++
			right, err := p.sum()
			if err != nil {
				return nil, err
			}
			if t.text == "over" {
				n = div(n, right)
			} else {
				n = call("binom", n, right)
			}
		case t.cmd("pmod"):
			p.pos++
			right, err := p.argument()
			if err != nil {
				return nil, err
			}
			n = congruent(n, right)
		case t.op("(") && p.peekAt(1).cmd("mod"):
			p.pos += 2
			right, err := p.sum()
			if err != nil {
				return nil, err
			}
			if !p.accept(tOp, ")") {
				return nil, p.fail("a bracket that does not close")
			}
			n = congruent(n, right)
		default:
			return n, nil
		}
	}
}

// sum reads terms joined by signs.
func (p *parser) sum() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	var kids []*node // from the second term on, with the first
	var first *node
	for {
		sign, pm, any := 1, "", false
		for {
			t := p.peek()
			if t.op("-") {
				sign = -sign
			} else if t.cmd("pm") || t.cmd("mp") {
				pm = map[string]string{"pm": "+-", "mp": "-+"}[t.text]
			} else if !t.op("+") {
				break
			}
			any = true
			p.pos++
		}
		if first != nil && !any {
			break
		}
		n, err := p.term()
		if err != nil {
			return nil, err
		}
		switch {
		case sign < 0 && n.op == opSet && first != nil && kids == nil && !first.isExpr(): // \mathbb{R} - \{1\}
			first = seal(&node{op: opSetOp, name: "setminus", kids: []*node{first, n}})
			continue
		case sign < 0 && n.op == opFunc && n.name == "mod": // -1 mod 2 is (-1) mod 2
			n = call("mod", neg(n.kids[0]), n.kids[1])
		case sign < 0:
			n = neg(n)
		}
		if pm != "" {
			left := integer(0)
			if kids != nil {
				left = add(kids...)
			} else if first != nil {
				left = first
			}
			first, kids = seal(&node{op: opPM, name: pm, kids: []*node{left, n}}), nil
			continue
		}
		switch {
		case first == nil:
			first = n
		case kids == nil:
			kids = []*node{first, n}
		default:
			kids = append(kids, n)
		}
	}
	if kids == nil {
		return first, nil
	}
	return add(kids...), nil
}

// term reads factors joined by signs of multiplication or by nothing.
func (p *parser) term() (*node, error) {
	first, err := p.power()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tWord && !t.op("*") && !t.op("/") && !t.cmd("mod") && !p.startsFactor(t) {
		return first, nil
	}
	factors := make([]*node, 1, 4)
	factors[0] = first
	for {
		t := p.peek()
		switch {
		case (t.op("*") || t.op("/") || t.op("(") || t.kind == tLetter || t.kind == tWord) && p.isUnit() && p.takeUnit():
		case t.kind == tLetter && t.upright && strings.Contains("kKM", t.text) && p.toks[p.pos-1].kind == tNum: // thousands, or kelvins
			p.after = append(p.after, t.text)
			p.pos++
		case p.fractionUnit():
		case t.op("*"):
			p.pos++
			n, err := p.signedPower()
			if err != nil {
				return nil, err
			}
			factors = append(factors, n)
		case t.op("/"):
			p.pos++
			n, err := p.signedPower()
			if err != nil {
				return nil, err
			}
			factors = append(factors, pow(n, integer(-1)))
		case t.cmd("mod"):
			p.pos++
			n, err := p.signedPower()
			if err != nil {
				return nil, err
			}
			factors = []*node{call("mod", mul(factors...), n)}
		case t.kind == tWord && p.separator(t) == "":
			factors = p.wordAfter(factors)
		case p.startsFactor(t) && !p.nextAnswer():
			if t.kind == tNum && p.pos > 0 && p.toks[p.pos-1].kind == tNum && factors[len(factors)-1].op == opNum {
				return nil, p.fail("two numbers side by side")
			}
			n, err := p.power()
			if err != nil {
				return nil, err
			}
			factors = append(factors, n)
		default:
			for i, n := range factors { // \{1+2\}\{3-4\}: braces for brackets
				if n.op == opSet && len(n.kids) == 1 && n.kids[0].isExpr() {
					factors[i] = n.kids[0]
				}
			}
			return mul(factors...), nil
		}
	}
}

func (p *parser) signedPower() (*node, error) {
	sign := 1
	for p.peek().op("-") || p.peek().op("+") {
		if p.peek().op("-") {
			sign = -sign
		}
		p.pos++
	}
	n, err := p.power()
	if err == nil && sign < 0 {
		n = neg(n)
	}
	return n, err
}

// startsFactor says whether t can follow a factor without a sign.
func (p *parser) startsFactor(t token) bool {
	switch t.kind {
	case tNum, tFunc:
		return true
	case tLetter:
		differential := p.integrals > 0 && p.level == p.dxLevel && t.text == "d" && p.peekAt(1).kind == tLetter && !p.peekAt(1).spaced
		return !differential
	case tOp:
		switch t.text {
		case "(":
			return !p.peekAt(1).cmd("mod")
		case "[", "{", `\{`:
			return true
		case "|":
			return p.bars == 0
		}
	case tCmd:
		switch t.text {
		case "frac", "sqrt", "binom", "sum", "prod", "int", "lim", "begin", "pi", "infty", "lfloor", "lceil", "mathbb", "dots", "variable", "reals":
			return true
		}
		return strings.HasPrefix(t.text, "accent")
	}
	return false
}
