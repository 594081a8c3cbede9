package reading

import (
	"math/big"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// bracket reads (…), […] and the half-open mixtures of the two.
func (p *parser) bracket() (*expr.Node, error) {
	open := p.peek().Text
	p.pos++
	bars := p.bars
	p.bars = 0
	p.brackets++
	p.level++
	var n *expr.Node
	var err error
	empty := p.peek().Op(")") || p.peek().Op("]")
	if !empty {
		n, err = p.sequence(func(t Token) bool { return t.Op(")") || t.Op("]") })
	}
	p.brackets--
	p.level--
	p.bars = bars
	if err != nil {
		return nil, err
	}
	shut := ")"
	if open == "[" {
		shut = "]"
	}
	if t := p.peek(); t.Op(")") || t.Op("]") {
		shut = t.Text
		p.pos++
	}
	if empty {
		return expr.Tree(expr.OpTuple), nil
	}
	if n.Op != expr.OpList || n.Name == "or" {
		return n, nil
	}
	switch {
	case open == "(" && shut == ")":
		return expr.Tree(expr.OpTuple, n.Kids...), nil
	case open == "[" && shut == "]":
		return expr.Tree(expr.OpBrack, n.Kids...), nil
	case len(n.Kids) == 2:
		return expr.Seal(&expr.Node{Op: expr.OpInterval, Name: open + shut, Kids: n.Kids}), nil
	}
	return nil, p.fail("brackets that do not match")
}

// braces reads a LaTeX group. Several answers in one are a set, as people write
// "{1,2,3}" for "\{1,2,3\}".
func (p *parser) braces() (*expr.Node, error) {
	if p.peekAt(1).Op("}") {
		p.pos += 2
		if (p.peek().Op("^") || p.peek().Op("_")) && choosesAt(p.toks, p.pos) {
			return p.choose() // {}^{10}C_3
		}
		if p.startsFactor(p.peek()) || p.peek().Kind == TWord {
			return p.power() // an empty group in front of something
		}
		if p.pos >= 3 {
			return expr.Integer(1), nil // behind something: "5{}"
		}
		return expr.Leaf(expr.OpEmpty), nil
	}
	n, err := p.group("}")
	if err != nil {
		return nil, err
	}
	if n.Op == expr.OpList && (n.Name == "" || n.Name == ",") {
		return expr.Tree(expr.OpSet, n.Kids...), nil
	}
	return n, nil
}

// choosesAt says whether "^{10}C_" stands there.
func choosesAt(toks []Token, at int) bool {
	n := at + 1
	if n < len(toks) && toks[n].Op("{") {
		for n++; n < len(toks)-1 && n < at+12 && !toks[n].Op("}"); n++ {
		}
	}
	if n+2 >= len(toks) || !toks[n+1].Is(TLetter, "C") && !toks[n+1].Is(TLetter, "P") {
		return false
	}
	return toks[n+2].Op("_") || toks[n+2].Op("^")
}

// set reads \{…\}, also with a condition behind a bar or a colon.
func (p *parser) set() (*expr.Node, error) {
	if p.peekAt(1).Op(`\}`) {
		p.pos += 2
		return expr.Leaf(expr.OpEmpty), nil
	}
	p.pos++
	bars := p.bars
	p.bars = 1 // a bar ends the first part
	p.brackets++
	p.level++
	defer func() { p.level-- }()
	inner := func(t Token) bool { return t.Op(`\}`) || t.Op("|") || t.Op("}") }
	n, err := p.sequence(inner)
	p.bars = bars
	if err != nil {
		p.brackets--
		return nil, err
	}
	if p.accept(TOp, "|") {
		cond, err := p.sequence(func(t Token) bool { return t.Op(`\}`) || t.Op("}") })
		p.brackets--
		if err != nil {
			return nil, err
		}
		p.pos = min(p.pos+1, len(p.toks))
		if n.Op == expr.OpRel && len(n.Rels) == 1 && n.Rels[0] == "in" {
			n = n.Kids[0]
		}
		if n.Op == expr.OpSym {
			return expr.Tree(expr.OpBuilder, cond), nil
		}
		return expr.Tree(expr.OpBuilder, cond, n), nil
	}
	p.brackets--
	if p.peek().Op(`\}`) || p.peek().Op("}") {
		p.pos++
	}
	switch {
	case n.Op == expr.OpList:
		return expr.Tree(expr.OpSet, n.Kids...), nil
	case n.Op == expr.OpRel && n.Rels[0] == "in" && len(n.Kids) > 2 && n.Kids[1].Op == expr.OpRatio && len(n.Kids[1].Kids) == 2:
		// "x \in \mathbb{R} : x > 2"
		cond := append([]*expr.Node{n.Kids[1].Kids[1]}, n.Kids[2:]...)
		return expr.Tree(expr.OpBuilder, expr.Seal(&expr.Node{Op: expr.OpRel, Kids: cond, Rels: n.Rels[1:]})), nil
	case n.Op == expr.OpRel && n.Kids[0].Op == expr.OpRatio && len(n.Kids[0].Kids) == 2 && n.Kids[0].Kids[0].Op == expr.OpSym: // "x : 2 < x < 3"
		return expr.Tree(expr.OpBuilder, expr.Seal(&expr.Node{Op: expr.OpRel, Kids: append([]*expr.Node{n.Kids[0].Kids[1]}, n.Kids[1:]...), Rels: n.Rels})), nil
	case n.Op == expr.OpRatio && len(n.Kids) == 2 && n.Kids[1].Op == expr.OpRel:
		return expr.Tree(expr.OpBuilder, n.Kids[1]), nil
	}
	return expr.Tree(expr.OpSet, n), nil
}

// asSet reads the number in "{1,2} \setminus {2}" as a set of one.
func asSet(n *expr.Node) *expr.Node {
	if name, v := Assignment(n); name != nil && name.Op == expr.OpSym { // all reals except x = 3
		n = v
	}
	if n.Op == expr.OpNum {
		return expr.Tree(expr.OpSet, n)
	}
	return n
}

// bar reads |x|.
func (p *parser) bar() (*expr.Node, error) {
	p.pos++
	p.bars++
	start := p.pos
	n, err := p.sequence(func(t Token) bool { return t.Op("|") && p.pos > start }) // a second bar opens: ||x|-1|
	p.bars--
	if err != nil {
		return nil, err
	}
	if !p.accept(TOp, "|") {
		return nil, p.fail("a bar that does not close")
	}
	return expr.Call("abs", n), nil
}

// letter reads a symbol with its subscript, primes and arguments.
func (p *parser) letter() (*expr.Node, error) {
	name := p.peek().Text
	p.pos++
	next := p.peek()
	if !next.Op("_") && !next.Op("'") {
		switch {
		case name == "e":
			return expr.Leaf(expr.OpE), nil
		case name == "i":
			return expr.Leaf(expr.OpI), nil
		case name == "d" && next.Kind == TLetter && p.integrals > 0:
			p.pos++
			return expr.Sym("d" + next.Text), nil
		}
	}
	if !strings.Contains("fghFGH", name) {
		return expr.Sym(name), nil
	}
	// A function of the problem's own: f(x), f'(x), f^{-1}(x), f_1(x).
	save, toks := p.pos, name
	for p.accept(TOp, "'") {
		toks += "'"
	}
	if p.peek().Op("^") && p.peekAt(1).Op("{") && p.peekAt(2).Op("-") && p.peekAt(3).Is(TNum, "1") && p.peekAt(4).Op("}") {
		p.pos += 5
		toks += "^-1"
	}
	if p.peek().Op("_") {
		p.pos++
		sub, _, err := p.subscript()
		if err != nil {
			return nil, err
		}
		toks += "_" + sub
	}
	if !p.peek().Op("(") && !p.peek().Op("{") {
		if toks != name && !strings.Contains(toks, "^") {
			return expr.Sym(toks), nil
		}
		p.pos = save
		return expr.Sym(name), nil
	}
	if p.peek().Op("{") && !p.peekAt(1).Op("(") {
		return expr.Sym(toks), nil
	}
	arg, err := p.primary()
	if err != nil {
		return nil, err
	}
	return expr.Call("@"+toks, args(arg)...), nil
}

func args(n *expr.Node) []*expr.Node {
	switch n.Op {
	case expr.OpTuple, expr.OpList, expr.OpBrack, expr.OpSet:
		return n.Kids
	}
	return []*expr.Node{n}
}

// function reads a known function with power, base and argument.
func (p *parser) function() (*expr.Node, error) {
	name := p.peek().Text
	p.pos++
	var exponent, base *expr.Node
	for {
		if p.peek().Op("^") && exponent == nil {
			p.pos++
			if p.superscript("°") {
				return nil, p.fail("degrees of a function")
			}
			e, err := p.exponent()
			if err != nil {
				return nil, err
			}
			exponent = e
			continue
		}
		if p.peek().Op("_") && base == nil {
			p.pos++
			b, err := p.argument()
			if err != nil {
				return nil, err
			}
			base = b
			continue
		}
		break
	}
	arg, err := p.functionArgument()
	if err != nil {
		return nil, err
	}
	if exponent != nil && exponent.Op == expr.OpNum && exponent.Num.Cmp(expr.MinusOne) == 0 && inverse[name] != "" {
		name, exponent = inverse[name], nil
	}
	n, err := p.apply(name, base, args(arg))
	if err == nil && exponent != nil {
		n = expr.Pow(n, exponent)
	}
	return n, err
}

var inverse = map[string]string{
	"sin": "asin", "cos": "acos", "tan": "atan", "cot": "acot", "sec": "asec", "csc": "acsc",
	"sinh": "asinh", "cosh": "acosh", "tanh": "atanh",
}

var trig = map[string]bool{"sin": true, "cos": true, "tan": true, "cot": true, "sec": true, "csc": true}

func (p *parser) apply(name string, base *expr.Node, kids []*expr.Node) (*expr.Node, error) {
	if len(kids) == 0 {
		return nil, p.fail("an argument is missing")
	}
	many := name == "gcd" || name == "lcm" || name == "max" || name == "min"
	if len(kids) > 1 && !many {
		return nil, p.fail("a function of one argument has several")
	}
	switch name {
	case "log":
		if base != nil {
			return expr.Call("logb", base, kids[0]), nil
		}
		return expr.Call("logb", expr.Integer(10), kids[0]), nil
	case "lg":
		return expr.Call("logb", expr.Integer(10), kids[0]), nil
	case "cis":
		return expr.Pow(expr.Leaf(expr.OpE), expr.Mul(expr.Leaf(expr.OpI), kids[0].Rewrite(radians))), nil
	case "exp":
		return expr.Pow(expr.Leaf(expr.OpE), kids[0]), nil
	case "square":
		return expr.Pow(kids[0], expr.Integer(2)), nil
	case "cube":
		return expr.Pow(kids[0], expr.Integer(3)), nil
	case "reciprocal":
		return expr.Pow(kids[0], expr.Integer(-1)), nil
	case "sgn":
		return expr.Div(kids[0], expr.Call("abs", kids[0])), nil
	}
	if base != nil && !many {
		return nil, p.fail("a subscript of a function")
	}
	if trig[name] {
		kids = []*expr.Node{kids[0].Rewrite(radians)}
	}
	return expr.Call(name, kids...), nil
}

// radians turns degrees inside a trigonometric argument into radians.
func radians(n *expr.Node) *expr.Node {
	if n.Op == expr.OpDeg {
		return expr.Div(expr.Mul(n.Kids[0], expr.Leaf(expr.OpPi)), expr.Integer(180))
	}
	return n
}

// functionArgument reads a bracketed argument, or the product that follows.
func (p *parser) functionArgument() (*expr.Node, error) {
	if t := p.peek(); t.Op("(") || t.Op("[") || t.Op(`\{`) || t.Op("{") {
		return p.primary()
	}
	first, err := p.signedPower()
	if err != nil {
		return nil, err
	}
	factors := []*expr.Node{first}
	for {
		t := p.peek()
		if !p.startsFactor(t) || p.nextAnswer() || t.Kind == tFunc || t.Op("(") || t.Op("[") || t.Op(`\{`) || t.cmd("begin") || t.cmd("int") || t.cmd("sum") {
			return expr.Mul(factors...), nil
		}
		if t.Kind == TNum && p.toks[p.pos-1].Kind == TNum {
			return nil, p.fail("two numbers side by side")
		}
		n, err := p.power()
		if err != nil {
			return nil, err
		}
		factors = append(factors, n)
	}
}

// congruent is n modulo m; a number stands for its class.
func congruent(n, m *expr.Node) *expr.Node {
	if n.Op == expr.OpNum && m.Op == expr.OpNum && n.Num.IsInt() && m.Num.IsInt() && m.Num.Sign() > 0 && n.Long == "" && m.Long == "" {
		n = expr.Rational(new(big.Rat).SetInt(new(big.Int).Mod(n.Num.Num(), m.Num.Num())))
	}
	return expr.Call("congruent", n, m)
}
