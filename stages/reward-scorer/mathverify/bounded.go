package mathverify

import (
	"strings"
)

// series reads sums, products and integrals with their bounds.
func (p *parser) series(name string) (*node, error) {
	var lo, hi *node
	for {
		if p.peek().op("_") && lo == nil {
			p.pos++
			n, err := p.bound()
			if err != nil {
				return nil, err
			}
			lo = n
			continue
		}
		if p.peek().op("^") && hi == nil {
			p.pos++
			n, err := p.bound()
			if err != nil {
				return nil, err
			}
			hi = n
			continue
		}
		break
	}
	if name == "int" {
		return p.integral(lo, hi)
	}
	body, err := p.term()
	if err != nil {
		return nil, err
	}
	v := sym("")
	if lo != nil && lo.op == opRel && len(lo.kids) == 2 && lo.rels[0] == "=" {
		v, lo = lo.kids[0], lo.kids[1]
		if v.op == opI || v.op == opE { // the index i is no imaginary unit
			from := v.op
			name := map[op]string{opI: "i", opE: "e"}[from]
			v = sym(name)
			body = body.rewrite(func(n *node) *node {
				if n.op == from {
					return sym(name)
				}
				return n
			})
		}
	}
	return seal(&node{op: opBig, name: name, kids: []*node{orEmpty(lo), orEmpty(hi), v, body}}), nil
}

// bound reads a bound; an empty group is no bound.
func (p *parser) bound() (*node, error) {
	if p.peek().op("{") && p.peekAt(1).op("}") {
		p.pos += 2
		return leaf(opEmpty), nil
	}
	sign := p.accept(tOp, "-")
	n, err := p.argument()
	if err == nil && sign {
		n = neg(n)
	}
	return n, err
}

func orEmpty(n *node) *node {
	if n == nil {
		return leaf(opEmpty)
	}
	return n
}

func (p *parser) integral(lo, hi *node) (*node, error) {
	outer := p.dxLevel
	p.integrals++
	p.dxLevel = p.level
	defer func() { p.integrals--; p.dxLevel = outer }()
	name := "x"
	var body *node
	if d := p.peek(); d.is(tLetter, "d") && p.peekAt(1).kind == tLetter {
		body = integer(1)
	} else {
		n, err := p.sum()
		if err != nil {
			return nil, err
		}
		body = n
	}
	if p.peek().is(tLetter, "d") && p.peekAt(1).kind == tLetter {
		name = p.peekAt(1).text
		p.pos += 2
	} else if inner := body; inner.op == opMul && len(inner.kids) > 1 {
		// "\int {x dx}": the differential stands inside the group.
		if last := inner.kids[len(inner.kids)-1]; last.op == opSym && strings.HasPrefix(last.name, "d") && len(last.name) > 1 {
			name = last.name[1:]
			body = mul(inner.kids[:len(inner.kids)-1]...)
		}
	}
	// "\frac{3dz}{z}": the differential stands in the numerator.
	if body.op == opSet && len(body.kids) == 1 { // "\int \{x dx\}"
		body = body.kids[0]
	}
	body = body.rewrite(func(n *node) *node {
		if n.op == opSym && len(n.name) > 1 && n.name[0] == 'd' && !strings.ContainsAny(n.name, "_'(") && symbols[n.name] == "" {
			name = n.name[1:]
			return integer(1)
		}
		return n
	})
	return seal(&node{op: opBig, name: "int", kids: []*node{orEmpty(lo), orEmpty(hi), sym(name), body}}), nil
}

// limit reads a limit and where it goes. One that cannot be read is kept as
// text: it is then compared, but not estimated.
func (p *parser) limit() (*node, error) {
	var to []token
	text := ""
	if p.peek().op("_") {
		p.pos++
		start := p.pos
		t, _, err := p.subscript()
		if err != nil {
			return nil, err
		}
		text, to = t, p.toks[start:p.pos]
	}
	body, err := p.term()
	if err != nil {
		return nil, err
	}
	if n := target(to, body); n != nil {
		return n, nil
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "^(+)", "^+"), "^+", "")
	return seal(&node{op: opBig, name: "lim", kids: []*node{words(text), body}}), nil
}

// target reads "{x \to 3^{+}}".
func target(to []token, body *node) *node {
	if len(to) < 5 || !to[0].op("{") || to[1].kind != tLetter || !to[2].is(tRel, "to") {
		return nil
	}
	value, name := to[3:len(to)-1], "lim"
	for _, side := range []string{"+", "-"} {
		n := len(value)
		switch {
		case n > 2 && value[n-1].op(side) && value[n-2].op("^"):
			value, name = value[:n-2], "lim"+side
		case n > 4 && value[n-1].op("}") && value[n-2].op(side) && value[n-3].op("{") && value[n-4].op("^"):
			value, name = value[:n-4], "lim"+side
		case n > 1 && value[n-1].op(side):
			value, name = value[:n-1], "lim"+side
		}
	}
	n, _, err := parse(value, reading{})
	if err != nil || !n.isExpr() {
		return nil
	}
	return seal(&node{op: opBig, name: name, kids: []*node{sym(to[1].text), n, body}})
}
