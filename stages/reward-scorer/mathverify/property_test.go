package mathverify

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"pgregory.net/rapid"
)

// exprGen draws an expression over integers as LaTeX together with its exact
// value; the value is nil where a division by zero occurred.
func exprGen(depth int) *rapid.Generator[valued] {
	return rapid.Custom(func(t *rapid.T) valued {
		if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
			n := rapid.IntRange(0, 30).Draw(t, "n")
			return valued{fmt.Sprint(n), big.NewRat(int64(n), 1)}
		}
		a, b := exprGen(depth-1).Draw(t, "a"), exprGen(depth-1).Draw(t, "b")
		if a.value == nil || b.value == nil {
			return valued{a.text, nil}
		}
		switch rapid.IntRange(0, 5).Draw(t, "op") {
		case 0:
			return valued{"(" + a.text + "+" + b.text + ")", new(big.Rat).Add(a.value, b.value)}
		case 1:
			return valued{"(" + a.text + "-" + b.text + ")", new(big.Rat).Sub(a.value, b.value)}
		case 2:
			return valued{`(` + a.text + `)\cdot(` + b.text + `)`, new(big.Rat).Mul(a.value, b.value)}
		case 3:
			return valued{"(" + a.text + ")(" + b.text + ")", new(big.Rat).Mul(a.value, b.value)}
		case 4:
			return valued{"(" + a.text + ")^{2}", new(big.Rat).Mul(a.value, a.value)}
		default:
			if b.value.Sign() == 0 {
				return valued{a.text, nil}
			}
			return valued{`\frac{` + a.text + "}{" + b.text + "}", new(big.Rat).Quo(a.value, b.value)}
		}
	})
}

type valued struct {
	text  string
	value *big.Rat
}

func TestArithmeticAgreesWithExactEvaluation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := exprGen(3).Draw(t, "a"), exprGen(3).Draw(t, "b")
		if a.value == nil || b.value == nil {
			t.Skip("a division by zero")
		}
		want := Different
		if a.value.Cmp(b.value) == 0 {
			want = Equal
		}
		if v := CompareAnswer(a.text, b.text, Options{}); v.Outcome != want {
			t.Fatalf("%s = %s, %s = %s: got %+v", a.text, a.value, b.text, b.value, v)
		}
		own := `\frac{` + a.value.Num().String() + "}{" + a.value.Denom().String() + "}"
		if v := CompareAnswer(a.text, own, Options{}); v.Outcome != Equal {
			t.Fatalf("%s against its value %s: got %+v", a.text, own, v)
		}
	})
}

func TestExpandedPolynomialsEqualTheirFactors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roots := rapid.SliceOfN(rapid.IntRange(-9, 9), 1, 6).Draw(t, "roots")
		coefficients := []*big.Rat{big.NewRat(1, 1)}
		var product strings.Builder
		for _, r := range roots {
			coefficients = evaluation.MulPoly(coefficients, []*big.Rat{big.NewRat(int64(-r), 1), big.NewRat(1, 1)})
			fmt.Fprintf(&product, "(x-(%d))", r)
		}
		write := func() string {
			var sum strings.Builder
			for i, c := range coefficients {
				fmt.Fprintf(&sum, "+(%s)x^{%d}", c.Num(), i)
			}
			return sum.String()
		}
		if v := CompareAnswer(product.String(), write(), Options{}); v.Outcome != Equal {
			t.Fatalf("%s against %s: got %+v", product.String(), write(), v)
		}
		i := rapid.IntRange(0, len(coefficients)-1).Draw(t, "changed")
		coefficients[i] = new(big.Rat).Add(coefficients[i], big.NewRat(1, 1))
		if v := CompareAnswer(product.String(), write(), Options{}); v.Outcome != Different {
			t.Fatalf("%s against %s: got %+v", product.String(), write(), v)
		}
	})
}

func TestSetsIgnoreOrderAndTuplesDoNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(rapid.IntRange(-50, 50), 2, 8, rapid.ID).Draw(t, "list")
		shuffled := rapid.Permutation(list).Draw(t, "shuffled")
		join := func(l []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(l), " ", ", "), "[]") }
		if v := CompareAnswer(join(list), join(shuffled), Options{}); v.Outcome != Equal {
			t.Fatalf("as sets: %+v", v)
		}
		same := fmt.Sprint(list) == fmt.Sprint(shuffled)
		if v := CompareAnswer("("+join(list)+")", "("+join(shuffled)+")", Options{}); (v.Outcome == Equal) != same {
			t.Fatalf("as tuples: %+v", v)
		}
		if v := CompareAnswer(join(list), join(list[1:]), Options{}); v.Outcome == Equal {
			t.Fatalf("one missing: %+v", v)
		}
	})
}

func TestVerdictsAreTheSameEveryTime(t *testing.T) {
	for _, pair := range [][2]string{{`\sin^2x+\cos^2x`, `1`}, {`\sin 2x`, `2\sin x`}, {`x^y`, `e^{y\ln x}`}, {`\sqrt2+\sqrt3`, `\sqrt{5+2\sqrt6}`}} {
		first := CompareAnswer(pair[0], pair[1], Options{})
		for range 20 {
			if again := CompareAnswer(pair[0], pair[1], Options{}); again != first {
				t.Fatalf("%v: %+v, then %+v", pair, first, again)
			}
		}
	}
}

func TestLongNumbersAreReducedRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[1-9][0-9]{0,400}`).Draw(t, "digits")
		i, _ := new(big.Int).SetString(digits, 10)
		for _, p := range evaluation.Primes {
			f := evaluation.NewModulus(p)
			got, ok := f.Digits(digits)
			if want := new(big.Int).Mod(i, new(big.Int).SetUint64(p)).Uint64(); !ok || got != want {
				t.Fatalf("%s mod %d: got %d %v, want %d", digits, p, got, ok, want)
			}
		}
	})
	long := strings.Repeat("123456789", 1000)
	checkRows(t, Options{}, []row{
		{long, "=", "0" + long}, {long, "!", long[:len(long)-1] + "8"}, {`\frac{` + long + `}{` + long + `}`, "=", "1"}, {"0." + long, "=", "0." + long + "00"},
		{"0." + long, "=", `\frac{` + long + `}{10^{9000}}`}, {"0." + long, "!", "0.5"}, {`\sqrt{` + long + `}`, "!", "5"},
	})
}
