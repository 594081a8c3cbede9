package reading

import (
	"strings"
	"testing"
)

// steps is how many steps the reading of a text took. What is then calculated has a
// budget of its own.
func steps(t *testing.T, text string) int {
	t.Helper()
	l := &lexer{src: text}
	for l.pos < len(l.src) && l.err == nil {
		l.step()
	}
	f := &phraser{in: l.out}
	f.run()
	p := &parser{toks: outward(Trim(f.out))}
	_, _ = p.sequence(func(Token) bool { return false })
	return l.steps + f.steps + p.steps
}

// TestStepsGrowWithTheLength doubles texts: the steps must no more than double, but
// for a constant.
func TestStepsGrowWithTheLength(t *testing.T) {
	many := strings.Repeat
	for name, text := range map[string]func(n int) string{
		"nested text":      func(n int) string { return many(`\text{`, n) + "5" + many("}", n) },
		"text in formulas": func(n int) string { return many(`\text{a $`, n) + "5" + many("$}", n) },
		"nested brackets":  func(n int) string { return many("(", n) + "5" + many(")", n) },
		"nested fractions": func(n int) string { return many(`\frac{1}{`, n) + "2" + many("}", n) },
		"nested roots":     func(n int) string { return many(`\sqrt{`, n) + "2" + many("}", n) },
		"nested sets":      func(n int) string { return many(`\{1,`, n) + "2" + many(`\}`, n) },
		"restated":         func(n int) string { return many("5 (or ", n) + "5" + many(")", n) },
		"words":            func(n int) string { return many("apple ", n) + "5" },
		"denials":          func(n int) string { return "5" + many(" is not", n) },
		"numerals":         func(n int) string { return many("one hundred and ", n) + "one" },
		"halves":           func(n int) string { return many("half of ", n) + "5" },
		"relations":        func(n int) string { return "x" + many(" is at least 5 and", n) + " 5" },
		"units":            func(n int) string { return "5" + many(` \text{m}\cdot`, n) + ` \text{s}` },
		"girls and boys":   func(n int) string { return "5 " + many("girls and boys ", n) },
		"a sum":            func(n int) string { return many("1+", n) + "1" },
		"a product":        func(n int) string { return many(`x\cdot`, n) + "1" },
		"a list":           func(n int) string { return many("1,2,", n) + "3" },
		"a chain":          func(n int) string { return many("1=", n) + "1" },
		"backslashes":      func(n int) string { return many(`\`, n) + "5" },
		"an unknown name":  func(n int) string { return `\` + many("a", n) },
		"subscripts":       func(n int) string { return many("x_{", n) + "1" + many("}", n) },
		"Chinese":          func(n int) string { return many("不是大于五或者", n) },
		"superscripts":     func(n int) string { return "x" + many("²", n) },
		"choices":          func(n int) string { return many("^{5}C_", n) + "1" },
		"dollars":          func(n int) string { return many(`\$5 `, n) },
		"new lines":        func(n int) string { return many(`\\ a`, n) },
	} {
		for n := 50; n <= 800; n *= 2 {
			one, two := steps(t, text(n)), steps(t, text(2*n))
			if two > 2*one+one/4+200 {
				t.Errorf("%s: %d steps for %d, %d for twice as long", name, one, n, two)
				break
			}
		}
	}
}
