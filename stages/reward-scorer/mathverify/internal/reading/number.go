package reading

import (
	"math/big"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

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
