package mathverify

import (
	"math/big"
	"strings"
)

// power reads a primary and what is attached behind it.
func (p *parser) power() (*node, error) {
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

func (p *parser) postfix(n *node) (*node, error) {
	for {
		t := p.peek()
		switch {
		case t.op("!"):
			if p.pos++; n.depth > maxDepth {
				return nil, errLimit
			}
			n = call("fact", n)
		case t.op("%"):
			p.pos++
			n = tree(opPercent, n)
		case t.op("°"):
			p.pos++
			n = p.degrees(n)
		case t.op("'"):
			primes := p.pos
			for p.peek().op("'") {
				p.pos++
			}
			if n.op != opSym {
				return nil, p.fail("a prime")
			}
			n = sym(n.name + strings.Repeat("'", p.pos-primes))
		case t.op("^"):
			p.pos++
			if p.superscript("°") {
				n = p.degrees(n)
				continue
			}
			if n.op == opSym && p.superscript("*") {
				n = sym(n.name + "^*")
				continue
			}
			if p.peek().op("'") {
				continue
			}
			e, err := p.exponent()
			if err != nil {
				return nil, err
			}
			n = pow(n, e)
		case t.op("_"):
			p.pos++
			text, value, err := p.subscript()
			if err != nil {
				return nil, err
			}
			if len(n.name) > maxName {
				return nil, errLimit
			}
			switch {
			case n.op == opSym:
				n = sym(n.name + "_" + text)
			case n.op == opPow && n.kids[0].op == opSym:
				n = pow(sym(n.kids[0].name+"_"+text), n.kids[1])
			case n.op == opE || n.op == opI:
				n = sym(map[op]string{opE: "e", opI: "i"}[n.op] + "_" + text)
			case n.op == opNum && n.long == "" && n.num.IsInt() && n.num.Sign() >= 0 && (value != nil && value.op == opNum || smallNumerals[text] > 1):
				if value == nil {
					value = integer(smallNumerals[text])
				}
				n = seal(&node{op: opBased, name: n.num.Num().String(), kids: []*node{value}})
			default:
				n = call("sub", n, sym(text))
			}
		default:
			return n, nil
		}
	}
}

// degrees reads the minutes and seconds of arc behind degrees: 22°30'.
func (p *parser) degrees(n *node) *node {
	for i := int64(1); i <= 2; i++ {
		minutes, marks := p.peek(), 0
		for p.peekAt(1 + marks).op("'") {
			marks++
		}
		if minutes.kind != tNum || strings.Contains(minutes.text, "e") || marks != int(i) {
			break
		}
		p.pos += 1 + marks
		n = add(n, div(numberNode(minutes.text), integer([]int64{60, 3600}[i-1])))
	}
	return tree(opDeg, n)
}

// superscript takes a sign such as "\circ", or "{\circ}", behind a caret.
func (p *parser) superscript(sign string) bool {
	if p.accept(tOp, sign) {
		return true
	}
	if p.peek().op("{") && p.peekAt(1).op(sign) && p.peekAt(2).op("}") {
		p.pos += 3
		return true
	}
	return false
}

func (p *parser) exponent() (*node, error) {
	if p.peek().op("{") {
		return p.argument()
	}
	sign := 1
	for p.peek().op("-") || p.peek().op("+") {
		if p.peek().op("-") {
			sign = -sign
		}
		p.pos++
	}
	var n *node
	var err error
	switch t := p.peek(); {
	case t.kind == tNum:
		n, err = p.number()
	case t.kind == tLetter && p.peekAt(1).op("_"), t.kind == tFunc, t.op("("):
		n, err = p.primary()
	default:
		n, err = p.argument()
	}
	if err != nil {
		return nil, err
	}
	if p.peek().op("^") { // towers bind to the right
		p.pos++
		e, err := p.exponent()
		if err != nil {
			return nil, err
		}
		n = pow(n, e)
	}
	if sign < 0 {
		n = neg(n)
	}
	return n, nil
}

// argument reads what LaTeX takes as one argument: a group, or one character.
func (p *parser) argument() (*node, error) {
	t := p.peek()
	switch {
	case t.op("{"):
		return p.group("}")
	case t.kind == tNum && isDigit(t.text[0]) && len(t.text) > 1 && !strings.ContainsAny(t.text, ".e"):
		p.own()
		p.toks[p.pos].text = t.text[1:]
		p.toks[p.pos].spaced = false
		return numberNode(t.text[:1]), nil
	case t.kind == tEnd:
		return nil, p.fail("an argument is missing")
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	return p.primary()
}

// subscript reads a subscript as text and, if it is a quantity, as a node.
func (p *parser) subscript() (string, *node, error) {
	start := p.pos
	if !p.peek().op("{") {
		t := p.peek()
		if t.kind == tEnd {
			return "", nil, p.fail("a subscript is missing")
		}
		if t.kind == tCmd || t.op("(") {
			return "", nil, p.fail("a subscript")
		}
		p.pos++
		var n *node
		if t.kind == tNum {
			n = numberNode(t.text)
		}
		return t.text, n, nil
	}
	depth := 0
	var b strings.Builder
	for p.pos < len(p.toks) {
		t := p.toks[p.pos]
		p.pos++
		if t.op("{") {
			if depth++; depth > 1 {
				b.WriteString("(")
			}
			continue
		}
		if t.op("}") {
			if depth--; depth == 0 {
				break
			}
			b.WriteString(")")
			continue
		}
		b.WriteString(t.text)
	}
	var n *node
	inner := p.toks[start+1 : p.pos]
	if len(inner) == 4 && inner[0].op("(") && inner[2].op(")") { // 1101_{(2)}
		inner = inner[1:3]
	}
	if len(inner) == 2 && inner[0].kind == tNum {
		n = numberNode(inner[0].text)
	}
	return b.String(), n, nil
}

// group reads a bracketed expression whose opener is the current token.
func (p *parser) group(shut string) (*node, error) {
	p.pos++
	bars, brackets := p.bars, p.brackets
	p.bars = 0
	if shut != "}" {
		p.brackets++
	}
	p.level++
	n, err := p.sequence(func(t token) bool { return t.op(shut) })
	p.level--
	p.bars, p.brackets = bars, brackets
	if err != nil {
		return nil, err
	}
	p.accept(tOp, shut)
	return n, nil
}

func (p *parser) primary() (*node, error) {
	t := p.peek()
	switch t.kind {
	case tNum:
		return p.number()
	case tLetter:
		return p.letter()
	case tFunc:
		return p.function()
	case tCmd:
		return p.command()
	case tWord:
		if u := units[strings.ToLower(t.text)]; currency[u] && startsQuantity(p.peekAt(1)) { // -$5
			p.unit = u
			p.pos++
			return p.primary()
		}
	case tOp:
		switch t.text {
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
func (p *parser) choose() (*node, error) {
	p.pos++
	n, err := p.argument()
	if err != nil {
		return nil, err
	}
	t := p.peek()
	if t.kind != tLetter || t.text != "C" && t.text != "P" || !p.peekAt(1).op("_") && !p.peekAt(1).op("^") {
		return nil, p.fail("a quantity is missing")
	}
	p.pos += 2
	k, err := p.argument()
	if err != nil {
		return nil, err
	}
	b := call("binom", n, k)
	if t.text == "P" {
		b = mul(b, call("fact", k))
	}
	return b, nil
}

// number reads a literal with its thousands separators, repeating part and,
// for a mixed number, its fraction.
func (p *parser) number() (*node, error) {
	text := p.peek().text
	p.pos++
	plain := !strings.ContainsAny(text, ".e")
	if plain {
		text = p.thousands(text)
	}
	var n *node
	if plain && len(text) <= 3 {
		n = numberNode(text) // made once for all
	} else if n = p.literals[text]; n == nil {
		n = numberNode(text)
		if len(text) < 8 && len(p.literals) < 64 && len(p.toks) > 64 {
			if p.literals == nil {
				p.literals = map[string]*node{}
			}
			p.literals[text] = n
		}
	}
	if p.peek().cmd("accent:overline") && strings.Contains(text+".", ".") && p.peekAt(1).op("{") && p.peekAt(2).kind == tNum && p.peekAt(3).op("}") {
		return p.repeating(text), nil
	}
	if r := p.recurring(text); r != nil {
		return r, nil
	}
	if !plain || n.long != "" {
		return n, nil
	}
	if p.peek().op(".") && p.peekAt(1).cmd("accent:overline") && p.peekAt(2).op("{") && p.peekAt(3).kind == tNum {
		p.pos++
		return p.repeating(text + "."), nil
	}
	whole := func(t token) bool { return t.kind == tNum && !strings.ContainsAny(t.text, ".e") }
	if p.peek().cmd("frac") {
		// 3\frac12 is three and a half; 3\frac{x}{2} is a product.
		save, tok := p.pos, p.peekAt(1).text
		f, err := p.command()
		if err == nil && f.op == opMul && len(f.kids) == 2 && f.kids[0].op == opNum && f.kids[0].num.IsInt() && f.kids[0].num.Sign() >= 0 &&
			f.kids[1].op == opPow && f.kids[1].kids[0].op == opNum && f.kids[1].kids[0].num.IsInt() && f.kids[1].kids[0].num.Sign() > 0 {
			return add(n, f), nil
		}
		p.pos = save
		if p.peekAt(1).kind == tNum && p.peekAt(1).text != tok {
			p.own()
			p.toks[p.pos+1].text = tok
		}
		return n, nil
	}
	if t := p.peek(); whole(t) && t.spaced && p.peekAt(1).op("/") && whole(p.peekAt(2)) {
		p.pos += 3
		return add(n, div(numberNode(t.text), numberNode(p.toks[p.pos-1].text))), nil
	}
	return n, nil
}

// thousands joins groups of three digits: "1,234", "1{,}234", "1 234".
func (p *parser) thousands(text string) string {
	if len(text) > 3 && !p.decimalComma {
		return text
	}
	three := func(t token) bool {
		return t.kind == tNum && !strings.Contains(t.text, "e") && (len(t.text) == 3 || len(t.text) > 3 && t.text[3] == '.')
	}
	joined := text
	if p.decimalComma && p.peek().op(",") && p.peekAt(1).kind == tNum && !p.peekAt(1).spaced && !strings.ContainsAny(p.peekAt(1).text, ".e") {
		p.pos += 2
		return text + "." + p.toks[p.pos-1].text
	}
	for {
		switch {
		case p.peek().op("{") && p.peekAt(1).op(",") && p.peekAt(2).op("}") && three(p.peekAt(3)):
			joined += p.peekAt(3).text
			p.pos += 4
		case p.peek().op(",") && three(p.peekAt(1)) && !p.peekAt(1).spaced && !p.peek().spaced && text != "0":
			p.ambiguous = true
			if p.split || p.brackets > 0 {
				return joined
			}
			joined += p.peekAt(1).text
			p.pos += 2
		case three(p.peek()) && p.peek().spaced && !p.peekAt(1).op("/") && text != "0":
			joined += p.peek().text
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
func (p *parser) recurring(text string) *node {
	point := strings.IndexByte(text, '.')
	if p.peek().cmd("dots") && point >= 0 && !p.peekAt(1).op(",") && !strings.Contains(text, "e") && len(text) < 400 {
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
		return p.peekAt(i).cmd("accent:dot") && p.peekAt(i+1).op("{") && p.peekAt(i+2).kind == tNum && p.peekAt(i+3).op("}")
	}
	from := 0
	if point < 0 {
		if !p.peek().op(".") {
			return nil
		}
		text += "."
		from = 1
	}
	if !dotted(from) {
		return nil
	}
	block := p.peekAt(from + 2).text
	p.pos += from + 4
	for i := 0; i < 2; i++ { // 0.\dot{1}4285\dot{7}
		switch {
		case dotted(0):
			block += p.peekAt(2).text
			p.pos += 4
			return periodic(text, block)
		case i == 0 && p.peek().kind == tNum && dotted(1):
			block += p.peek().text
			p.pos++
		}
	}
	return periodic(text, block)
}

// repeating reads 0.1\overline{6}.
func (p *parser) repeating(text string) *node {
	digits := p.peekAt(2).text
	p.pos += 4
	if !strings.Contains(text, ".") {
		return mul(numberNode(text), numberNode(digits))
	}
	return periodic(text, digits)
}

// periodic is the decimal text with the block digits behind it for ever.
func periodic(text, digits string) *node {
	frac := len(text) - strings.Index(text, ".") - 1
	base, ok := new(big.Rat).SetString(strings.TrimSuffix(text, "."))
	rep, ok2 := new(big.Int).SetString(digits, 10)
	if !ok || !ok2 || len(digits) > 200 || frac > 200 {
		return sym(text + "(" + digits + ")")
	}
	nines := new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(digits))), nil), big.NewInt(1))
	den := new(big.Int).Mul(nines, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(frac)), nil))
	return rational(base.Add(base, new(big.Rat).SetFrac(rep, den)))
}

// numberNode makes a literal's node. Numbers of more than maxDigits digits, and
// powers of ten beyond 10^4000, stay text.
func numberNode(text string) *node {
	mantissa, exp, sci := strings.Cut(text, "e")
	if len(mantissa) > maxDigits || sci && len(strings.TrimLeft(exp, "-0")) > 4 {
		digits := strings.TrimLeft(text, "0")
		if strings.Contains(digits, ".") && !sci {
			digits = strings.TrimRight(digits, "0")
		}
		return seal(&node{op: opNum, num: new(big.Rat), long: "0" + digits, dec: strings.Contains(mantissa, ".")})
	}
	if len(text) < 18 && !strings.Contains(text, ".") && !sci {
		var v int64
		for i := range len(text) {
			v = v*10 + int64(text[i]-'0')
		}
		return integer(v)
	}
	if !strings.Contains(text, ".") && !sci {
		i, ok := new(big.Int).SetString(text, 10)
		if !ok {
			i = new(big.Int)
		}
		return seal(&node{op: opNum, num: new(big.Rat).SetInt(i)})
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return seal(&node{op: opNum, num: new(big.Rat), long: text})
	}
	return seal(&node{op: opNum, num: r, dec: strings.Contains(mantissa, ".")})
}
