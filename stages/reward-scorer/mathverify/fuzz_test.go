package mathverify

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/finding"
)

var fuzzSeeds = [][2]string{
	{`\frac{1}{2}`, `0.5`}, {`x\in[-2,7]`, `-2\le x\le 7`}, {`\{1,2\}\cup\{3\}`, `1,2,3`}, {`\begin{pmatrix}1&2\\3&4\end{pmatrix}`, `\left[\begin{array}{cc}1&2\\3&4\end{array}\right]`},
	{`\boxed{441} and \boxed{482}`, `441, 482`}, {`\sum_{k=1}^{100}k`, `5050`}, {`\sin^2x+\cos^2x`, `1`}, {`1{,}234\text{ cm}^2`, `1234`}, {`9^{9^{9^9}}`, `10^{10}!`},
	{`√½²°∞∪∈−％５`, `π±√2`}, {`x=1\pm\sqrt{2}`, `\text{no solution}`}, {`||x||y||`, `\left|x\right|`}, {`\int_0^1 x^2dx`, `\frac{d}{dx}x^3`}, {`\lfloor\log_2 8\rfloor`, `\lceil e\rceil`},
	{`9.9^9^9`, `10!`}, {`{{{{`, `}}}}`}, {`\\\\\\`, `\frac\frac\frac`}, {"\xff\xfe", "\x00"}, {`a_1^2_3'`, `\overline{x}_{ij}^{2}`}, {`\gcd(0,0)`, `5\mod 0`}, {`1/0`, `0/0`}, {`(-1)^{1/2}`, `0^0`},
	{`\Gamma(-1)`, `\binom{n}{-1}`}, {`\lim_{x\to0}\frac{\sin x}{x}`, `1`}, {`S:T:U=1:2:3`, `12:00`}, {`1 \frac{1}{2} 3/4`, `3 1/2`}, {`\prod_{k=1}^{2000}k^{k}`, `\sqrt[1000]{2}`}, {`\sum_{n=1}^{\infty}\frac{1}{n^2}`, `\frac{\pi^2}{6}`}, {`\int_0^{\infty}\frac{\sin x}{x}dx`, `\sqrt[0]{2}`},
	{`\text{at least }7`, `7 or more`},
	{`236\text{ adult, }342\text{ child}`, `342\text{ children and }236\text{ adults}`},
	{`7\text{ dozen}`, `one hundred and five`},
	{`\text{July 4th}`, `4 July`},
	{`不是5`, `负五`},
	{`^{10}C_3`, `C(10,3)`},
	{`x^2+C`, `2n\pi, n\in\mathbb{Z}`},
	{`\begin{cases}x&x\ge0\\-x&\text{otherwise}\end{cases}`, `|x|`},
	{`5\text{ m/s}^2`, `18 \text{ km/h}`},
	{`7 (seven)`, `\frac12 \text{ (or }0.5)`},
	{`50\%`, `132_5`},
	{`6\text{ ft }2\text{ in}`, `3\text{ o'clock}`},
	{`\begin{pmatrix}1&2\\3&4\end{pmatrix}^{-1}`, `\det\begin{pmatrix}x\end{pmatrix}`}, {`e^{i\pi x}\sin2x`, `0.\dot{3}`}, {`|x-1|<3`, `]1,2[`}, {`8:05\text{ pm}`, `22^\circ30'`},
}

// FuzzCompare: whatever the texts, no panic, no long run, the same verdict in
// both directions, and a text that can be read equals itself.
func FuzzCompare(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)+len(b) > 2000 {
			t.Skip("long texts are tried by TestHostileTextsEnd")
		}
		for _, profile := range []Profile{Sound, Compat} {
			o := Options{Profile: profile}
			ab, ba := CompareAnswer(a, b, o), CompareAnswer(b, a, o)
			if (ab.Outcome == Equal) != (ba.Outcome == Equal) && finding.Answer(a, false, 0, false) == strings.TrimSpace(a) && finding.Answer(b, false, 0, false) == strings.TrimSpace(b) && profile == Sound {
				t.Fatalf("%q, %q: %+v, and the other way round %+v", a, b, ab, ba)
			}
			for _, v := range []Verdict{ab, ba, Compare(a, b, o)} {
				if v.Method == MethodFault {
					t.Fatalf("%q, %q: %+v", a, b, v)
				}
			}
			self := CompareAnswer(a, a, o)
			if strings.TrimSpace(a) != "" && self.GoldRead != "" && self.Outcome == Different && finding.Answer(a, profile == Compat, 0, false) == strings.TrimSpace(a) {
				t.Fatalf("%q differs from itself: %+v", a, self)
			}
		}
	})
}

// FuzzExtract: the answer is never longer than the text, but for the joining of
// several boxes.
func FuzzExtract(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s[0] + " " + s[1])
	}
	f.Add("The answer is $5$. I hope it is correct.")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Extract(text); len(got) > 2*len(text)+16 {
			t.Fatalf("%q grew to %q", text, got)
		}
	})
}

func TestHostileTextsEnd(t *testing.T) {
	equalsFive := map[string]bool{"nested braces": true, "nested brackets": true, "signs": true, "boxes": true, "degrees": true}
	for name, text := range hostileTexts() {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			for _, gold := range []string{"5", "3-y"} {
				for _, v := range []Verdict{Compare(gold, text, Options{}), CompareAnswer(text, gold, Options{Profile: Compat})} {
					if v.Method == MethodFault {
						t.Errorf("%+v", v)
					}
					if v.Outcome == Equal && (gold != "5" || !equalsFive[name]) {
						t.Errorf("taken for %s: %+v", expr.ClipText(gold, 30), v)
					}
					if len(v.GoldRead)+len(v.PredRead)+len(v.Reason) > 4*expr.MaxRead {
						t.Errorf("a verdict of %d bytes", len(v.GoldRead)+len(v.PredRead)+len(v.Reason))
					}
				}
			}
			t.Logf("4 comparisons took %v", time.Since(start))
		})
	}
}

// hostileTexts are texts that are long, deep or large to make a grader hang.
func hostileTexts() map[string]string {
	many := strings.Repeat
	return map[string]string{
		"open braces":       many("{", 100_000),
		"nested braces":     many("{", 100_000) + "5" + many("}", 100_000),
		"nested brackets":   many("(", 10_000) + "5" + many(")", 10_000),
		"nested pairs":      many("(1,", 3_000) + "5" + many(")", 3_000),
		"signs":             many("-", 100_000) + "5",
		"roots":             many(`\sqrt{`, 3_000) + "2" + many("}", 3_000),
		"sines":             many(`\sin(`, 600) + "1" + many(")", 600),
		"fractions":         many(`\frac{1}{`, 900) + "2" + many("}", 900),
		"towers":            many("9^{", 900) + "9" + many("}", 900),
		"digits":            many("7", 1_000_000),
		"decimals":          "0." + many("7", 1_000_000),
		"factorials":        "9" + many("!", 5_000),
		"a long sum":        many("1+", 20_000) + "1",
		"a long product":    many(`x\cdot `, 20_000) + "1",
		"boxes":             many(`\boxed{5} `, 100_000),
		"boxes that open":   many(`\boxed{`, 100_000),
		"bars":              many("|", 10_000),
		"letters":           many(`\alpha`, 100_000),
		"a big power":       `(x+y+z)^{1000000}`,
		"a big factorial":   `1000000!`,
		"a big binomial":    `\binom{10^9}{5\cdot10^8}`,
		"a long harmonic":   `\sum_{k=1}^{1000000000}\frac1k`,
		"a big sum":         `\sum_{k=1}^{2000}k^{2000}`,
		"nested sums":       many(`\sum_{k=1}^{2000}`, 20) + "k",
		"matrices":          many(`\begin{pmatrix}`, 500) + "1" + many(`\end{pmatrix}`, 500),
		"a long list":       many("1,2,", 10_000) + "3",
		"unequal list":      many("x+1,", 300) + "3",
		"plus or minus":     many(`1\pm `, 300) + "2",
		"dollars":           many("$", 100_001),
		"anchors":           many("the answer is ", 20_000),
		"mixed up":          many(`\left(\frac{`, 2_000),
		"subscripts":        many("x_{", 5_000) + "1" + many("}", 5_000),
		"primes":            "x" + many("'", 50_000),
		"many subscripts":   "x" + many("_1", 20_000),
		"degrees":           "5" + many("°", 20_000),
		"many factorials":   "9" + many("!", 50_000),
		"ratios":            many("1:", 25_000) + "2",
		"many signs pm":     many(`1\pm`, 15_000) + "2",
		"unions":            many(`(1,2)\cup`, 5_000) + "(3,4)",
		"named values":      many("x=1,y=2,", 5_000) + "z=3",
		"inequalities":      many("x\\ne 1,", 5_000) + "x<3",
		"a chain":           many("1=", 25_000) + "1",
		"a tower of powers": many("x^", 50_000) + "2",
		"many mods":         many(`7\bmod`, 15_000) + "2",
		"square brackets":   many("[1,", 1_000) + many("]", 1_000),
		"matrix powers":     `\begin{pmatrix}` + many(many("x+1&", 5)+`x\\`, 6) + `\end{pmatrix}^{64}`,
		"symbolic matrix":   `\begin{pmatrix}a&b\\c&d\end{pmatrix}^{50}`,
		"a determinant":     `\det\begin{pmatrix}` + many(many("x^2+1&", 4)+`x\\`, 5) + `\end{pmatrix}`,
		"derivatives":       many(`\frac{d}{dx}`, 300) + "x^{x^x}",
		"fourth ones":       many(`\frac{d^4}{dx^4}`, 20) + `\sin(x^2e^x)`,
		"integrals":         many(`\int_0^1 `, 6) + "e^{xyz}" + many("dx", 6),
		"a symbolic one":    `\int_0^1 (x+y)^{20}(x-y)^{20} dx`,
		"series":            many(`\sum_{k=1}^{\infty}`, 6) + "k",
		"limits":            many(`\lim_{x\to0}`, 6) + "x",
		"a wild integral":   `\int_0^1 \frac{1}{\sin(1/x)}dx`,
		"many roots":        many(`\sqrt{1000000000000037}+`, 300) + `\sqrt{1000000000000091}`,
		"percent of nested": many("(", 300) + "5" + many(")%", 300),
	}
}
