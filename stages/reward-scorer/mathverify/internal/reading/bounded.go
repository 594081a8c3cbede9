package reading

import (
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// series reads sums, products and integrals with their bounds.
func (p *parser) series(name string) (*expr.Node, error) {
	var lo, hi *expr.Node
	for {
		if p.peek().Op("_") && lo == nil {
			p.pos++
			n, err := p.bound()
			if err != nil {
				return nil, err
			}
			lo = n
			continue
		}
		if p.peek().Op("^") && hi == nil {
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
	v := expr.Sym("")
	if lo != nil && lo.Op == expr.OpRel && len(lo.Kids) == 2 && lo.Rels[0] == "=" {
		v, lo = lo.Kids[0], lo.Kids[1]
		if v.Op == expr.OpI || v.Op == expr.OpE { // the index i is no imaginary unit
			from := v.Op
			name := map[expr.Op]string{expr.OpI: "i", expr.OpE: "e"}[from]
			v = expr.Sym(name)
			body = body.Rewrite(func(n *expr.Node) *expr.Node {
				if n.Op == from {
					return expr.Sym(name)
				}
				return n
			})
		}
	}
	return expr.Seal(&expr.Node{Op: expr.OpBig, Name: name, Kids: []*expr.Node{orEmpty(lo), orEmpty(hi), v, body}}), nil
}

// bound reads a bound; an empty group is no bound.
func (p *parser) bound() (*expr.Node, error) {
	if p.peek().Op("{") && p.peekAt(1).Op("}") {
		p.pos += 2
		return expr.Leaf(expr.OpEmpty), nil
	}
	sign := p.accept(TOp, "-")
	n, err := p.argument()
	if err == nil && sign {
		n = expr.Neg(n)
	}
	return n, err
}

func orEmpty(n *expr.Node) *expr.Node {
	if n == nil {
		return expr.Leaf(expr.OpEmpty)
	}
	return n
}

func (p *parser) integral(lo, hi *expr.Node) (*expr.Node, error) {
	outer := p.dxLevel
	p.integrals++
	p.dxLevel = p.level
	defer func() { p.integrals--; p.dxLevel = outer }()
	name := "x"
	var body *expr.Node
	if d := p.peek(); d.Is(TLetter, "d") && p.peekAt(1).Kind == TLetter {
		body = expr.Integer(1)
	} else {
		n, err := p.sum()
		if err != nil {
			return nil, err
		}
		body = n
	}
	if p.peek().Is(TLetter, "d") && p.peekAt(1).Kind == TLetter {
		name = p.peekAt(1).Text
		p.pos += 2
	} else if inner := body; inner.Op == expr.OpMul && len(inner.Kids) > 1 {
		// "\int {x dx}": the differential stands inside the group.
		if last := inner.Kids[len(inner.Kids)-1]; last.Op == expr.OpSym && strings.HasPrefix(last.Name, "d") && len(last.Name) > 1 {
			name = last.Name[1:]
			body = expr.Mul(inner.Kids[:len(inner.Kids)-1]...)
		}
	}
	// "\frac{3dz}{z}": the differential stands in the numerator.
	if body.Op == expr.OpSet && len(body.Kids) == 1 { // "\int \{x dx\}"
		body = body.Kids[0]
	}
	body = body.Rewrite(func(n *expr.Node) *expr.Node {
		if n.Op == expr.OpSym && len(n.Name) > 1 && n.Name[0] == 'd' && !strings.ContainsAny(n.Name, "_'(") && symbols[n.Name] == "" {
			name = n.Name[1:]
			return expr.Integer(1)
		}
		return n
	})
	return expr.Seal(&expr.Node{Op: expr.OpBig, Name: "int", Kids: []*expr.Node{orEmpty(lo), orEmpty(hi), expr.Sym(name), body}}), nil
}

// limit reads a limit and where it goes. One that cannot be read is kept as
// text: it is then compared, but not estimated.
func (p *parser) limit() (*expr.Node, error) {
	var to []Token
	text := ""
	if p.peek().Op("_") {
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
	return expr.Seal(&expr.Node{Op: expr.OpBig, Name: "lim", Kids: []*expr.Node{expr.Words(text), body}}), nil
}

// target reads "{x \to 3^{+}}".
func target(to []Token, body *expr.Node) *expr.Node {
	if len(to) < 5 || !to[0].Op("{") || to[1].Kind != TLetter || !to[2].Is(TRel, "to") {
		return nil
	}
	value, name := to[3:len(to)-1], "lim"
	for _, side := range []string{"+", "-"} {
		n := len(value)
		switch {
		case n > 2 && value[n-1].Op(side) && value[n-2].Op("^"):
			value, name = value[:n-2], "lim"+side
		case n > 4 && value[n-1].Op("}") && value[n-2].Op(side) && value[n-3].Op("{") && value[n-4].Op("^"):
			value, name = value[:n-4], "lim"+side
		case n > 1 && value[n-1].Op(side):
			value, name = value[:n-1], "lim"+side
		}
	}
	n, _, err := Parse(value, Reading{})
	if err != nil || !n.IsExpr() {
		return nil
	}
	return expr.Seal(&expr.Node{Op: expr.OpBig, Name: name, Kids: []*expr.Node{expr.Sym(to[1].Text), n, body}})
}
