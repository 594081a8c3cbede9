package mathverify

import "strings"

// wordAfter takes a word behind a quantity: a unit, "percent", or a remark.
func (p *parser) wordAfter(factors []*node) []*node {
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
	if p.unit != "" && before == "" {
		before = "*"
	}
	p.unit += before + u + power
}

func clipText(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
