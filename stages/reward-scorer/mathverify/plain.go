package mathverify

import (
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// compareIntegers is the way of the most frequent case: two plain integers,
// the prediction perhaps in a box. It allocates nothing.
func compareIntegers(gold, pred string) (Verdict, bool) {
	g, ok := plainInteger(gold)
	if !ok {
		return Verdict{}, false
	}
	p := pred
	if inner, ok := strings.CutPrefix(p, `\boxed{`); ok {
		if p, ok = strings.CutSuffix(inner, "}"); !ok {
			return Verdict{}, false
		}
	}
	p, ok = plainInteger(p)
	if !ok {
		return Verdict{}, false
	}
	v := Verdict{Outcome: Different, Method: MethodRational, Reason: "the numbers differ", GoldRead: expr.ClipText(g, expr.MaxRead), PredRead: expr.ClipText(p, expr.MaxRead)}
	if g == p {
		v.Outcome, v.Reason = Equal, "the same number"
	}
	return v, true
}

// plainInteger strips signs and leading zeros that mean nothing.
func plainInteger(s string) (string, bool) {
	digits := s
	if len(s) > 0 && s[0] == '-' {
		digits = s[1:]
	}
	if digits == "" {
		return "", false
	}
	for i := 0; i < len(digits); i++ {
		if !expr.IsDigit(digits[i]) {
			return "", false
		}
	}
	if digits[0] == '0' {
		digits = strings.TrimLeft(digits, "0")
		if digits == "" {
			return "0", true
		}
		if s[0] == '-' {
			return "-" + digits, true
		}
		return digits, true
	}
	return s, true
}

// plain is a number read from its text alone: num/den, rounded if it was
// written with a decimal point, ambiguous if with a thousands separator.
type plain struct {
	num, den           int64
	rounded, ambiguous bool
}

// comparePlain is the way of the frequent simple numbers: decimals, fractions
// and mixed numbers of few digits, the prediction perhaps in a box. It
// allocates nothing, and leaves whatever is not clear to the general way.
func comparePlain(gold, pred string) (Verdict, bool) {
	a, ok := plainNumber(gold)
	if !ok {
		return Verdict{}, false
	}
	if inner, ok := strings.CutPrefix(pred, `\boxed{`); ok {
		if pred, ok = strings.CutSuffix(inner, "}"); !ok {
			return Verdict{}, false
		}
	}
	b, ok := plainNumber(pred)
	if !ok {
		return Verdict{}, false
	}
	v := Verdict{Outcome: Equal, Method: MethodRational, Reason: "the same number", GoldRead: gold, PredRead: pred}
	x, y := a.num*b.den, b.num*a.den
	switch {
	case x == y:
		return v, true
	case a.ambiguous || b.ambiguous:
		return Verdict{}, false
	case a.rounded || b.rounded:
		if d := float64(x-y) / float64(a.den*b.den); d < 0.01 && d > -0.01 {
			return Verdict{}, false // perhaps within the tolerance
		}
	}
	v.Outcome, v.Reason = Different, "the numbers differ"
	return v, true
}

// maxPlain is how many digits all parts of a plain number have at most, so that
// the products of two fit 64 bits.
const maxPlain = 9

func plainNumber(s string) (plain, bool) {
	if len(s) == 0 || len(s) > 40 {
		return plain{}, false
	}
	sign := int64(1)
	if s[0] == '-' {
		sign, s = -1, s[1:]
	}
	n := plain{den: 1}
	whole, digits := int64(0), 0
	for len(s) > 0 && expr.IsDigit(s[0]) {
		whole, digits, s = whole*10+int64(s[0]-'0'), digits+1, s[1:]
		for digits <= 3 && len(s) >= 4 && s[0] == ',' && expr.IsDigit(s[1]) && expr.IsDigit(s[2]) && expr.IsDigit(s[3]) && (len(s) == 4 || !expr.IsDigit(s[4])) && whole > 0 {
			whole = whole*1000 + int64(s[1]-'0')*100 + int64(s[2]-'0')*10 + int64(s[3]-'0')
			digits, s, n.ambiguous = digits+3, s[4:], true
		}
		if digits > maxPlain {
			return plain{}, false
		}
	}
	n.num = whole
	if digits == 0 && !strings.HasPrefix(s, `\`) {
		return plain{}, false
	}
	switch {
	case s == "":
	case n.ambiguous && s[0] != '.':
		return plain{}, false
	case s[0] == '.':
		for s = s[1:]; len(s) > 0 && expr.IsDigit(s[0]); s = s[1:] {
			n.num, n.den, digits = n.num*10+int64(s[0]-'0'), n.den*10, digits+1
		}
		if s != "" || n.den == 1 || digits > maxPlain {
			return plain{}, false
		}
		n.rounded = true
	case s[0] == '/':
		den, rest, ok := smallInteger(s[1:], maxPlain-digits)
		if !ok || rest != "" || den == 0 {
			return plain{}, false
		}
		n.den = den
	default:
		num, den, ok := plainFraction(s)
		if !ok || digits > 3 {
			return plain{}, false
		}
		n.num, n.den = whole*den+num, den
	}
	n.num *= sign
	return n, true
}

func smallInteger(s string, limit int) (v int64, rest string, ok bool) {
	i := 0
	for i < len(s) && expr.IsDigit(s[i]) {
		v = v*10 + int64(s[i]-'0')
		if i++; i > limit {
			return 0, "", false
		}
	}
	return v, s[i:], i > 0
}

// plainFraction reads \frac{1}{2}, with \dfrac and \tfrac, and nothing behind.
func plainFraction(s string) (num, den int64, ok bool) {
	for _, name := range [...]string{`\frac`, `\dfrac`, `\tfrac`} {
		rest, found := strings.CutPrefix(s, name)
		if !found {
			continue
		}
		if len(rest) == 2 && expr.IsDigit(rest[0]) && rest[1] > '0' && expr.IsDigit(rest[1]) { // \frac12
			return int64(rest[0] - '0'), int64(rest[1] - '0'), true
		}
		if rest, found = strings.CutPrefix(rest, "{"); !found {
			return 0, 0, false
		}
		if num, rest, ok = smallInteger(rest, 4); !ok {
			return 0, 0, false
		}
		if rest, found = strings.CutPrefix(rest, "}{"); !found {
			return 0, 0, false
		}
		den, rest, ok = smallInteger(rest, 4)
		return num, den, ok && rest == "}" && den > 0
	}
	return 0, 0, false
}
