package mathverify

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

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
			coefficients = mulPoly(coefficients, []*big.Rat{big.NewRat(int64(-r), 1), big.NewRat(1, 1)})
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

// TestBallsHoldTheValue evaluates functions in ball arithmetic and in float64:
// the float must lie in the ball, up to its own rounding.
func TestBallsHoldTheValue(t *testing.T) {
	for name, f := range map[string]func(float64) float64{
		"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan, "sinh": math.Sinh, "cosh": math.Cosh,
		"tanh": math.Tanh, "asinh": math.Asinh, "atanh": math.Atanh, "ln": math.Log, "gamma": math.Gamma,
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				k := rapid.IntRange(-1000, 1000).Draw(t, "k")
				x := float64(k) / 1024
				switch name {
				case "ln", "gamma":
					x = float64(k+1001) / 64
				case "sin", "cos", "sinh", "cosh", "atan", "tanh", "asinh":
					x *= 20
				}
				v := &numeric{arith: &arith{budget: &budget{left: maxSteps}, prec: 160}}
				got, err := v.eval(call(name, rational(new(big.Rat).SetFloat64(x))))
				if err != nil {
					t.Fatalf("%s(%v): %v", name, x, err)
				}
				mid, _ := got.re.mid.Float64()
				want := f(x)
				if math.Abs(mid-want) > 1e-11*(1+math.Abs(want)) {
					t.Fatalf("%s(%v): got %v, want %v", name, x, mid, want)
				}
				if r, _ := got.re.rad.Float64(); r > 1e-30*(1+math.Abs(want)) {
					t.Fatalf("%s(%v): the radius %v is too wide", name, x, r)
				}
			})
		})
	}
}

// TestBallsNarrowWithPrecision: a value at high precision lies in the ball at
// low precision.
func TestBallsNarrowWithPrecision(t *testing.T) {
	gen := rapid.SampledFrom([]string{`\sqrt{2+\sqrt{3}}`, `e^{\sqrt 2}`, `\ln(1+\frac{1}{10^{30}})`, `\sin(10^{20})`, `\pi^{\pi}`, `\arctan(\frac{1}{7})`, `\cos(\ln 3)`,
		`\frac{\ln 5}{\ln 7}`, `\sqrt[7]{11}`, `\tan(1.5707963)`, `\arcsin(0.999999)`, `\ln(0.9999999999)`, `e^{-40}`, `\sinh(0.001)`})
	rapid.Check(t, func(t *rapid.T) {
		text := gen.Draw(t, "expression")
		toks, err := lex(text)
		if err != nil {
			t.Fatal(err)
		}
		n, _, err := parse(toks, reading{})
		if err != nil {
			t.Fatal(err)
		}
		low := rapid.UintRange(128, 400).Draw(t, "low")
		eval := func(prec uint) ball {
			v := &numeric{arith: &arith{budget: &budget{left: maxSteps}, prec: prec}}
			x, err := v.eval(n)
			if err != nil {
				t.Fatalf("%s at %d: %v", text, prec, err)
			}
			return x.re
		}
		a, b := eval(low), eval(1024)
		d := new(big.Float).SetPrec(1100).Sub(a.mid, b.mid)
		if d.Abs(d).Cmp(newRad().Add(a.rad, b.rad)) > 0 {
			t.Fatalf("%s: the ball at %d bits, radius %v, misses the value by %v", text, low, a.rad, d)
		}
	})
}

func TestConstantsAreWhatTheySay(t *testing.T) {
	scale := new(big.Int).Lsh(big.NewInt(1), constantBits+64)
	arc := func(x int64, sign int64) *big.Int { // x^-1 ∓ x^-3/3 ± …, scaled
		term, sum, square := new(big.Int).Quo(scale, big.NewInt(x)), new(big.Int), big.NewInt(x*x)
		for k, s := int64(1), int64(1); term.Sign() != 0; k, s = k+2, s*sign {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(s), new(big.Int).Quo(term, big.NewInt(k))))
			term.Quo(term, square)
		}
		return sum
	}
	pi := new(big.Int).Sub(new(big.Int).Mul(big.NewInt(16), arc(5, -1)), new(big.Int).Mul(big.NewInt(4), arc(239, -1)))
	ln2 := new(big.Int).Mul(big.NewInt(2), arc(3, 1))
	for name, c := range map[string]struct {
		hex  string
		want *big.Int
	}{"pi": {piHex, pi}, "ln 2": {ln2Hex, ln2}} {
		if got := c.want.Rsh(c.want, 64).Text(16); got != c.hex {
			t.Errorf("%s differs from its series", name)
		}
	}
	for _, p := range primes {
		if !new(big.Int).SetUint64(p).ProbablyPrime(32) {
			t.Errorf("%d is no prime", p)
		}
	}
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
		for _, p := range primes {
			f := modulus{p}
			got, ok := f.digits(digits)
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
