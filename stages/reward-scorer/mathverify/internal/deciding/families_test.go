package deciding

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
	"pgregory.net/rapid"
)

// TestFieldsAgreeWithFloats draws sums and products of square roots, angles and
// i: two of them are equal in the fields exactly if their floats agree.
func TestFieldsAgreeWithFloats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() (string, complex128) {
			var text strings.Builder
			sum := complex128(0)
			for range rapid.IntRange(1, 3).Draw(t, "terms") {
				k, q := rapid.IntRange(1, 4).Draw(t, "k"), rapid.IntRange(1, 30).Draw(t, "q")
				turn := rapid.IntRange(0, 23).Draw(t, "turn")
				angle := 2 * math.Pi * float64(turn) / 24
				root := complex(float64(k)*math.Sqrt(float64(q)), 0)
				switch rapid.IntRange(0, 3).Draw(t, "kind") {
				case 0:
					fmt.Fprintf(&text, `+%d\sqrt{%d}`, k, q)
				case 1:
					fmt.Fprintf(&text, `+%d\sqrt{%d}\sin\frac{%d\pi}{12}`, k, q, turn)
					root *= complex(math.Sin(angle), 0)
				case 2:
					fmt.Fprintf(&text, `+\frac{%d i\cos\frac{%d\pi}{12}}{\sqrt{%d}}`, k, turn, q)
					root = complex(0, float64(k)*math.Cos(angle)/math.Sqrt(float64(q)))
				default:
					fmt.Fprintf(&text, `+%d\sqrt{%d}e^{i\pi\frac{%d}{12}}`, k, q, turn)
					root *= complex(math.Cos(angle), math.Sin(angle))
				}
				sum += root
			}
			return text.String(), sum
		}
		a, x := draw()
		b, y := draw()
		read := func(text string) *expr.Node {
			toks, err := reading.Lex(text)
			if err != nil {
				t.Fatal(err)
			}
			n, _, err := reading.Parse(toks, reading.Reading{})
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return n
		}
		c := &comparer{Budget: evaluation.Budget{Left: evaluation.MaxSteps}, Conventions: Conventions{Decimals: 6}}
		r, ok := c.identity(read(a), read(b))
		d := x - y
		if near := math.Hypot(real(d), imag(d)) < 1e-9; !ok || (r.out == Equal) != near {
			t.Fatalf("%s = %v against %s = %v: got %+v, decided %v", a, x, b, y, r, ok)
		}
	})
}
