package mathverify

import "strings"

// wordAfter takes a word behind a quantity: a unit, "percent", or a remark.
func (p *parser) wordAfter(factors []*node) []*node {
	if w := strings.ToLower(p.peek().text); strings.HasPrefix(w, "for all") || strings.HasPrefix(w, "for any") || strings.HasPrefix(w, "for every") {
		p.pos = len(p.toks) // it holds for all: nothing more is said
		return factors
	}
	if m := multiples[strings.ToLower(p.peek().text)]; m > 0 {
		p.pos++
		return append(factors, integer(m))
	}
	if e := powers[strings.ToLower(p.peek().text)]; e > 0 && p.toks[p.pos-1].kind != tWord {
		p.pos++
		return append(factors[:len(factors)-1:len(factors)-1], pow(factors[len(factors)-1], integer(e)))
	}
	switch units[strings.ToLower(p.peek().text)] {
	case "percent":
		p.pos++
		return []*node{tree(opPercent, mul(factors...))}
	case "degree":
		p.pos++
		return []*node{tree(opDeg, mul(factors...))}
	}
	p.takeUnit("")
	return factors
}

// takeUnit reads a word and its power into the unit of the current answer.
func (p *parser) takeUnit(before string) {
	name := strings.ToLower(strings.Trim(p.peek().text, " .,"))
	square := ""
	for {
		if rest, ok := strings.CutPrefix(name, "square "); ok {
			name, square = rest, "^2"
		} else if rest, ok := strings.CutPrefix(name, "cubic "); ok {
			name, square = rest, "^3"
		} else {
			break
		}
	}
	p.pos++
	power := square
	if p.peek().op("^") {
		save := p.pos
		p.pos++
		if n, err := p.argument(); err == nil && n.op == opNum {
			power = "^" + n.String()
		} else {
			p.pos = save
		}
	}
	u := units[name]
	if u == "" {
		return // a remark, such as "apples"
	}
	if inverted, ok := strings.CutPrefix(power, "^-"); ok && before != "/" && p.unit != "" { // m s^{-1} is m/s
		before, power = "/", strings.TrimPrefix("^"+inverted, "^1")
	}
	if p.unit != "" && before == "" {
		before = "*"
	}
	p.unit += before + u + power
}

// bracketedUnit takes "\frac{m}{s}", "(cm)" or "\cdot s" behind a quantity.
func (p *parser) bracketedUnit() bool {
	unitAt := func(n int) bool {
		t := p.peekAt(n)
		return t.kind == tWord && units[strings.ToLower(strings.TrimSpace(t.text))] != ""
	}
	start, unit := p.pos, p.unit
	switch {
	case p.peek().op("*") && unitAt(1):
		p.pos++
		p.takeUnit("")
		return true
	case p.peek().op("(") && unitAt(1) && p.peekAt(2).op(")"):
		p.pos++
		p.takeUnit("")
		p.pos++
		return true
	case p.peek().cmd("frac") && p.peekAt(1).op("{") && unitAt(2):
		p.pos += 2
		p.takeUnit("")
		if p.accept(tOp, "}") && p.accept(tOp, "{") && unitAt(0) {
			p.takeUnit("/")
			if p.accept(tOp, "}") {
				return true
			}
		}
	}
	p.pos, p.unit = start, unit
	return false
}

// nextAnswer says whether an answer of its own begins here without a comma: a
// number behind a word, as in "5 ft 3 in" or "3 by 4", or "y = 2" behind \quad.
func (p *parser) nextAnswer() bool {
	t := p.peek()
	switch t.kind {
	case tNum:
		return p.pos > 0 && p.toks[p.pos-1].kind == tWord
	case tLetter:
		return t.wide && p.pos > 0 && (p.peekAt(1).is(tRel, "=") || p.peekAt(1).op("_") && p.peekAt(3).is(tRel, "="))
	}
	return false
}

func clipText(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// unitText emits the content of \text if it is a unit behind a quantity: "min",
// which is a function elsewhere, and "m/s", which is a quotient elsewhere.
func (l *lexer) unitText(content string) bool {
	if len(l.out) == 0 || len(content) > 40 {
		return false
	}
	if last := l.out[len(l.out)-1]; last.kind != tNum && last.kind != tLetter && !last.op("}") && !last.op(")") && !last.cmd("pi") {
		return false
	}
	over, under, quotient := strings.Cut(strings.Trim(content, " ~"), "/")
	if !quotient {
		if over != "min" || strings.HasPrefix(strings.TrimLeft(l.src[min(len(l.src), l.pos+len(content)):], "min}{ "), "(") {
			return false
		}
		l.emit(tWord, over)
		return true
	}
	under, power, raised := strings.Cut(under, "^")
	power = strings.Trim(power, "{}")
	if units[strings.ToLower(over)] == "" || units[strings.ToLower(under)] == "" || raised && power != "2" && power != "3" {
		return false
	}
	l.emit(tWord, over)
	l.emit(tOp, "/")
	l.emit(tWord, under)
	if raised {
		l.emit(tOp, "^")
		l.emit(tNum, power)
	}
	return true
}

// bracketAt says whether a round bracket opens at this offset.
func (l *lexer) bracketAt(at int) bool {
	return strings.HasPrefix(l.src[at:], "(") || strings.HasPrefix(l.src[at:], `\left(`)
}

// argumentAt says whether a quantity begins there.
func (l *lexer) argumentAt(at int) bool {
	rest := strings.TrimLeft(l.src[at:], " {")
	for _, name := range []string{`\frac`, `\sqrt`, `\begin`, `\left`} {
		if strings.HasPrefix(rest, name) {
			return true
		}
	}
	return rest != "" && (rest[0] == '(' || isDigit(rest[0]) || isLetter(rest[0]))
}

// powers are words that raise the number before them, but not a unit.
var powers = map[string]int64{"squared": 2, "cubed": 3}

// multiples are words that multiply the number before them.
var multiples = map[string]int64{"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "trillion": 1_000_000_000_000}
