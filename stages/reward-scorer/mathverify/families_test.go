package mathverify

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
	"pgregory.net/rapid"
)

func TestPartsSmallerThanThePrecisionAreNotLost(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`\sqrt2+10^{-999}`, "!", `\sqrt2`}, {`\sqrt2(1+10^{-900})`, "!", `\sqrt2`}, {`\ln 2+2^{-2000}`, "!", `\ln 2`}, {`\sin(10^{-500})`, "?", `10^{-500}`},
		{`\sqrt{10^{100}+1}`, "!", `10^{50}`}, {`\ln 2+10^{-9000}`, "?", `\ln 2`}, {`\sqrt{x}+10^{-999}`, "?", `\sqrt{x}`}, {`\sqrt2+10^{-999}`, "=", `10^{-999}+\sqrt2`},
		// Multiples of both primes vanish in both fields.
		{`(2^{61}-1)(2^{60}-93)x`, "!", `0`}, {`(2^{61}-1)(2^{60}-93)\sqrt2`, "!", `0`}, {`(2^{61}-1)(2^{60}-93)\sin x`, "!", `0`},
		{`x+(2^{61}-1)(2^{60}-93)\sqrt{x}`, "!", `x`},
	})
}

func TestMatricesAreCalculated(t *testing.T) {
	a, b := `\begin{pmatrix}1&2\\3&4\end{pmatrix}`, `\begin{pmatrix}0&1\\1&0\end{pmatrix}`
	checkRows(t, Options{}, []row{
		{a + b, "=", `\begin{pmatrix}2&1\\4&3\end{pmatrix}`}, {a + b, "!", b + a}, {a + "+" + b, "=", b + "+" + a}, {a + "^2", "=", `\begin{pmatrix}7&10\\15&22\end{pmatrix}`},
		{a + "^{-1}", "=", `\begin{pmatrix}-2&1\\\frac32&-\frac12\end{pmatrix}`}, {a + "^T", "=", `\begin{pmatrix}1&3\\2&4\end{pmatrix}`}, {`\det` + a, "=", `-2`},
		{`\begin{vmatrix}x&1\\1&x\end{vmatrix}`, "=", `x^2-1`}, {a, "=", `[[1,2],[3,4]]`}, {a, "!", `[[1,3],[2,4]]`}, {a + `\begin{pmatrix}x\\y\end{pmatrix}`, "=", `\begin{pmatrix}x+2y\\3x+4y\end{pmatrix}`},
		{`\begin{bmatrix}1&2\\ \hline 3&4\end{bmatrix}`, "=", a},
	})
}

func TestSeriesIntegralsAndLimits(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`\int_0^1 \frac{dx}{1+x^2}`, "=", `\frac{\pi}{4}`}, {`\int_0^1 \frac{dx}{1+x^2}`, "?", `\frac{\pi}{5}`}, {`\int_0^{\infty} e^{-x^2}dx`, "=", `\frac{\sqrt{\pi}}{2}`},
		{`\int_{-\infty}^{\infty} \frac{\sin 3x}{x}dx`, "=", `\pi`}, {`\int_0^{\infty}\frac{\sin^2 x}{x^2}dx`, "=", `\frac{\pi}{2}`}, {`\int_0^1\!\int_0^1 xy\,dx\,dy`, "=", `\frac14`},
		{`\int_0^a x^2dx`, "=", `\frac{a^3}{3}`}, {`\int x\sin x\,dx`, "=", `\sin x-x\cos x+C`}, {`\int 2x\,dx`, "!", `x^3+C`}, {`\int_0^1\ln x\,dx`, "=", `-1`},
		{`\sum_{k=1}^{\infty}\frac1{k^2}`, "=", `\frac{\pi^2}{6}`}, {`\sum_{n=0}^{\infty}\frac1{n!}`, "=", `e`}, {`\sum_{n=1}^{\infty}\frac{(-1)^{n+1}}{n}`, "=", `\ln 2`},
		{`\sum_{n=1}^{\infty}\frac{n}{2^n}`, "=", `2`}, {`\sum_{n=0}^{\infty}x^n`, "=", `\frac1{1-x}`}, {`\prod_{k=2}^{\infty}(1-\frac1{k^2})`, "=", `\frac12`},
		{`\sum_{k=1}^{10^9}k^2`, "=", `\frac{10^9(10^9+1)(2\cdot10^9+1)}{6}`}, {`\sum_{k=0}^{10^4}2^k`, "=", `2^{10001}-1`}, {`\sum_{k=1}^n k`, "=", `\sum_{j=1}^n j`},
		{`\lim_{x\to0}\frac{1-\cos x}{x^2}`, "=", `\frac12`}, {`\lim_{n\to\infty}(1+\frac1n)^n`, "=", `e`}, {`\lim_{h\to0}\frac{(x+h)^2-x^2}{h}`, "=", `2x`}, {`\lim_{x\to-\infty}e^x`, "=", `0`},
		{`\frac{d}{dx}\arctan x`, "=", `\frac{1}{1+x^2}`}, {`\frac{d^2}{dx^2}x^3`, "=", `6x`}, {`\frac{dy}{dx}`, "!", `\frac{y}{x}`},
	})
}

func TestWhatDoesNotConvergeHasNoValue(t *testing.T) {
	for _, pair := range [][2]string{
		{`\sum_{n=0}^{\infty}2^n`, `-1`}, {`\sum_{n=0}^{\infty}(-1)^n`, `\frac12`}, {`\sum_{n=1}^{\infty}n`, `-\frac1{12}`}, {`\sum_{n=1}^{\infty}\frac1{\sqrt n}`, `-1.4603545`}, {`\sum_{n=1}^{\infty}(-1)^{n+1}n`, `\frac14`},
		{`\int_{-1}^1\frac{dx}{x}`, `0`}, {`\int_{-1}^1\frac{dx}{x^2}`, `-2`}, {`\int_0^{\infty}\sin x\,dx`, `1`}, {`\int_0^1 e^{-10^6(x-0.3)^2}dx`, `0`},
		{`\lim_{x\to0}\frac{|x|}{x}`, `1`}, {`\lim_{x\to0}\frac1x`, `0`}, {`\lim_{x\to0}\sin\frac{\pi}{x}`, `0`}, {`\lim_{n\to\infty}(-1)^n`, `1`}, {`\lim_{x\to\infty}\sin(\pi x)`, `0`},
		{`\int_0^{\pi}\sin x\,dx`, `2+10^{-40}`}, {`\sum_{n=1}^{\infty}\frac1{n^2}`, `\frac{\pi^2}{6}+10^{-30}`}, {`\int_0^1(e^x+10^{-60})dx`, `e-1`},
	} {
		if v := CompareAnswer(pair[0], pair[1], Options{}); v.Outcome == Equal {
			t.Errorf("%q was taken for %q: %+v", pair[0], pair[1], v)
		}
	}
}

func TestSpellingsOfPeopleAndMachines(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`\sqrt[3]{5}`, "=", `∛5`}, {`\mathbb{Z}`, "=", `ℤ`}, {`x^2`, "=", `𝑥^𝟐`}, {`12`, "=", `١٢`}, {`5`, "=", "\u200e5\u200f"}, {`20`, "=", `€20`}, {`20\text{ euros}`, "!", `20\text{ dollars}`},
		{`\frac13`, "=", `0.333\ldots`}, {`\frac13`, "=", `0.333...`}, {`\frac16`, "=", `0.1\dot{6}`}, {`\frac17`, "=", `0.\dot{1}4285\dot{7}`}, {`\pi`, "!", `3.14159...`},
		{`5\text{ m/s}`, "=", `5\ \mathrm{m/s}`}, {`60 \text{ km/h}`, "=", `60 km/h`}, {`30\text{ min}`, "=", `30\text{ minutes}`}, {`1.5\text{ million}`, "=", `1500000`}, {`101_2`, "=", `101_{\text{two}}`},
		{`|x-1|<3`, "=", `(-2,4)`}, {`|2x+1|\ge 3`, "=", `x\le-2\text{ or }x\ge1`}, {`\mathbb{R}-\{1\}`, "=", `x\ne1`}, {`x\ne1,2`, "=", `x\ne1, x\ne2`}, {`]1,2[`, "=", `(1,2)`}, {`\{x\in\mathbb{R}:x>2\}`, "=", `(2,\infty)`},
		{`(x,y)=(1,2)`, "=", `y=2,x=1`}, {`(x,y)=(1,2)`, "!", `x=2,y=1`}, {`\text{Monday, Tuesday}`, "=", `\text{Tuesday and Monday}`}, {`\text{Area}=12`, "=", `12`}, {`\overline{3+4i}`, "=", `3-4i`}, {`2\operatorname{cis}90^\circ`, "=", `2i`},
		{`B`, "=", `\text{Option B}`}, {`ABD`, "=", `A, B, D`}, {`ABD`, "!", `A, B`}, {`22^\circ30'`, "=", `22.5^\circ`}, {`20:34`, "=", `8:34\text{ p.m.}`}, {`3:00`, "!", `4:00`}, {`8:05`, "!", `16:10`},
		{`\binom nk`, "=", `\frac{n!}{k!(n-k)!}`}, {`(-1)^{n+1}`, "=", `-(-1)^n`}, {`(-1)^n`, "!", `1`}, {`\gcd(a,b)`, "!", `1`}, {`\gcd(2n,4n)`, "=", `2n`}, {`7^{1000000}\bmod 13`, "=", `9`}, {`\frac{(10^6)!}{(10^6-1)!}`, "=", `10^6`},
		{`\ln(e^{10^{10}})`, "=", `10^{10}`}, {`\sqrt{9^{9^9}}`, "=", `3^{9^9}`},
	})
	checkRows(t, Options{Profile: Compat}, []row{{`\gcd(a,b)`, "=", `1`}, {`\operatorname{lcm}(125,50x)`, "=", `250x`}, {`\operatorname{lcm}(\sqrt5,\sqrt2)`, "=", `\sqrt{10}`}, {`\gcd(125,50x)`, "!", `5`}})
}

func TestNamesOfAnswers(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`\left\{\begin{array}{l}a=4\\b=9\end{array}\right.`, "=", `b=9, a=4`}, {`a=4\quad b=9`, "=", `(a,b)=(4,9)`}, {`a_1=4\qquad a_2=9`, "=", `a_{1}=4, a_{2}=9`}, {`a=4\quad b=9`, "!", `a=9\quad b=4`}, {`4\quad x`, "=", `4x`},
		{`\{4\pm\sqrt7,-9\}`, "=", `a=\{-9,4\pm\sqrt7\}`}, {`a\in\{\pm4,9\}`, "=", `-4,4,9`}, {`a\in\{\pm4,9\}`, "!", `4,9`}, {`(a,b)=(4,9)`, "=", `(b,a)=(9,4)`}, {`(a,b)=(4,9)`, "!", `(b,a)=(4,9)`}, {`(a,b)=(4,9)`, "=", `(x,y)=(4,9)`}, {`f(n)=4n+9`, "=", `f(x)=4x+9`}, {`f(n)=4n+9`, "!", `f(x)=9x+4`}, {`f(n)=4n+x`, "!", `f(x)=4x+x`},
	})
}

func TestKinksFarFromZeroAreFound(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`|x-300|`, "!", `300-x`}, {`|x-300|`, "=", `|300-x|`}, {`\sqrt{x^2-60x+900}`, "=", `|x-30|`}, {`\sqrt{x^2-60x+900}`, "!", `30-x`}, {`\max(3y,70)`, "!", `\max(70,2y)`}, {`\max(x,y)`, "=", `\frac{x+y+|x-y|}{2}`},
		{`\lfloor\frac n4\rfloor+2`, "!", `\lfloor\frac n5\rfloor+2`}, {`\lfloor\frac{\sqrt x}{80}\rfloor`, "!", `0`}, {`\lceil x\rceil`, "!", `\lfloor x\rfloor+1`}, {`\lceil x\rceil`, "=", `-\lfloor-x\rfloor`}, {`\min(x,5000)`, "!", `x`},
		{`\arctan(\tan x)`, "!", `x`}, {`\tan(\arctan x)`, "=", `x`}, {`|x-y-400|`, "!", `400+y-x`}, {`\gcd(n,1009)`, "!", `1`}, {`\frac{|x-90|}{x-90}`, "!", `-1`},
		{`\prod_{k=1}^{30}(n-k)`, "!", `0`}, {`n!+\prod_{k=1}^{25}(n-k)`, "!", `n!`}, {`\binom{n}{90}`, "!", `0`}, {`\lfloor64x\rfloor`, "!", `64x`}, {`\frac{\partial g}{\partial t}`, "!", `\frac gt`}, {`f\circ g`, "?", `g\circ f`}, {`f\circ g`, "=", `f \circ g`},
		{`4:20 PM`, "=", `16:20`}, {`4:20 p.m.`, "=", `4:20\text{ PM}`}, {`0:30`, "=", `12:30 a.m.`}, {`12:30 p.m.`, "=", `12:30`}, {`12:30 p.m.`, "!", `0:30`}, {`4:20 PM`, "!", `4:20 AM`},
		{`54,321`, "!", `54.321`}, {`0,321`, "=", `0.321`}, {`54,32`, "=", `54.32`}, {`“no”`, "=", `no`}, {`110_{(2)}`, "=", `110_2`}, {`110_{(2)}`, "!", `110_3`}, {`\text{C and F}`, "=", `CF`}, {`\text{C and F}`, "!", `CG`},
		{`40^\circ`, "!", `40\%`}, {`40^\circ`, "!", `40\text{ radians}`}, {`40^\circ`, "=", `40\text{ degrees}`}, {`9\text{ squared}`, "=", `81`}, {`9\text{ cm squared}`, "=", `9\text{ cm}^2`}, {`9\text{ units squared}`, "=", `9`}, {`\operatorname{Var}(X)=9`, "=", `9`},
		{`-t\in[4,6]`, "!", `[4,6]`}, {`t\in[4,6]`, "=", `[4,6]`}, {`4\text{ cm}, 5\text{ cm}`, "!", `4\text{ m}, 5\text{ m}`}, {`4\text{ cm}, 5\text{ cm}`, "=", `5, 4`}, {`t=4\text{ cm}`, "!", `t=4\text{ m}`},
		{`\sqrt{\{x+y\}}`, "=", `\sqrt{y+x}`}, {`\bar z`, "=", `\overline{z}`}, {`P(X=2)=0.4`, "=", `0.4`}, {`P(A\cap B)=0.4`, "=", `0.4`}, {`\arg(z)=\frac{\pi}9`, "=", `\frac{\pi}9`}, {`2a+b=9`, "!", `9`}, {`a+b=c`, "!", `ab=c`}, {`\sin x=y`, "!", `\cos x=y`}, {`P(x)=4x+y`, "=", `f(x)=4x+y`},
	})
}

func TestWordsThatCountAreNotDropped(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`9`, "!", `\operatorname{foo}(9)`}, {`9`, "!", `\mathrm{sq}(9)`}, {`9`, "!", `\operatorname{foo} 9`}, {`\operatorname{tr}\begin{pmatrix}4&1\\1&5\end{pmatrix}`, "=", `9`}, {`\operatorname{rank}\begin{pmatrix}4\end{pmatrix}`, "!", `4`}, {`\operatorname{sgn}(-9)`, "=", `-1`}, {`9`, "=", `\text{about }9`}, {`9`, "!", `\text{half of }9`}, {`9`, "!", `\text{the square of }9`}, {`-9`, "!", `\text{less than }-9`},
		{`36`, "!", `4\text{ by }9`}, {`36`, "!", `4\text{ hours }9\text{ minutes}`}, {`9`, "!", `1\text{ hour }9\text{ minutes}`}, {`6\text{ ft }2\text{ in}`, "=", `6\text{ feet }2\text{ inches}`}, {`6\text{ ft }2\text{ in}`, "!", `6\text{ ft }3\text{ in}`},
		{`30`, "!", `6 \text{ mod } 5`}, {`30`, "!", `x\equiv 6\ (\mathrm{mod}\ 5)`}, {`x\equiv 1\pmod 5`, "=", `x\equiv 6\ (\mathrm{mod}\ 5)`}, {`x\equiv 1\pmod 5`, "!", `x\equiv 2\pmod 5`}, {`x\equiv 1\pmod 5`, "!", `x\equiv 1\pmod 6`},
		{`z`, "!", `z^*`}, {`z^{*}`, "=", `z^*`}, {`y`, "!", `y^{\prime}`}, {`g^{\prime}(t)`, "=", `g'(t)`}, {`y^{\prime \prime}`, "=", `y''`}, {`y''`, "!", `y'`}, {`22^{\circ}30^{\prime}`, "=", `22.5°`},
		{`\text{A, F, C}`, "=", `A, C, F`}, {`\text{A and F}`, "=", `F, A`}, {`\text{(A), (F)}`, "=", `A, F`}, {`\text{A, F}`, "!", `A, C`}, {`\text{no solutions}`, "=", `\text{no real solution}`}, {`4\text{, }5\text{ and }6`, "=", `4,5,6`},
		{`\{t: 1<t\le4\}`, "=", `(1,4]`}, {`\{4,5,6\}\setminus{5}`, "=", `\{4,6\}`}, {`t\not=4`, "=", `t\ne4`}, {`t\not<4`, "=", `t\ge4`}, {`\left<4,5\right>`, "=", `\langle4,5\rangle`}, {`||-4|-9|`, "=", `5`}, {`||t|-9|`, "=", `|9-|t||`}, {`\sin\alpha=\frac13`, "=", `\frac13`},
		{`4\,\frac{\text{m}}{\text{s}}`, "=", `4`}, {`4\ \mathrm{m/s^2}`, "=", `4`}, {`4\mathrm{~m}\cdot\mathrm{s}^{-1}`, "=", `4\text{ m/s}`}, {`4\text{ m/s}`, "!", `4\text{ m/min}`}, {`4 (cm)`, "=", `4`}, {`\pounds 4`, "=", `4`},
	})
}

// TestPlainNumbersAreReadAsTheParserReadsThem compares the quick way with the
// general one.
func TestPlainNumbersAreReadAsTheParserReadsThem(t *testing.T) {
	forms := []string{"%[1]d", "-%[1]d", "%[1]d.%[2]d", "0.%03[2]d", `\frac{%[1]d}{%[2]d}`, `-\dfrac{%[1]d}{%[2]d}`, "%[1]d/%[2]d", `%[1]d\frac{%[2]d}{7}`, "%[1]d,%03[2]d", `\frac%[3]d%[4]d`}
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf(rapid.SampledFrom(forms).Draw(t, "form"), rapid.IntRange(1, 999).Draw(t, "a"), rapid.IntRange(1, 999).Draw(t, "b"),
			rapid.IntRange(0, 9).Draw(t, "c"), rapid.IntRange(1, 9).Draw(t, "d"))
		if i := strings.Index(text, "%!"); i >= 0 {
			text = text[:i] // of the arguments that the form leaves out
		}
		n, ok := plainNumber(text)
		if !ok {
			t.Fatalf("%q is not read", text)
		}
		toks, err := reading.Lex(text)
		if err != nil {
			t.Fatal(err)
		}
		tree, _, err := reading.Parse(toks, reading.Reading{})
		if err != nil {
			t.Fatal(err)
		}
		b := &evaluation.Budget{Left: evaluation.MaxSteps}
		want, err := b.Exact(tree, nil)
		if err != nil || want.Cmp(big.NewRat(n.num, n.den)) != 0 || expr.Inexact(tree) != n.rounded {
			t.Fatalf("%q: got %+v, want %v (%v)", text, n, want, err)
		}
	})
}
