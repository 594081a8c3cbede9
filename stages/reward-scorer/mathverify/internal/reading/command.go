package reading

import (
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// command reads a LaTeX command with its own grammar.
func (p *parser) command() (*expr.Node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	t := p.peek()
	p.pos++
	switch t.Text {
	case "pi":
		if p.peek().Op("_") {
			return expr.Sym("pi"), nil
		}
		return expr.Leaf(expr.OpPi), nil
	case "infty":
		return expr.Leaf(expr.OpInf), nil
	case "emptyset":
		return expr.Leaf(expr.OpEmpty), nil
	case "dots":
		return expr.Sym("..."), nil
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
		return expr.Call("binom", n, k), nil
	case "sum", "prod", "int":
		return p.series(t.Text)
	case "lim":
		return p.limit()
	case "lfloor", "lceil":
		return p.rounded(t.Text[1:])
	case "norm":
		p.bars++
		n, err := p.sequence(func(t Token) bool { return t.cmd("norm") })
		p.bars--
		if err != nil {
			return nil, err
		}
		if p.peek().cmd("norm") {
			p.pos++
		}
		return expr.Call("norm", n), nil
	case "mathbb":
		name := p.peek().Text
		if p.peek().Op("{") {
			name = p.peekAt(1).Text
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
		return expr.Sym(text), nil
	case "begin":
		return p.environment()
	}
	if kind, ok := strings.CutPrefix(t.Text, "accent:"); ok {
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
		return expr.Sym(kind + "(" + text + ")"), nil
	}
	p.pos--
	return nil, p.fail("this command cannot stand here")
}

// sameAccent are accents that look like another but for their width.
var sameAccent = map[string]string{"overrightarrow": "vec", "bar": "overline", "widehat": "hat", "widetilde": "tilde"}

// conjugate reads \overline{3+4i}; nil if no complex number is in the group.
func conjugate(group []Token) *expr.Node {
	if len(group) < 3 || len(group) > 64 {
		return nil
	}
	n, _, err := Parse(group[1:len(group)-1], Reading{})
	if err != nil || !n.IsExpr() || !expr.HasOp(n, expr.OpI) || len(expr.SymbolsOf(n)) > 0 {
		return nil
	}
	return n.Rewrite(func(k *expr.Node) *expr.Node {
		if k.Op == expr.OpI {
			return expr.Neg(k)
		}
		return k
	})
}

// half reads a sign behind a standard set: \mathbb{R}^+ are the positive reals.
func (p *parser) half(name string) *expr.Node {
	sign := ""
	for _, plain := range []string{"+", "-"} {
		if (p.peek().Op("^") || p.peek().Op("_")) && p.peekAt(1).Op(plain) {
			sign = plain
			p.pos += 2
		} else if (p.peek().Op("^") || p.peek().Op("_")) && p.peekAt(1).Op("{") && p.peekAt(2).Op(plain) && p.peekAt(3).Op("}") {
			sign = plain
			p.pos += 4
		}
	}
	switch {
	case sign == "+" && name == "R":
		return expr.Seal(&expr.Node{Op: expr.OpInterval, Name: "()", Kids: []*expr.Node{expr.Integer(0), expr.Leaf(expr.OpInf)}})
	case sign == "-" && name == "R":
		return expr.Seal(&expr.Node{Op: expr.OpInterval, Name: "()", Kids: []*expr.Node{expr.MinusInf, expr.Integer(0)}})
	}
	return expr.Seal(&expr.Node{Op: expr.OpReals, Name: name + sign})
}

// fraction reads \frac, and \frac{d}{dx} as a derivative.
func (p *parser) fraction() (*expr.Node, error) {
	if d, letter := p.peekAt(1), func(i int) bool { return p.peekAt(i).Kind == TLetter }; p.peek().Op("{") && (d.Is(TLetter, "d") || d.Is(TLetter, "partial")) && letter(2) &&
		p.peekAt(3).Op("}") && p.peekAt(4).Op("{") && p.peekAt(5).Is(TLetter, d.Text) && letter(6) && p.peekAt(7).Op("}") {
		n := expr.Sym(d.Text + p.peekAt(2).Text + "/" + d.Text + p.peekAt(6).Text) // dy/dx is no quotient of products
		p.pos += 8
		return n, nil
	}
	if name, times := p.derivative(); name != "" {
		body, err := p.term()
		if err != nil {
			return nil, err
		}
		for range times {
			body = expr.Seal(&expr.Node{Op: expr.OpBig, Name: "diff", Kids: []*expr.Node{expr.Sym(name), body}})
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
	if !a.IsExpr() || !b.IsExpr() {
		return expr.Tree(expr.OpRatio, a, b), nil
	}
	return expr.Div(a, b), nil
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
		return want(t.Kind == TLetter && (t.Text == "d" || t.Text == "partial"))
	}
	order := func(first bool) bool {
		if !p.accept(TOp, "^") {
			return first || times == 1
		}
		t := p.peek()
		if t.Op("{") && p.peekAt(2).Op("}") {
			t = p.peekAt(1)
			p.pos += 2
		}
		n := len(t.Text)
		ok := t.Kind == TNum && n == 1 && t.Text >= "1" && (first || int(t.Text[0]-'0') == times)
		if ok {
			times = int(t.Text[0] - '0')
		}
		return want(ok)
	}
	if want(p.peek().Op("{")) && d() && order(true) && want(p.peek().Op("}")) && want(p.peek().Op("{")) && d() {
		if name := p.peek(); want(name.Kind == TLetter) && order(false) && want(p.peek().Op("}")) {
			return name.Text, times
		}
	}
	p.pos = save
	return "", 0
}

func (p *parser) root() (*expr.Node, error) {
	n := expr.Integer(2)
	if p.peek().Op("[") {
		p.pos++
		i, err := p.sequence(func(t Token) bool { return t.Op("]") })
		if err != nil {
			return nil, err
		}
		if !p.accept(TOp, "]") {
			return nil, p.fail("a root's index that does not close")
		}
		n = i
	}
	var x *expr.Node
	var err error
	switch t := p.peek(); {
	case t.Kind == TNum:
		x, err = p.number() // "\sqrt12" is the root of 12, as people mean it
	case t.Op("{"), t.Op("("):
		x, err = p.primary()
	default:
		x, err = p.argument()
	}
	if err != nil {
		return nil, err
	}
	if x.Op == expr.OpSet && len(x.Kids) == 1 && x.Kids[0].IsExpr() { // braces for brackets
		x = x.Kids[0]
	}
	if x.Op == expr.OpSet || x.Op == expr.OpTuple {
		return nil, p.fail("the root of several quantities")
	}
	return expr.Call("root", x, n), nil
}

func (p *parser) rounded(kind string) (*expr.Node, error) {
	bars := p.bars
	p.bars = 0
	n, err := p.sequence(func(t Token) bool { return t.cmd("r" + kind) })
	p.bars = bars
	if err != nil {
		return nil, err
	}
	if !p.peek().cmd("r" + kind) {
		return nil, p.fail("a bracket of rounding that does not close")
	}
	p.pos++
	return expr.Call(kind, n), nil
}

// environment reads matrices and cases.
func (p *parser) environment() (*expr.Node, error) {
	name, _, err := p.subscript()
	if err != nil {
		return nil, err
	}
	if name == "array" || name == "tabular" {
		if p.peek().Op("{") {
			if _, _, err := p.subscript(); err != nil {
				return nil, err
			}
		}
	}
	bars, brackets := p.bars, p.brackets
	p.bars, p.brackets = 0, p.brackets+1
	defer func() { p.bars, p.brackets = bars, brackets }()
	matrix := strings.Contains(name, "matrix") || name == "array"
	var cells []*expr.Node
	cols, row := 0, 0
	stop := func(t Token) bool { return t.Op("&") || t.Op(`\\`) || t.cmd("end") }
	for {
		t := p.peek()
		switch {
		case t.Kind == tEnd, t.cmd("end"):
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
			if !matrix || cols == 1 && cells[0].Op == expr.OpRel {
				return p.cases(cells, cols)
			}
			if len(cells)%cols != 0 {
				return nil, p.fail("rows of different lengths")
			}
			m := expr.Seal(&expr.Node{Op: expr.OpMatrix, Kids: cells, Cols: cols})
			if name == "vmatrix" && cols*cols == len(cells) {
				return expr.Call("det", m), nil
			}
			return m, nil
		case t.Op("&"):
			p.pos++
		case t.Op(`\\`):
			p.pos++
			if row > 0 && cols == 0 {
				cols = row
			}
			row = 0
		default:
			if w := strings.ToLower(t.Text); t.Kind == TWord && row > 0 && (w == "if" || w == "when" || w == "for" || w == "where") {
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
			if next := p.peek(); next.Kind != tEnd && !stop(next) {
				return nil, p.fail("unexpected")
			}
		}
	}
}

// cases makes the lines of a cases or aligned environment a list.
func (p *parser) cases(cells []*expr.Node, cols int) (*expr.Node, error) {
	if len(cells) == 1 {
		return cells[0], nil
	}
	if cols > 1 && len(cells)%cols == 0 {
		var lines []*expr.Node
		for i := 0; i < len(cells); i += cols {
			lines = append(lines, expr.Tree(expr.OpTuple, cells[i:i+cols]...))
		}
		return expr.Seal(&expr.Node{Op: expr.OpList, Name: "and", Kids: lines}), nil
	}
	return expr.Seal(&expr.Node{Op: expr.OpList, Name: "and", Kids: cells}), nil
}
