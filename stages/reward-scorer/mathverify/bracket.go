package mathverify

import (
	"math/big"
	"strings"
)

// bracket reads (…), […] and the half-open mixtures of the two.
func (p *parser) bracket() (*node, error) {
	open := p.peek().text
	p.pos++
	bars := p.bars
	p.bars = 0
	p.brackets++
	p.level++
	var n *node
	var err error
	empty := p.peek().op(")") || p.peek().op("]")
	if !empty {
		n, err = p.sequence(func(t token) bool { return t.op(")") || t.op("]") })
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
	if t := p.peek(); t.op(")") || t.op("]") {
		shut = t.text
		p.pos++
	}
	if empty {
		return tree(opTuple), nil
	}
	if n.op != opList || n.name == "or" {
		return n, nil
	}
	switch {
	case open == "(" && shut == ")":
		return tree(opTuple, n.kids...), nil
	case open == "[" && shut == "]":
		return tree(opBrack, n.kids...), nil
	case len(n.kids) == 2:
		return seal(&node{op: opInterval, name: open + shut, kids: n.kids}), nil
	}
	return nil, p.fail("brackets that do not match")
}

// braces reads a LaTeX group. Several answers in one are a set, as people write
// "{1,2,3}" for "\{1,2,3\}".
func (p *parser) braces() (*node, error) {
	if p.peekAt(1).op("}") {
		p.pos += 2
		if (p.peek().op("^") || p.peek().op("_")) && choosesAt(p.toks, p.pos) {
			return p.choose() // {}^{10}C_3
		}
		if p.startsFactor(p.peek()) || p.peek().kind == tWord {
			return p.power() // an empty group in front of something
		}
		if p.pos >= 3 {
			return integer(1), nil // behind something: "5{}"
		}
		return leaf(opEmpty), nil
	}
	n, err := p.group("}")
	if err != nil {
		return nil, err
	}
	if n.op == opList && (n.name == "" || n.name == ",") {
		return tree(opSet, n.kids...), nil
	}
	return n, nil
}

// choosesAt says whether "^{10}C_" stands there.
func choosesAt(toks []token, at int) bool {
	n := at + 1
	if n < len(toks) && toks[n].op("{") {
		for n++; n < len(toks)-1 && n < at+12 && !toks[n].op("}"); n++ {
		}
	}
	if n+2 >= len(toks) || !toks[n+1].is(tLetter, "C") && !toks[n+1].is(tLetter, "P") {
		return false
	}
	return toks[n+2].op("_") || toks[n+2].op("^")
}

// set reads \{…\}, also with a condition behind a bar or a colon.
func (p *parser) set() (*node, error) {
	if p.peekAt(1).op(`\}`) {
		p.pos += 2
		return leaf(opEmpty), nil
	}
	p.pos++
	bars := p.bars
	p.bars = 1 // a bar ends the first part
	p.brackets++
	p.level++
	defer func() { p.level-- }()
	inner := func(t token) bool { return t.op(`\}`) || t.op("|") || t.op("}") }
	n, err := p.sequence(inner)
	p.bars = bars
	if err != nil {
		p.brackets--
		return nil, err
	}
	if p.accept(tOp, "|") {
		cond, err := p.sequence(func(t token) bool { return t.op(`\}`) || t.op("}") })
		p.brackets--
		if err != nil {
			return nil, err
		}
		p.pos = min(p.pos+1, len(p.toks))
		if n.op == opRel && len(n.rels) == 1 && n.rels[0] == "in" {
			n = n.kids[0]
		}
		if n.op == opSym {
			return tree(opBuilder, cond), nil
		}
		return tree(opBuilder, cond, n), nil
	}
	p.brackets--
	if p.peek().op(`\}`) || p.peek().op("}") {
		p.pos++
	}
	switch {
	case n.op == opList:
		return tree(opSet, n.kids...), nil
	case n.op == opRel && n.rels[0] == "in" && len(n.kids) > 2 && n.kids[1].op == opRatio && len(n.kids[1].kids) == 2:
		// "x \in \mathbb{R} : x > 2"
		cond := append([]*node{n.kids[1].kids[1]}, n.kids[2:]...)
		return tree(opBuilder, seal(&node{op: opRel, kids: cond, rels: n.rels[1:]})), nil
	case n.op == opRel && n.kids[0].op == opRatio && len(n.kids[0].kids) == 2 && n.kids[0].kids[0].op == opSym: // "x : 2 < x < 3"
		return tree(opBuilder, seal(&node{op: opRel, kids: append([]*node{n.kids[0].kids[1]}, n.kids[1:]...), rels: n.rels})), nil
	case n.op == opRatio && len(n.kids) == 2 && n.kids[1].op == opRel:
		return tree(opBuilder, n.kids[1]), nil
	}
	return tree(opSet, n), nil
}

// asSet reads the number in "{1,2} \setminus {2}" as a set of one.
func asSet(n *node) *node {
	if name, v := assignment(n); name != nil && name.op == opSym { // all reals except x = 3
		n = v
	}
	if n.op == opNum {
		return tree(opSet, n)
	}
	return n
}

// bar reads |x|.
func (p *parser) bar() (*node, error) {
	p.pos++
	p.bars++
	start := p.pos
	n, err := p.sequence(func(t token) bool { return t.op("|") && p.pos > start }) // a second bar opens: ||x|-1|
	p.bars--
	if err != nil {
		return nil, err
	}
	if !p.accept(tOp, "|") {
		return nil, p.fail("a bar that does not close")
	}
	return call("abs", n), nil
}

// letter reads a symbol with its subscript, primes and arguments.
func (p *parser) letter() (*node, error) {
	name := p.peek().text
	p.pos++
	next := p.peek()
	if !next.op("_") && !next.op("'") {
		switch {
		case name == "e":
			return leaf(opE), nil
		case name == "i":
			return leaf(opI), nil
		case name == "d" && next.kind == tLetter && p.integrals > 0:
			p.pos++
			return sym("d" + next.text), nil
		}
	}
	if !strings.Contains("fghFGH", name) {
		return sym(name), nil
	}
	// A function of the problem's own: f(x), f'(x), f^{-1}(x), f_1(x).
	save, toks := p.pos, name
	for p.accept(tOp, "'") {
		toks += "'"
	}
	if p.peek().op("^") && p.peekAt(1).op("{") && p.peekAt(2).op("-") && p.peekAt(3).is(tNum, "1") && p.peekAt(4).op("}") {
		p.pos += 5
		toks += "^-1"
	}
	if p.peek().op("_") {
		p.pos++
		sub, _, err := p.subscript()
		if err != nil {
			return nil, err
		}
		toks += "_" + sub
	}
	if !p.peek().op("(") && !p.peek().op("{") {
		if toks != name && !strings.Contains(toks, "^") {
			return sym(toks), nil
		}
		p.pos = save
		return sym(name), nil
	}
	if p.peek().op("{") && !p.peekAt(1).op("(") {
		return sym(toks), nil
	}
	arg, err := p.primary()
	if err != nil {
		return nil, err
	}
	return call("@"+toks, args(arg)...), nil
}

func args(n *node) []*node {
	switch n.op {
	case opTuple, opList, opBrack, opSet:
		return n.kids
	}
	return []*node{n}
}

// function reads a known function with power, base and argument.
func (p *parser) function() (*node, error) {
	name := p.peek().text
	p.pos++
	var exponent, base *node
	for {
		if p.peek().op("^") && exponent == nil {
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
		if p.peek().op("_") && base == nil {
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
	if exponent != nil && exponent.op == opNum && exponent.num.Cmp(minusOne) == 0 && inverse[name] != "" {
		name, exponent = inverse[name], nil
	}
	n, err := p.apply(name, base, args(arg))
	if err == nil && exponent != nil {
		n = pow(n, exponent)
	}
	return n, err
}

var inverse = map[string]string{
	"sin": "asin", "cos": "acos", "tan": "atan", "cot": "acot", "sec": "asec", "csc": "acsc",
	"sinh": "asinh", "cosh": "acosh", "tanh": "atanh",
}

var trig = map[string]bool{"sin": true, "cos": true, "tan": true, "cot": true, "sec": true, "csc": true}

func (p *parser) apply(name string, base *node, kids []*node) (*node, error) {
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
			return call("logb", base, kids[0]), nil
		}
		return call("logb", integer(10), kids[0]), nil
	case "lg":
		return call("logb", integer(10), kids[0]), nil
	case "cis":
		return pow(leaf(opE), mul(leaf(opI), kids[0].rewrite(radians))), nil
	case "exp":
		return pow(leaf(opE), kids[0]), nil
	case "square":
		return pow(kids[0], integer(2)), nil
	case "cube":
		return pow(kids[0], integer(3)), nil
	case "reciprocal":
		return pow(kids[0], integer(-1)), nil
	case "sgn":
		return div(kids[0], call("abs", kids[0])), nil
	}
	if base != nil && !many {
		return nil, p.fail("a subscript of a function")
	}
	if trig[name] {
		kids = []*node{kids[0].rewrite(radians)}
	}
	return call(name, kids...), nil
}

// radians turns degrees inside a trigonometric argument into radians.
func radians(n *node) *node {
	if n.op == opDeg {
		return div(mul(n.kids[0], leaf(opPi)), integer(180))
	}
	return n
}

// functionArgument reads a bracketed argument, or the product that follows.
func (p *parser) functionArgument() (*node, error) {
	if t := p.peek(); t.op("(") || t.op("[") || t.op(`\{`) || t.op("{") {
		return p.primary()
	}
	first, err := p.signedPower()
	if err != nil {
		return nil, err
	}
	factors := []*node{first}
	for {
		t := p.peek()
		if !p.startsFactor(t) || p.nextAnswer() || t.kind == tFunc || t.op("(") || t.op("[") || t.op(`\{`) || t.cmd("begin") || t.cmd("int") || t.cmd("sum") {
			return mul(factors...), nil
		}
		if t.kind == tNum && p.toks[p.pos-1].kind == tNum {
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
func congruent(n, m *node) *node {
	if n.op == opNum && m.op == opNum && n.num.IsInt() && m.num.IsInt() && m.num.Sign() > 0 && n.long == "" && m.long == "" {
		n = rational(new(big.Rat).SetInt(new(big.Int).Mod(n.num.Num(), m.num.Num())))
	}
	return call("congruent", n, m)
}
