package reading

import (
	"math/big"
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

// number reads a literal with its thousands separators, repeating part and,
// for a mixed number, its fraction.
func (p *parser) number() (*expr.Node, error) {
	text := p.peek().Text
	p.pos++
	plain := !strings.ContainsAny(text, ".e")
	if plain {
		text = p.thousands(text)
	}
	var n *expr.Node
	if plain && len(text) <= 3 {
		n = numberNode(text) // made once for all
	} else if n = p.literals[text]; n == nil {
		n = numberNode(text)
		if len(text) < 8 && len(p.literals) < 64 && len(p.toks) > 64 {
			if p.literals == nil {
				p.literals = map[string]*expr.Node{}
			}
			p.literals[text] = n
		}
	}
	if p.peek().cmd("accent:overline") && strings.Contains(text+".", ".") && p.peekAt(1).Op("{") && p.peekAt(2).Kind == TNum && p.peekAt(3).Op("}") {
		return p.repeating(text), nil
	}
	if r := p.recurring(text); r != nil {
		return r, nil
	}
	if !plain || n.Long != "" {
		return n, nil
	}
	if p.peek().Op(".") && p.peekAt(1).cmd("accent:overline") && p.peekAt(2).Op("{") && p.peekAt(3).Kind == TNum {
		p.pos++
		return p.repeating(text + "."), nil
	}
	whole := func(t Token) bool { return t.Kind == TNum && !strings.ContainsAny(t.Text, ".e") }
	if p.peek().cmd("frac") {
		// 3\frac12 is three and a half; 3\frac{x}{2} is a product.
		save, tok := p.pos, p.peekAt(1).Text
		f, err := p.command()
		if err == nil && f.Op == expr.OpMul && len(f.Kids) == 2 && f.Kids[0].Op == expr.OpNum && f.Kids[0].Num.IsInt() && f.Kids[0].Num.Sign() >= 0 &&
			f.Kids[1].Op == expr.OpPow && f.Kids[1].Kids[0].Op == expr.OpNum && f.Kids[1].Kids[0].Num.IsInt() && f.Kids[1].Kids[0].Num.Sign() > 0 {
			return expr.Add(n, f), nil
		}
		p.pos = save
		if p.peekAt(1).Kind == TNum && p.peekAt(1).Text != tok {
			p.own()
			p.toks[p.pos+1].Text = tok
		}
		return n, nil
	}
	if t := p.peek(); whole(t) && t.Spaced && p.peekAt(1).Op("/") && whole(p.peekAt(2)) {
		p.pos += 3
		return expr.Add(n, expr.Div(numberNode(t.Text), numberNode(p.toks[p.pos-1].Text))), nil
	}
	return n, nil
}

// thousands joins groups of three digits: "1,234", "1{,}234", "1 234".
func (p *parser) thousands(text string) string {
	if len(text) > 3 && !p.DecimalComma {
		return text
	}
	three := func(t Token) bool {
		return t.Kind == TNum && !strings.Contains(t.Text, "e") && (len(t.Text) == 3 || len(t.Text) > 3 && t.Text[3] == '.')
	}
	joined := text
	if p.DecimalComma && p.peek().Op(",") && p.peekAt(1).Kind == TNum && !p.peekAt(1).Spaced && !strings.ContainsAny(p.peekAt(1).Text, ".e") {
		p.pos += 2
		return text + "." + p.toks[p.pos-1].Text
	}
	for {
		switch {
		case p.peek().Op("{") && p.peekAt(1).Op(",") && p.peekAt(2).Op("}") && three(p.peekAt(3)):
			joined += p.peekAt(3).Text
			p.pos += 4
		case p.peek().Op(",") && three(p.peekAt(1)) && !p.peekAt(1).Spaced && !p.peek().Spaced && text != "0":
			p.ambiguous = true
			if p.Split || p.brackets > 0 {
				return joined
			}
			joined += p.peekAt(1).Text
			p.pos += 2
		case three(p.peek()) && p.peek().Spaced && !p.peekAt(1).Op("/") && text != "0":
			joined += p.peek().Text
			p.pos++
		default:
			return joined
		}
		if strings.Contains(joined, ".") {
			return joined
		}
	}
}

// recurring reads 0.333…, if digits repeat before the dots, and 0.1\dot{6}; nil
// if neither stands here. Dots behind other decimals say only that there are
// more digits, and are dropped.
func (p *parser) recurring(text string) *expr.Node {
	point := strings.IndexByte(text, '.')
	if p.peek().cmd("dots") && point >= 0 && !p.peekAt(1).Op(",") && !strings.Contains(text, "e") && len(text) < 400 {
		p.pos++
		digits := text[point+1:]
		for size := 1; size*2 <= len(digits); size++ {
			block := digits[len(digits)-size:]
			if strings.HasSuffix(digits[:len(digits)-size], block) && (size > 1 || strings.HasSuffix(digits, block+block+block) || len(digits) == 2) {
				return periodic(text[:len(text)-2*size], block)
			}
		}
		return numberNode(text)
	}
	dotted := func(i int) bool {
		return p.peekAt(i).cmd("accent:dot") && p.peekAt(i+1).Op("{") && p.peekAt(i+2).Kind == TNum && p.peekAt(i+3).Op("}")
	}
	from := 0
	if point < 0 {
		if !p.peek().Op(".") {
			return nil
		}
		text += "."
		from = 1
	}
	if !dotted(from) {
		return nil
	}
	block := p.peekAt(from + 2).Text
	p.pos += from + 4
	for i := 0; i < 2; i++ { // 0.\dot{1}4285\dot{7}
		switch {
		case dotted(0):
			block += p.peekAt(2).Text
			p.pos += 4
			return periodic(text, block)
		case i == 0 && p.peek().Kind == TNum && dotted(1):
			block += p.peek().Text
			p.pos++
		}
	}
	return periodic(text, block)
}

// repeating reads 0.1\overline{6}.
func (p *parser) repeating(text string) *expr.Node {
	digits := p.peekAt(2).Text
	p.pos += 4
	if !strings.Contains(text, ".") {
		return expr.Mul(numberNode(text), numberNode(digits))
	}
	return periodic(text, digits)
}

// periodic is the decimal text with the block digits behind it for ever.
func periodic(text, digits string) *expr.Node {
	frac := len(text) - strings.Index(text, ".") - 1
	base, ok := new(big.Rat).SetString(strings.TrimSuffix(text, "."))
	rep, ok2 := new(big.Int).SetString(digits, 10)
	if !ok || !ok2 || len(digits) > 200 || frac > 200 {
		return expr.Sym(text + "(" + digits + ")")
	}
	nines := new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(digits))), nil), big.NewInt(1))
	den := new(big.Int).Mul(nines, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(frac)), nil))
	return expr.Rational(base.Add(base, new(big.Rat).SetFrac(rep, den)))
}

// numberNode makes a literal's node. Numbers of more than maxDigits digits, and
// powers of ten beyond 10^4000, stay text.
func numberNode(text string) *expr.Node {
	mantissa, exp, sci := strings.Cut(text, "e")
	if len(mantissa) > maxDigits || sci && len(strings.TrimLeft(exp, "-0")) > 4 {
		digits := strings.TrimLeft(text, "0")
		if strings.Contains(digits, ".") && !sci {
			digits = strings.TrimRight(digits, "0")
		}
		return expr.Seal(&expr.Node{Op: expr.OpNum, Num: new(big.Rat), Long: "0" + digits, Dec: strings.Contains(mantissa, ".")})
	}
	if len(text) < 18 && !strings.Contains(text, ".") && !sci {
		var v int64
		for i := range len(text) {
			v = v*10 + int64(text[i]-'0')
		}
		return expr.Integer(v)
	}
	if !strings.Contains(text, ".") && !sci {
		i, ok := new(big.Int).SetString(text, 10)
		if !ok {
			i = new(big.Int)
		}
		return expr.Seal(&expr.Node{Op: expr.OpNum, Num: new(big.Rat).SetInt(i)})
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return expr.Seal(&expr.Node{Op: expr.OpNum, Num: new(big.Rat), Long: text})
	}
	return expr.Seal(&expr.Node{Op: expr.OpNum, Num: r, Dec: strings.Contains(mantissa, ".")})
}
