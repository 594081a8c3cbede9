package mathverify

import (
	"strings"
)

// command reads a LaTeX command with its own grammar.
func (p *parser) command() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	t := p.peek()
	p.pos++
	switch t.text {
	case "pi":
		if p.peek().op("_") {
			return sym("pi"), nil
		}
		return leaf(opPi), nil
	case "infty":
		return leaf(opInf), nil
	case "emptyset":
		return leaf(opEmpty), nil
	case "dots":
		return sym("..."), nil
	case "reals":
		return p.half("R"), nil
	case "frac":
		return p.fraction()
	case "sqrt":
		return p.root()
	case "binom":
		n, err := p.argument()
		if err != nil {
			return nil, err
		}
		k, err := p.argument()
		if err != nil {
			return nil, err
		}
		return call("binom", n, k), nil
	case "sum", "prod", "int":
		return p.series(t.text)
	case "lim":
		return p.limit()
	case "lfloor", "lceil":
		return p.rounded(t.text[1:])
	case "norm":
		p.bars++
		n, err := p.sequence(func(t token) bool { return t.cmd("norm") })
		p.bars--
		if err != nil {
			return nil, err
		}
		if p.peek().cmd("norm") {
			p.pos++
		}
		return call("norm", n), nil
	case "mathbb":
		name := p.peek().text
		if p.peek().op("{") {
			name = p.peekAt(1).text
			p.pos += 2
		}
		p.pos = min(p.pos+1, len(p.toks))
		return p.half(name), nil
	case "variable":
		start := p.pos
		text, _, err := p.subscript()
		if err != nil {
			return nil, err
		}
		if p.pos <= start {
			return nil, p.fail("a name is missing")
		}
		return sym(text), nil
	case "begin":
		return p.environment()
	}
	if kind, ok := strings.CutPrefix(t.text, "accent:"); ok {
		start := p.pos
		text, _, err := p.subscript()
		if err != nil {
			return nil, err
		}
		if short := sameAccent[kind]; short != "" {
			kind = short
		}
		if kind == "overline" {
			if n := conjugate(p.toks[start:p.pos]); n != nil {
				return n, nil
			}
		}
		return sym(kind + "(" + text + ")"), nil
	}
	p.pos--
	return nil, p.fail("this command cannot stand here")
}

// sameAccent are accents that look like another but for their width.
var sameAccent = map[string]string{"overrightarrow": "vec", "bar": "overline", "widehat": "hat", "widetilde": "tilde"}

// conjugate reads \overline{3+4i}; nil if no complex number is in the group.
func conjugate(group []token) *node {
	if len(group) < 3 || len(group) > 64 {
		return nil
	}
	n, _, err := parse(group[1:len(group)-1], reading{})
	if err != nil || !n.isExpr() || !hasOp(n, opI) || len(symbolsOf(n)) > 0 {
		return nil
	}
	return n.rewrite(func(k *node) *node {
		if k.op == opI {
			return neg(k)
		}
		return k
	})
}

// half reads a sign behind a standard set: \mathbb{R}^+ are the positive reals.
func (p *parser) half(name string) *node {
	sign := ""
	for _, plain := range []string{"+", "-"} {
		if (p.peek().op("^") || p.peek().op("_")) && p.peekAt(1).op(plain) {
			sign = plain
			p.pos += 2
		} else if (p.peek().op("^") || p.peek().op("_")) && p.peekAt(1).op("{") && p.peekAt(2).op(plain) && p.peekAt(3).op("}") {
			sign = plain
			p.pos += 4
		}
	}
	switch {
	case sign == "+" && name == "R":
		return seal(&node{op: opInterval, name: "()", kids: []*node{integer(0), leaf(opInf)}})
	case sign == "-" && name == "R":
		return seal(&node{op: opInterval, name: "()", kids: []*node{minusInf, integer(0)}})
	}
	return seal(&node{op: opReals, name: name + sign})
}

// fraction reads \frac, and \frac{d}{dx} as a derivative.
func (p *parser) fraction() (*node, error) {
	if d, letter := p.peekAt(1), func(i int) bool { return p.peekAt(i).kind == tLetter }; p.peek().op("{") && (d.is(tLetter, "d") || d.is(tLetter, "partial")) && letter(2) &&
		p.peekAt(3).op("}") && p.peekAt(4).op("{") && p.peekAt(5).is(tLetter, d.text) && letter(6) && p.peekAt(7).op("}") {
		n := sym(d.text + p.peekAt(2).text + "/" + d.text + p.peekAt(6).text) // dy/dx is no quotient of products
		p.pos += 8
		return n, nil
	}
	if name, times := p.derivative(); name != "" {
		body, err := p.term()
		if err != nil {
			return nil, err
		}
		for range times {
			body = seal(&node{op: opBig, name: "diff", kids: []*node{sym(name), body}})
		}
		return body, nil
	}
	a, err := p.argument()
	if err != nil {
		return nil, err
	}
	b, err := p.argument()
	if err != nil {
		return nil, err
	}
	if !a.isExpr() || !b.isExpr() {
		return tree(opRatio, a, b), nil
	}
	return div(a, b), nil
}

// derivative takes "{d}{dx}" or "{d^2}{dx^2}" and returns "x" and how often.
func (p *parser) derivative() (string, int) {
	save, times := p.pos, 1
	want := func(ok bool) bool {
		p.pos++
		return ok
	}
	d := func() bool {
		t := p.peek()
		return want(t.kind == tLetter && (t.text == "d" || t.text == "partial"))
	}
	order := func(first bool) bool {
		if !p.accept(tOp, "^") {
			return first || times == 1
		}
		t := p.peek()
		if t.op("{") && p.peekAt(2).op("}") {
			t = p.peekAt(1)
			p.pos += 2
		}
		n := len(t.text)
		ok := t.kind == tNum && n == 1 && t.text >= "1" && (first || int(t.text[0]-'0') == times)
		if ok {
			times = int(t.text[0] - '0')
		}
		return want(ok)
	}
	if want(p.peek().op("{")) && d() && order(true) && want(p.peek().op("}")) && want(p.peek().op("{")) && d() {
		if name := p.peek(); want(name.kind == tLetter) && order(false) && want(p.peek().op("}")) {
			return name.text, times
		}
	}
	p.pos = save
	return "", 0
}

func (p *parser) root() (*node, error) {
	n := integer(2)
	if p.peek().op("[") {
		p.pos++
		i, err := p.sequence(func(t token) bool { return t.op("]") })
		if err != nil {
			return nil, err
		}
		if !p.accept(tOp, "]") {
			return nil, p.fail("a root's index that does not close")
		}
		n = i
	}
	var x *node
	var err error
	switch t := p.peek(); {
	case t.kind == tNum:
		x, err = p.number() // "\sqrt12" is the root of 12, as people mean it
	case t.op("{"), t.op("("):
		x, err = p.primary()
	default:
		x, err = p.argument()
	}
	if err != nil {
		return nil, err
	}
	if x.op == opSet && len(x.kids) == 1 && x.kids[0].isExpr() { // braces for brackets
		x = x.kids[0]
	}
	if x.op == opSet || x.op == opTuple {
		return nil, p.fail("the root of several quantities")
	}
	return call("root", x, n), nil
}

func (p *parser) rounded(kind string) (*node, error) {
	bars := p.bars
	p.bars = 0
	n, err := p.sequence(func(t token) bool { return t.cmd("r" + kind) })
	p.bars = bars
	if err != nil {
		return nil, err
	}
	if !p.peek().cmd("r" + kind) {
		return nil, p.fail("a bracket of rounding that does not close")
	}
	p.pos++
	return call(kind, n), nil
}

// environment reads matrices and cases.
func (p *parser) environment() (*node, error) {
	name, _, err := p.subscript()
	if err != nil {
		return nil, err
	}
	if name == "array" || name == "tabular" {
		if p.peek().op("{") {
			if _, _, err := p.subscript(); err != nil {
				return nil, err
			}
		}
	}
	bars, brackets := p.bars, p.brackets
	p.bars, p.brackets = 0, p.brackets+1
	defer func() { p.bars, p.brackets = bars, brackets }()
	matrix := strings.Contains(name, "matrix") || name == "array"
	var cells []*node
	cols, row := 0, 0
	stop := func(t token) bool { return t.op("&") || t.op(`\\`) || t.cmd("end") }
	for {
		t := p.peek()
		switch {
		case t.kind == tEnd, t.cmd("end"):
			if t.cmd("end") {
				p.pos++
				if _, _, err := p.subscript(); err != nil {
					return nil, err
				}
			}
			if len(cells) == 0 {
				return nil, p.fail("an empty environment")
			}
			if cols == 0 && matrix {
				cols = row
			}
			if !matrix || cols == 1 && cells[0].op == opRel {
				return p.cases(cells, cols)
			}
			if len(cells)%cols != 0 {
				return nil, p.fail("rows of different lengths")
			}
			m := seal(&node{op: opMatrix, kids: cells, cols: cols})
			if name == "vmatrix" && cols*cols == len(cells) {
				return call("det", m), nil
			}
			return m, nil
		case t.op("&"):
			p.pos++
		case t.op(`\\`):
			p.pos++
			if row > 0 && cols == 0 {
				cols = row
			}
			row = 0
		default:
			if w := strings.ToLower(t.text); t.kind == tWord && row > 0 && (w == "if" || w == "when" || w == "for" || w == "where") {
				p.pos++
				continue
			}
			n, err := p.item(stop)
			if err != nil {
				return nil, err
			}
			for p.separator(p.peek()) != "" && !stop(p.peek()) { // "x, & \text{if}"
				p.pos++
			}
			cells, row = append(cells, n), row+1
			if next := p.peek(); next.kind != tEnd && !stop(next) {
				return nil, p.fail("unexpected")
			}
		}
	}
}

// cases makes the lines of a cases or aligned environment a list.
func (p *parser) cases(cells []*node, cols int) (*node, error) {
	if len(cells) == 1 {
		return cells[0], nil
	}
	if cols > 1 && len(cells)%cols == 0 {
		var lines []*node
		for i := 0; i < len(cells); i += cols {
			lines = append(lines, tree(opTuple, cells[i:i+cols]...))
		}
		return seal(&node{op: opList, name: "and", kids: lines}), nil
	}
	return seal(&node{op: opList, name: "and", kids: cells}), nil
}
