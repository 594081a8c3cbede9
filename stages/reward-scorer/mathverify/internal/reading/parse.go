package reading

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// errSyntax is wrapped by every error of the parser that is not errLimit.
var errSyntax = errors.New("not understood")

// Reading chooses among the meanings of ambiguous spellings.
type Reading struct {
	Split        bool // "1,234" is two numbers, not one
	DecimalComma bool // "2,74" is a decimal
	UnitLetters  bool // "5 m" is a length
}

// parser reads one answer by recursive descent. Each token is looked at a
// bounded number of times; nesting is bounded by maxDepth.
type parser struct {
	Reading
	toks      []Token
	pos       int
	depth     int
	steps     int  // tokens looked at
	bars      int  // open |…| that a bar would close
	brackets  int  // open brackets, in which a comma separates
	integrals int  // open integrals, which "dx" ends
	level     int  // open groups and brackets
	dxLevel   int  // the level at which the innermost integral's "dx" stands
	ambiguous bool // a thousands separator could be a comma
	owned     bool // toks is a copy, and may be changed
	unit      string
	before    []string              // words in front of the current answer
	after     []string              // and behind it
	literals  map[string]*expr.Node // short numbers met so far, so that repetition is cheap
}

// Parse reads a whole answer.
func Parse(toks []Token, r Reading) (*expr.Node, bool, error) {
	p := &parser{Reading: r, toks: outward(Trim(toks))}
	n, err := p.sequence(func(Token) bool { return false })
	if err == nil && p.pos < len(p.toks) {
		err = p.fail("unexpected")
	}
	return n, p.ambiguous, err
}

// Readable says why a text cannot be read as an answer.
func Readable(text string) error {
	toks, err := Lex(text)
	if err == nil {
		_, _, err = Parse(toks, Reading{})
	}
	return err
}

// own copies the tokens before the first change: "\frac12" splits its "12".
func (p *parser) own() {
	if !p.owned {
		p.toks, p.owned = append([]Token(nil), p.toks...), true
	}
}

func (p *parser) peek() Token {
	p.steps++
	if p.pos < len(p.toks) {
		return p.toks[p.pos]
	}
	return Token{}
}

func (p *parser) peekAt(n int) Token {
	p.steps++
	if p.pos+n < len(p.toks) {
		return p.toks[p.pos+n]
	}
	return Token{}
}

func (p *parser) fail(what string) error {
	t := p.peek()
	if t.Kind == tEnd {
		return fmt.Errorf("%w: %s at the end", errSyntax, what)
	}
	return fmt.Errorf("%w: %s at %q (byte %d)", errSyntax, what, expr.ClipText(t.Text, 20), t.at)
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return ErrLimit
	}
	return nil
}

func (p *parser) accept(k kind, text string) bool {
	if p.peek().Is(k, text) {
		p.pos++
		return true
	}
	return false
}

// separator says how the token parts two answers: ",", ";", "and", "or", or "".
func (p *parser) separator(t Token) string {
	switch {
	case t.Op(",") || t.Op(`\\`) || t.Op("&"):
		return ","
	case t.Op(";"):
		return ";"
	case t.Kind == TWord || t.Kind == tCmd:
		switch strings.ToLower(t.Text) {
		case "and", "or":
			return strings.ToLower(t.Text)
		}
	}
	return ""
}

// sequence reads answers up to a token that stops it (which it leaves) or the
// end. One answer is returned as it is, several as an opList named after what
// stood between them.
func (p *parser) sequence(stop func(Token) bool) (*expr.Node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	var groups [][]*expr.Node
	var group []*expr.Node
	name := ""
	for {
		for p.separator(p.peek()) != "" {
			switch s := p.separator(p.peek()); s {
			case ";":
				if len(group) > 0 {
					groups, group = append(groups, group), nil
				}
			case "or", "and":
				name = s
			}
			p.pos++
		}
		if t := p.peek(); t.Kind == tEnd || stop(t) {
			break
		}
		n, err := p.item(stop)
		if err != nil {
			return nil, err
		}
		if n.Op != expr.OpWords || len(group) == 0 || !allFillers(n.Name) { // "Yes, it is"
			group = append(group, n)
		}
		if t := p.peek(); t.Kind != tEnd && !stop(t) && p.separator(t) == "" && !p.nextAnswer() {
			return nil, p.fail("unexpected")
		}
	}
	if len(groups) == 0 && len(group) > 1 && answered(group) {
		group = group[:1]
	}
	if len(groups) == 0 && len(group) == 1 {
		return group[0], nil
	}
	if len(group) > 0 {
		groups = append(groups, group)
	}
	if len(groups) == 0 {
		return nil, p.fail("an answer is missing")
	}
	return assemble(groups, name), nil
}

// answered says whether a yes or no is followed by words alone that repeat it:
// "Yes, he can".
func answered(group []*expr.Node) bool {
	for i, n := range group {
		if n.Op != expr.OpWords || (i == 0) != (strings.EqualFold(n.Name, "yes") || strings.EqualFold(n.Name, "no")) {
			return false
		}
		for _, w := range strings.Fields(strings.ToLower(n.Name)) {
			if i > 0 && (ClassOf(w) == Denial || opposites[w] != "") {
				return false
			}
		}
	}
	return true
}

// allFillers says whether words say nothing.
func allFillers(text string) bool {
	for _, w := range strings.Fields(text) {
		if ClassOf(w) != Filler {
			return false
		}
	}
	return true
}

// assemble makes one node of groups parted by semicolons: "1,2; 3,4" are two
// pairs, "1; 2" two answers.
func assemble(groups [][]*expr.Node, name string) *expr.Node {
	if len(groups) == 1 {
		if len(groups[0]) == 1 {
			return groups[0][0]
		}
		return expr.Seal(&expr.Node{Op: expr.OpList, Kids: groups[0], Name: name})
	}
	kids := make([]*expr.Node, 0, len(groups))
	for _, g := range groups {
		if len(g) == 1 {
			kids = append(kids, g[0])
		} else {
			kids = append(kids, expr.Tree(expr.OpTuple, g...))
		}
	}
	return expr.Seal(&expr.Node{Op: expr.OpList, Kids: kids, Name: name})
}

// side reads a set expression, a ratio or a quantity.
func (p *parser) side() (*expr.Node, error) {
	n, err := p.sum()
	if err != nil {
		return nil, err
	}
	for {
		t := p.peek()
		switch {
		case t.Kind == tSetOp:
			p.pos++
			right, err := p.sum()
			if err != nil {
				return nil, err
			}
			n = expr.Seal(&expr.Node{Op: expr.OpSetOp, Name: t.Text, Kids: []*expr.Node{asSet(n), asSet(right)}})
		case t.Op(":"):
			kids, clock := []*expr.Node{n}, ""
			for p.accept(TOp, ":") {
				if t := p.peek(); t.Kind == TNum && len(t.Text) == 2 && t.Text[0] == '0' {
					clock = "clock"
				}
				right, err := p.sum()
				if err != nil {
					return nil, err
				}
				kids = append(kids, right)
			}
			n = expr.Seal(&expr.Node{Op: expr.OpRatio, Name: clock, Kids: kids})
		case t.cmd("over") || t.cmd("choose"):
			p.pos++
			right, err := p.sum()
			if err != nil {
				return nil, err
			}
			if t.Text == "over" {
				n = expr.Div(n, right)
			} else {
				n = expr.Call("binom", n, right)
			}
		case t.cmd("pmod"):
			p.pos++
			right, err := p.argument()
			if err != nil {
				return nil, err
			}
			n = congruent(n, right)
		case t.Op("(") && p.peekAt(1).cmd("mod"):
			p.pos += 2
			right, err := p.sum()
			if err != nil {
				return nil, err
			}
			if !p.accept(TOp, ")") {
				return nil, p.fail("a bracket that does not close")
			}
			n = congruent(n, right)
		default:
			return n, nil
		}
	}
}

// sum reads terms joined by signs.
func (p *parser) sum() (*expr.Node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	var kids []*expr.Node // from the second term on, with the first
	var first *expr.Node
	for {
		sign, pm, any := 1, "", false
		for {
			t := p.peek()
			if t.Op("-") {
				sign = -sign
			} else if t.cmd("pm") || t.cmd("mp") {
				pm = map[string]string{"pm": "+-", "mp": "-+"}[t.Text]
			} else if !t.Op("+") {
				break
			}
			any = true
			p.pos++
		}
		if first != nil && !any {
			break
		}
		n, err := p.term()
		if err != nil {
			return nil, err
		}
		switch {
		case sign < 0 && n.Op == expr.OpSet && first != nil && kids == nil && !first.IsExpr(): // \mathbb{R} - \{1\}
			first = expr.Seal(&expr.Node{Op: expr.OpSetOp, Name: "setminus", Kids: []*expr.Node{first, n}})
			continue
		case sign < 0 && n.Op == expr.OpFunc && n.Name == "mod": // -1 mod 2 is (-1) mod 2
			n = expr.Call("mod", expr.Neg(n.Kids[0]), n.Kids[1])
		case sign < 0:
			n = expr.Neg(n)
		}
		if pm != "" {
			left := expr.Integer(0)
			if kids != nil {
				left = expr.Add(kids...)
			} else if first != nil {
				left = first
			}
			first, kids = expr.Seal(&expr.Node{Op: expr.OpPM, Name: pm, Kids: []*expr.Node{left, n}}), nil
			continue
		}
		switch {
		case first == nil:
			first = n
		case kids == nil:
			kids = []*expr.Node{first, n}
		default:
			kids = append(kids, n)
		}
	}
	if kids == nil {
		return first, nil
	}
	return expr.Add(kids...), nil
}

// term reads factors joined by signs of multiplication or by nothing.
func (p *parser) term() (*expr.Node, error) {
	first, err := p.power()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.Kind != TWord && !t.Op("*") && !t.Op("/") && !t.cmd("mod") && !p.startsFactor(t) {
		return first, nil
	}
	factors := make([]*expr.Node, 1, 4)
	factors[0] = first
	for {
		t := p.peek()
		switch {
		case (t.Op("*") || t.Op("/") || t.Op("(") || t.Kind == TLetter || t.Kind == TWord) && p.isUnit() && p.takeUnit():
		case t.Kind == TLetter && t.upright && strings.Contains("kKM", t.Text) && p.toks[p.pos-1].Kind == TNum: // thousands, or kelvins
			p.after = append(p.after, t.Text)
			p.pos++
		case p.fractionUnit():
		case t.Op("*"):
			p.pos++
			n, err := p.signedPower()
			if err != nil {
				return nil, err
			}
			factors = append(factors, n)
		case t.Op("/"):
			p.pos++
			n, err := p.signedPower()
			if err != nil {
				return nil, err
			}
			factors = append(factors, expr.Pow(n, expr.Integer(-1)))
		case t.cmd("mod"):
			p.pos++
			n, err := p.signedPower()
			if err != nil {
				return nil, err
			}
			factors = []*expr.Node{expr.Call("mod", expr.Mul(factors...), n)}
		case t.Kind == TWord && p.separator(t) == "":
			factors = p.wordAfter(factors)
		case p.startsFactor(t) && !p.nextAnswer():
			if t.Kind == TNum && p.pos > 0 && p.toks[p.pos-1].Kind == TNum && factors[len(factors)-1].Op == expr.OpNum {
				return nil, p.fail("two numbers side by side")
			}
			n, err := p.power()
			if err != nil {
				return nil, err
			}
			factors = append(factors, n)
		default:
			for i, n := range factors { // \{1+2\}\{3-4\}: braces for brackets
				if n.Op == expr.OpSet && len(n.Kids) == 1 && n.Kids[0].IsExpr() {
					factors[i] = n.Kids[0]
				}
			}
			return expr.Mul(factors...), nil
		}
	}
}

func (p *parser) signedPower() (*expr.Node, error) {
	sign := 1
	for p.peek().Op("-") || p.peek().Op("+") {
		if p.peek().Op("-") {
			sign = -sign
		}
		p.pos++
	}
	n, err := p.power()
	if err == nil && sign < 0 {
		n = expr.Neg(n)
	}
	return n, err
}

// startsFactor says whether t can follow a factor without a sign.
func (p *parser) startsFactor(t Token) bool {
	switch t.Kind {
	case TNum, tFunc:
		return true
	case TLetter:
		differential := p.integrals > 0 && p.level == p.dxLevel && t.Text == "d" && p.peekAt(1).Kind == TLetter && !p.peekAt(1).Spaced
		return !differential
	case TOp:
		switch t.Text {
		case "(":
			return !p.peekAt(1).cmd("mod")
		case "[", "{", `\{`:
			return true
		case "|":
			return p.bars == 0
		}
	case tCmd:
		switch t.Text {
		case "frac", "sqrt", "binom", "sum", "prod", "int", "lim", "begin", "pi", "infty", "lfloor", "lceil", "mathbb", "dots", "variable", "reals":
			return true
		}
		return strings.HasPrefix(t.Text, "accent")
	}
	return false
}
