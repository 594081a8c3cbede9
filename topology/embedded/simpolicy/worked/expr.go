package worked

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// ErrExpression is in the chain of every error about a calculator mark.
var ErrExpression = errors.New("not an arithmetic expression")

// Limits of one expression: marks are short, and what is longer is no mark.
const (
	maxExpression = 400
	maxDepth      = 40
)

// tokenise cuts an expression into numbers, names and operators. It reads what
// people write in marks: "$" and thousands commas vanish, "x" and "×" between
// numbers multiply, "%" after a number divides by 100.
func tokenise(expr string) ([]string, error) {
	if len(expr) > maxExpression {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrExpression, len(expr), maxExpression)
	}
	expr = strings.NewReplacer("$", "", ",", "", "×", "*", "÷", "/", "−", "-").Replace(expr)
	var out []string
	for i := 0; i < len(expr); {
		c := expr[i]
		switch {
		case c == ' ':
			i++
		case isDigit(c) || c == '.':
			j := i
			for j < len(expr) && (isDigit(expr[j]) || expr[j] == '.') {
				j++
			}
			out = append(out, expr[i:j])
			i = j
		case (c == 'x' || c == 'X') && (i+1 == len(expr) || !isName(expr[i+1])):
			out = append(out, "*")
			i++
		case isName(c):
			j := i
			for j < len(expr) && (isName(expr[j]) || isDigit(expr[j])) {
				j++
			}
			out = append(out, expr[i:j])
			i = j
		case c == '%' && (len(out) == 0 || !isDigit(out[len(out)-1][0])):
			return nil, fmt.Errorf("%w: a %% sign at %d that follows no number", ErrExpression, i)
		case strings.IndexByte("+-*/()%", c) >= 0:
			out = append(out, string(c))
			i++
		default:
			return nil, fmt.Errorf("%w: byte %q at %d", ErrExpression, c, i)
		}
	}
	return out, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isName(c byte) bool  { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// Eval computes an expression exactly; names are looked up in vars, which may be nil.
func Eval(expr string, vars map[string]*big.Rat) (*big.Rat, error) {
	toks, err := tokenise(expr)
	if err != nil {
		return nil, err
	}
	p := &parser{toks: toks, vars: vars}
	v, err := p.sum(0)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrExpression, expr, err)
	}
	if p.pos != len(p.toks) {
		return nil, fmt.Errorf("%w: %q: %q stands where an operator should", ErrExpression, expr, p.toks[p.pos])
	}
	return v, nil
}

type parser struct {
	toks []string
	pos  int
	vars map[string]*big.Rat
}

func (p *parser) peek() string {
	if p.pos < len(p.toks) {
		return p.toks[p.pos]
	}
	return ""
}

func (p *parser) sum(depth int) (*big.Rat, error) {
	v, err := p.product(depth)
	for err == nil && (p.peek() == "+" || p.peek() == "-") {
		op := p.peek()
		p.pos++
		var w *big.Rat
		if w, err = p.product(depth); err != nil {
			break
		}
		if op == "+" {
			v = new(big.Rat).Add(v, w)
		} else {
			v = new(big.Rat).Sub(v, w)
		}
	}
	return v, err
}

func (p *parser) product(depth int) (*big.Rat, error) {
	v, err := p.factor(depth)
	for err == nil && (p.peek() == "*" || p.peek() == "/") {
		op := p.peek()
		p.pos++
		var w *big.Rat
		if w, err = p.factor(depth); err != nil {
			break
		}
		if op == "*" {
			v = new(big.Rat).Mul(v, w)
			continue
		}
		if w.Sign() == 0 {
			return nil, errors.New("division by zero")
		}
		v = new(big.Rat).Quo(v, w)
	}
	return v, err
}

func (p *parser) factor(depth int) (*big.Rat, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	t := p.peek()
	p.pos++
	var v *big.Rat
	switch {
	case t == "":
		return nil, errors.New("it ends too soon")
	case t == "-":
		w, err := p.factor(depth + 1)
		if err != nil {
			return nil, err
		}
		return new(big.Rat).Neg(w), nil
	case t == "(":
		w, err := p.sum(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.peek() != ")" {
			return nil, errors.New("a parenthesis is not closed")
		}
		p.pos++
		v = w
	case isDigit(t[0]) || t[0] == '.':
		w, ok := new(big.Rat).SetString(t)
		if !ok {
			return nil, fmt.Errorf("%q is no number", t)
		}
		v = w
	case isName(t[0]):
		w, ok := p.vars[t]
		if !ok {
			return nil, &UndefinedError{Name: t}
		}
		v = w
	default:
		return nil, fmt.Errorf("%q stands where a number should", t)
	}
	if p.peek() == "%" {
		p.pos++
		v = new(big.Rat).Quo(v, big.NewRat(100, 1))
	}
	return v, nil
}

// UndefinedError says that an expression uses a name that has no value.
type UndefinedError struct{ Name string }

func (e *UndefinedError) Error() string { return fmt.Sprintf("name %q is not defined", e.Name) }

// python writes the tokens of a mark as a Python expression, naming the results of
// earlier steps where a number equals one of them.
func python(toks []string, earlier map[string]string) string {
	var b strings.Builder
	for i, t := range toks {
		next := ""
		if i+1 < len(toks) {
			next = toks[i+1]
		}
		switch {
		case t == "%":
			continue // written with its number
		case isDigit(t[0]) || t[0] == '.':
			lit := literal(t)
			if name, ok := earlier[lit]; ok && next != "%" {
				lit = name
			}
			if next == "%" {
				lit = "(" + lit + " / 100)"
			}
			b.WriteString(lit)
		case t == "(" || t == ")":
			b.WriteString(t)
		case t == "-" && (i == 0 || strings.Contains("+-*/(", toks[i-1])):
			b.WriteString(t)
		default:
			b.WriteString(" " + t + " ")
		}
	}
	return b.String()
}

// literal makes a number one that Python reads: no leading zeros, no bare point.
func literal(t string) string {
	whole, frac, point := strings.Cut(t, ".")
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if !point || frac == "" {
		return whole
	}
	return whole + "." + frac
}
