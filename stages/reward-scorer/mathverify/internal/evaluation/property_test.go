package evaluation

import (
	"math"
	"math/big"
	"testing"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
	"pgregory.net/rapid"
)

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
				v := &Numeric{Arith: &Arith{Budget: &Budget{Left: MaxSteps}, Prec: 160}}
				got, err := v.Eval(expr.Call(name, expr.Rational(new(big.Rat).SetFloat64(x))))
				if err != nil {
					t.Fatalf("%s(%v): %v", name, x, err)
				}
				mid, _ := got.Re.Mid.Float64()
				want := f(x)
				if math.Abs(mid-want) > 1e-11*(1+math.Abs(want)) {
					t.Fatalf("%s(%v): got %v, want %v", name, x, mid, want)
				}
				if r, _ := got.Re.Rad.Float64(); r > 1e-30*(1+math.Abs(want)) {
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
		toks, err := reading.Lex(text)
		if err != nil {
			t.Fatal(err)
		}
		n, _, err := reading.Parse(toks, reading.Reading{})
		if err != nil {
			t.Fatal(err)
		}
		low := rapid.UintRange(128, 400).Draw(t, "low")
		eval := func(prec uint) ball {
			v := &Numeric{Arith: &Arith{Budget: &Budget{Left: MaxSteps}, Prec: prec}}
			x, err := v.Eval(n)
			if err != nil {
				t.Fatalf("%s at %d: %v", text, prec, err)
			}
			return x.Re
		}
		a, b := eval(low), eval(1024)
		d := new(big.Float).SetPrec(1100).Sub(a.Mid, b.Mid)
		if d.Abs(d).Cmp(NewRad().Add(a.Rad, b.Rad)) > 0 {
			t.Fatalf("%s: the ball at %d bits, radius %v, misses the value by %v", text, low, a.Rad, d)
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
	for _, p := range Primes {
		if !new(big.Int).SetUint64(p).ProbablyPrime(32) {
			t.Errorf("%d is no prime", p)
		}
	}
}
