package reading

import (
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// power reads a primary and what is attached behind it.
func (p *parser) power() (*expr.Node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	n, err := p.primary()
	if err != nil {
		return nil, err
	}
	return p.postfix(n)
}

func (p *parser) postfix(n *expr.Node) (*expr.Node, error) {
	for {
		t := p.peek()
		switch {
		case t.Op("!"):
			if p.pos++; n.Depth > maxDepth {
				return nil, ErrLimit
			}
			n = expr.Call("fact", n)
		case t.Op("%"):
			p.pos++
			n = expr.Tree(expr.OpPercent, n)
		case t.Op("°"):
			p.pos++
			n = p.degrees(n)
		case t.Op("'"):
			primes := p.pos
			for p.peek().Op("'") {
				p.pos++
			}
			if n.Op != expr.OpSym {
				return nil, p.fail("a prime")
			}
			n = expr.Sym(n.Name + strings.Repeat("'", p.pos-primes))
		case t.Op("^"):
			p.pos++
			if p.superscript("°") {
				n = p.degrees(n)
				continue
			}
			if n.Op == expr.OpSym && p.superscript("*") {
				n = expr.Sym(n.Name + "^*")
				continue
			}
			if p.peek().Op("'") {
				continue
			}
			e, err := p.exponent()
			if err != nil {
				return nil, err
			}
			n = expr.Pow(n, e)
		case t.Op("_"):
			p.pos++
			text, value, err := p.subscript()
			if err != nil {
				return nil, err
			}
			if len(n.Name) > maxName {
				return nil, ErrLimit
			}
			switch {
			case n.Op == expr.OpSym:
				n = expr.Sym(n.Name + "_" + text)
			case n.Op == expr.OpPow && n.Kids[0].Op == expr.OpSym:
				n = expr.Pow(expr.Sym(n.Kids[0].Name+"_"+text), n.Kids[1])
			case n.Op == expr.OpE || n.Op == expr.OpI:
				n = expr.Sym(map[expr.Op]string{expr.OpE: "e", expr.OpI: "i"}[n.Op] + "_" + text)
			case n.Op == expr.OpNum && n.Long == "" && n.Num.IsInt() && n.Num.Sign() >= 0 && (value != nil && value.Op == expr.OpNum || smallNumerals[text] > 1):
				if value == nil {
					value = expr.Integer(smallNumerals[text])
				}
				n = expr.Seal(&expr.Node{Op: expr.OpBased, Name: n.Num.Num().String(), Kids: []*expr.Node{value}})
			default:
				n = expr.Call("sub", n, expr.Sym(text))
			}
		default:
			return n, nil
		}
	}
}

// degrees reads the minutes and seconds of arc behind degrees: 22°30'.
func (p *parser) degrees(n *expr.Node) *expr.Node {
	for i := int64(1); i <= 2; i++ {
		minutes, marks := p.peek(), 0
		for p.peekAt(1 + marks).Op("'") {
			marks++
		}
		if minutes.Kind != TNum || strings.Contains(minutes.Text, "e") || marks != int(i) {
			break
		}
		p.pos += 1 + marks
		n = expr.Add(n, expr.Div(numberNode(minutes.Text), expr.Integer([]int64{60, 3600}[i-1])))
	}
	return expr.Tree(expr.OpDeg, n)
}

// superscript takes a sign such as "\circ", or "{\circ}", behind a caret.
func (p *parser) superscript(sign string) bool {
	if p.accept(TOp, sign) {
		return true
	}
	if p.peek().Op("{") && p.peekAt(1).Op(sign) && p.peekAt(2).Op("}") {
		p.pos += 3
		return true
	}
	return false
}

func (p *parser) exponent() (*expr.Node, error) {
	if p.peek().Op("{") {
		return p.argument()
	}
	sign := 1
	for p.peek().Op("-") || p.peek().Op("+") {
		if p.peek().Op("-") {
			sign = -sign
		}
		p.pos++
	}
	var n *expr.Node
	var err error
	switch t := p.peek(); {
	case t.Kind == TNum:
		n, err = p.number()
	case t.Kind == TLetter && p.peekAt(1).Op("_"), t.Kind == tFunc, t.Op("("):
		n, err = p.primary()
	default:
		n, err = p.argument()
	}
	if err != nil {
		return nil, err
	}
	if p.peek().Op("^") { // towers bind to the right
		p.pos++
		e, err := p.exponent()
		if err != nil {
			return nil, err
		}
		n = expr.Pow(n, e)
	}
	if sign < 0 {
		n = expr.Neg(n)
	}
	return n, nil
}

// argument reads what LaTeX takes as one argument: a group, or one character.
func (p *parser) argument() (*expr.Node, error) {
	t := p.peek()
	switch {
	case t.Op("{"):
		return p.group("}")
	case t.Kind == TNum && expr.IsDigit(t.Text[0]) && len(t.Text) > 1 && !strings.ContainsAny(t.Text, ".e"):
		p.own()
		p.toks[p.pos].Text = t.Text[1:]
		p.toks[p.pos].Spaced = false
		return numberNode(t.Text[:1]), nil
	case t.Kind == tEnd:
		return nil, p.fail("an argument is missing")
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	return p.primary()
}

// subscript reads a subscript as text and, if it is a quantity, as a node.
func (p *parser) subscript() (string, *expr.Node, error) {
	start := p.pos
	if !p.peek().Op("{") {
		t := p.peek()
		if t.Kind == tEnd {
			return "", nil, p.fail("a subscript is missing")
		}
		if t.Kind == tCmd || t.Op("(") {
			return "", nil, p.fail("a subscript")
		}
		p.pos++
		var n *expr.Node
		if t.Kind == TNum {
			n = numberNode(t.Text)
		}
		return t.Text, n, nil
	}
	depth := 0
	var b strings.Builder
	for p.pos < len(p.toks) {
		t := p.toks[p.pos]
		p.pos++
		if t.Op("{") {
			if depth++; depth > 1 {
				b.WriteString("(")
			}
			continue
		}
		if t.Op("}") {
			if depth--; depth == 0 {
				break
			}
			b.WriteString(")")
			continue
		}
		b.WriteString(t.Text)
	}
	var n *expr.Node
	inner := p.toks[start+1 : p.pos]
	if len(inner) == 4 && inner[0].Op("(") && inner[2].Op(")") { // 1101_{(2)}
		inner = inner[1:3]
	}
	if len(inner) == 2 && inner[0].Kind == TNum {
		n = numberNode(inner[0].Text)
	}
	return b.String(), n, nil
}

// group reads a bracketed expression whose opener is the current token.
func (p *parser) group(shut string) (*expr.Node, error) {
	p.pos++
	bars, brackets := p.bars, p.brackets
	p.bars = 0
	if shut != "}" {
		p.brackets++
	}
	p.level++
	n, err := p.sequence(func(t Token) bool { return t.Op(shut) })
	p.level--
	p.bars, p.brackets = bars, brackets
	if err != nil {
		return nil, err
	}
	p.accept(TOp, shut)
	return n, nil
}

func (p *parser) primary() (*expr.Node, error) {
	t := p.peek()
	switch t.Kind {
	case TNum:
		return p.number()
	case TLetter:
		return p.letter()
	case tFunc:
		return p.function()
	case tCmd:
		return p.command()
	case TWord:
		if u := units[strings.ToLower(t.Text)]; currency[u] && startsQuantity(p.peekAt(1)) { // -$5
			p.unit = u
			p.pos++
			return p.primary()
		}
	case TOp:
		switch t.Text {
		case "(", "[":
			return p.bracket()
		case "{":
			return p.braces()
		case `\{`:
			return p.set()
		case "|":
			return p.bar()
		case "-", "+":
			return p.signedPower()
		case "^", "_":
			return p.choose()
		}
	}
	return nil, p.fail("a quantity is missing")
}

// choose reads ^{10}C_3 and _{10}P_3.
func (p *parser) choose() (*expr.Node, error) {
	p.pos++
	n, err := p.argument()
	if err != nil {
		return nil, err
	}
	t := p.peek()
	if t.Kind != TLetter || t.Text != "C" && t.Text != "P" || !p.peekAt(1).Op("_") && !p.peekAt(1).Op("^") {
		return nil, p.fail("a quantity is missing")
	}
	p.pos += 2
	k, err := p.argument()
	if err != nil {
		return nil, err
	}
	b := expr.Call("binom", n, k)
	if t.Text == "P" {
		b = expr.Mul(b, expr.Call("fact", k))
	}
	return b, nil
}
