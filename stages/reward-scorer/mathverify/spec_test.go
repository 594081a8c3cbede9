package mathverify

import (
	"strings"
	"testing"
)

// Rows of a specification: = equal, ! different, ? undecided.
type row struct {
	gold, want, pred string
}

func checkRows(t *testing.T, o Options, rows []row) {
	t.Helper()
	outcomes := map[string]Outcome{"=": Equal, "!": Different, "?": Undecided}
	for _, r := range rows {
		for _, side := range []struct{ gold, pred string }{{r.gold, r.pred}, {r.pred, r.gold}} {
			v := CompareAnswer(side.gold, side.pred, o)
			if v.Outcome != outcomes[r.want] {
				t.Errorf("%q against %q: got %s by %s (%s), want %s; read %q and %q", side.gold, side.pred, v.Outcome, v.Method, v.Reason,
					outcomes[r.want], v.GoldRead, v.PredRead)
			}
		}
	}
}

func TestWhereMathVerifyIsWrong(t *testing.T) {
	checkRows(t, Options{}, []row{
		// Tiny values are not zero.
		{`\frac{1}{2004!}`, "!", `\frac{1}{2006!}`},
		{`\frac{\pi}{10^{50}}`, "!", `0`},
		{`3\cdot 10^{-40}`, "!", `4\cdot 10^{-40}`},
		{`0.0000001`, "!", `0`},
		// Letters are variables, not units.
		{`3t`, "!", `3`},
		{`x+5g`, "!", `x+5`},
		{`8m^2n`, "!", `8`},
		{`5h(h+2)`, "=", `5h^2+10h`},
		// A chain counts only if it is true.
		{`42`, "!", `41=42`},
		{`42`, "!", `x=40=42`},
		{`42`, "=", `x=40+2=42`},
		// Adjacent numbers are not added.
		{`3`, "?", `1 2`},
		{`7`, "?", `3 4`},
		// i as a name and as a unit.
		{`5050`, "=", `\sum_{i=1}^{100} i`},
		{`a_i`, "!", `a_j`},
		{`i^2`, "=", `-1`},
		{`x_i^2`, "=", `x_{i}^{2}`},
		{`x_i`, "=", `x_{i}`},
		{`x_i^2`, "!", `x_2^i`},
		// Punctuation behind an answer.
		{`2240`, "=", `2240.`},
		{`2240`, "=", `2240,`},
		{`x+1`, "=", `x+1.`},
		// Unicode.
		{`499`, "=", `４９９`},
		{`\sqrt{5}`, "=", `√5`},
		{`x^2+1`, "=", `x²+1`},
		{`\frac{5}{2}`, "=", `2½`},
		{`(-\infty,2)\cup(3,\infty)`, "=", `(−∞,2)∪(3,∞)`},
		{`x\in[1,2]`, "=", `x∈[1,2]`},
		// Degrees inside trigonometric functions.
		{`\sin 30^\circ`, "=", `\frac12`},
		{`\cos(90^\circ-x)`, "=", `\sin x`},
		{`\sin 30`, "!", `\frac12`},
		// Multiples of inequalities.
		{`kx \le ka`, "=", `2kx \le 2ka`},
		{`kx \le ka`, "!", `kx \ge ka`},
		{`x \ge 12`, "=", `-x \le -12`},
		// More digits than a Python integer prints.
		{strings.Repeat("7", 5000), "=", strings.Repeat("7", 4999) + "6+1"},
		{strings.Repeat("7", 5000), "!", strings.Repeat("7", 4999) + "8"},
	})
}

func TestNumbers(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`1/2`, "=", `0.5`}, {`\frac12`, "=", `.5`}, {`\frac{3}{4}`, "=", `\dfrac34`}, {`-\frac{3}{4}`, "=", `\frac{-3}{4}`},
		{`\frac{3}{4}`, "!", `\frac{4}{3}`}, {`1,234`, "=", `1234`}, {`1{,}234{,}567`, "=", `1234567`}, {`1 000 000`, "=", `10^6`},
		{`1,234.5`, "=", `1234.5`}, {`32,\! 349`, "=", `32349`}, {`32, 349`, "!", `32349`}, {`0,111`, "=", `0.111`},
		{`1e9999999`, "?", `9999999e`}, {`1e9999999`, "?", `10^{9999999}`}, {`1e9999999999`, "=", `1e9999999999`}, {`1e9999999`, "?", `1e99999999`},
		{`1e3`, "=", `1000`}, {`2.5\times10^{-3}`, "=", `0.0025`}, {`3\frac12`, "=", `\frac72`}, {`-3\frac12`, "=", `-3.5`},
		{`3 1/2`, "=", `3.5`}, {`0.1\overline{6}`, "=", `\frac16`}, {`0.\overline{3}`, "=", `1/3`}, {`2^{10}`, "=", `1024`}, {`2**10`, "=", `1024`},
		{`2^{53}`, "=", `2^53`}, {`\$12.50`, "=", `12.5`}, {`-0`, "=", `0`}, {`007`, "=", `7`}, {`+7`, "=", `7`},
		{`1/3`, "=", `0.3333333`}, {`1/3`, "!", `0.3333`}, {`0.0000012`, "!", `0.0000014`}, {`312`, "=", `312.0000001`}, {`2.232`, "!", `2.23`}, {`0.1+0.2`, "=", `0.3`},
		{`28\%`, "=", `0.28`}, {`28\%`, "=", `28`}, {`28\%`, "!", `2.8`}, {`28\%`, "=", `28 percent`},
		{`10!`, "=", `3628800`}, {`\binom{5}{2}`, "=", `10`}, {`\lfloor 7/2\rfloor`, "=", `3`}, {`\lceil -7/2\rceil`, "=", `-3`},
		{`17 \bmod 5`, "=", `2`}, {`\gcd(12,18)`, "=", `6`}, {`\operatorname{lcm}(4,6)`, "=", `12`}, {`\max(3,5)`, "=", `5`},
		{`1101_2`, "=", `1101_{2}`}, {`1101_2`, "!", `1011_2`}, {`2^{2^{2^2}}`, "=", `65536`}, {`\frac{10!}{8!}`, "=", `90`},
		{`9^{9^{9^9}}`, "=", `9^{9^{9^9}}`}, {`2^{1000000}`, "=", `4^{500000}`}, {`9^{9^9}`, "!", `9^{9^9}+1`}, {`10^{10}!`, "!", `7`},
		{`e^{e^{e^{79}}}`, "!", `e^{e^{e^{80}}}`},
	})
}

func TestIrrationalsAndComplexNumbers(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`2\sqrt3`, "=", `\sqrt{12}`}, {`\frac{1}{\sqrt2}`, "=", `\frac{\sqrt2}{2}`}, {`\sqrt[3]{16}`, "=", `2\sqrt[3]{2}`}, {`\sqrt{3+2\sqrt2}`, "=", `1+\sqrt2`},
		{`\sqrt{2}+\sqrt3`, "!", `\sqrt5`}, {`\sqrt[3]{-8}`, "=", `-2`}, {`\pi`, "!", `3.14`}, {`\pi`, "!", `\frac{355}{113}`}, {`2\pi/4`, "=", `\frac{\pi}{2}`},
		{`\ln 8`, "=", `3\ln 2`}, {`\log_2 8`, "=", `3`}, {`\log_4 5`, "=", `\frac{\ln5}{\ln4}`}, {`\log 100`, "=", `2`}, {`e^{\ln 2}`, "=", `2`},
		{`\sin\frac{\pi}{6}`, "=", `0.5`}, {`\tan\frac{\pi}{4}`, "=", `1`}, {`\arctan 1`, "=", `\pi/4`}, {`\sin^{-1}\frac12`, "=", `\frac{\pi}{6}`},
		{`e^{i\pi}`, "=", `-1`}, {`(1+i)^2`, "=", `2i`}, {`|3-4i|`, "=", `5`}, {`1+2i`, "=", `i(2-i)`}, {`3+4i`, "!", `3-4i`}, {`\sqrt{-4}`, "=", `2i`},
		{`\cos 20^\circ\cos40^\circ\cos80^\circ`, "=", `\frac18`}, {`\sqrt{10^{60}+1}`, "!", `10^{30}`}, {`\ln(640320^3+744)`, "!", `\pi\sqrt{163}`},
		{`\infty`, "=", `+\infty`}, {`\infty`, "!", `-\infty`}, {`0.8660254037844386`, "=", `\frac{\sqrt3}{2}`},
	})
}

func TestAlgebra(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`(x+1)^2`, "=", `x^2+2x+1`}, {`(x+1)^2`, "!", `x^2+x+1`}, {`(x-y)(x+y)`, "=", `x^2-y^2`}, {`\frac{x^2-1}{x-1}`, "=", `x+1`},
		{`\frac{1}{x}+\frac1y`, "=", `\frac{x+y}{xy}`}, {`(x+y+z)^{20}`, "=", `(z+y+x)^{20}`}, {`(x^2+2x+1)^{1000}`, "=", `(x+1)^{2000}`},
		{`(x+1)^{100}`, "!", `(x+1)^{100}+1`}, {`\sqrt{x^2}`, "=", `|x|`}, {`\sqrt{x^2}`, "!", `x`}, {`x^{1/2}`, "=", `\sqrt x`},
		{`\sin^2x+\cos^2x`, "=", `1`}, {`\sin 2x`, "=", `2\sin x\cos x`}, {`\sin 2x`, "!", `2\sin x`}, {`\ln x+\ln y`, "=", `\ln(xy)`},
		{`2^{n+1}-2^n`, "=", `2^n`}, {`(n+1)!`, "=", `(n+1)n!`}, {`\binom n2`, "=", `\frac{n(n-1)}2`}, {`n!`, "=", `\Gamma(n+1)`},
		{`\sum_{k=1}^{n} k`, "=", `\frac{n(n+1)}{2}`}, {`\prod_{k=1}^{5} k`, "=", `120`}, {`\int_0^1 x^2\,dx`, "=", `\frac13`},
		{`\frac{d}{dx}x^3`, "=", `3x^2`}, {`\int_0^1 e^{-x^2}\,dx`, "=", `0.746824133`}, {`\int_0^{\pi}\sin x\,dx`, "=", `2.000000`}, {`\int_0^1 e^{-x^2}\,dx`, "?", `0.7468`}, {`\sec x`, "=", `\frac{1}{\cos x}`}, {`e^{x+y}`, "=", `e^xe^y`}, {`x^x`, "=", `e^{x\ln x}`},
		{`f(2x)+1`, "=", `1+f(x+x)`}, {`f(x)`, "!", `f(y)`}, {`\theta`, "!", `\phi`}, {`\vec v`, "!", `\vec u`}, {`a_{10}`, "!", `a_1 0`}, {`\frac{x}{2}`, "=", `0.5x`},
	})
}

func TestCollections(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`1, 2, 3`, "=", `3, 1, 2`}, {`1, 2, 3`, "!", `1, 2`}, {`\{1,2\}`, "=", `\{2,1,2\}`}, {`1, 2`, "=", `\{2, 1\}`}, {`{1,2}`, "=", `\{1,2\}`},
		{`(1,2)`, "!", `(2,1)`}, {`(1,2)`, "=", `\left(1, \frac{4}{2}\right)`}, {`(1,2,3)`, "!", `(1,2)`}, {`1 \text{ and } 2`, "=", `2, 1`}, {`1, 2, \text{or } 3`, "=", `1,2,3`},
		{`x=1, y=2`, "=", `y=2, x=1`}, {`x=1,y=2`, "!", `x=2,y=1`}, {`x=1,y=2`, "=", `1,2`}, {`x=1,y=2`, "!", `2,1`}, {`x=1,x=2`, "=", `2,1`}, {`x=1 \text{ or } x=2`, "=", `1, 2`}, {`x=\pm 2`, "=", `2, -2`}, {`\pm 2`, "!", `2`},
		{`1\pm\sqrt2`, "=", `1+\sqrt2, 1-\sqrt2`}, {`(x,y)=(1,2)`, "=", `(1,2)`}, {`p=5,q=2;p=7,q=2`, "=", `(5,2),(7,2)`}, {`(1,2),(3,4)`, "=", `(3,4),(1,2)`},
		{`\emptyset`, "=", `\{\}`}, {`163`, "!", `163 \text{ or } 175`}, {`2:3`, "=", `4:6`}, {`2:3`, "!", `3:2`}, {`10:30`, "!", `10:31`}, {`1:2`, "=", `\frac12`},
		{`\begin{pmatrix}1&2\\3&4\end{pmatrix}`, "=", `\begin{bmatrix}1&2\\3&\frac82\end{bmatrix}`}, {`\begin{pmatrix}1\\2\end{pmatrix}`, "!", `\begin{pmatrix}1&2\end{pmatrix}`},
		{`\begin{pmatrix}2\\4\end{pmatrix}`, "=", `2\begin{pmatrix}1\\2\end{pmatrix}`}, {`\{1,2\}\cup\{3\}`, "=", `\{1,2,3\}`},
	})
}

func TestIntervalsAndRelations(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`(1,2]`, "!", `[1,2]`}, {`(1,2]`, "=", `1<x\le 2`}, {`1<x<2`, "=", `(1,2)`}, {`1<x<2`, "=", `2>x>1`}, {`x>3`, "=", `(3,\infty)`}, {`x>3`, "=", `3<x`}, {`x>3`, "!", `x\ge3`},
		{`x>3`, "!", `y>3`}, {`2x>6`, "=", `x>3`}, {`x-2\le 1`, "=", `x\le3`}, {`-x<1`, "=", `x>-1`}, {`x<1\text{ or }x>2`, "=", `(-\infty,1)\cup(2,\infty)`},
		{`[1,2]\cup[2,3]`, "=", `[1,3]`}, {`(1,2)\cup(3,4)`, "=", `(3,4)\cup(1,2)`}, {`\mathbb{R}\setminus\{1\}`, "=", `(-\infty,1)\cup(1,\infty)`}, {`x\ne1`, "=", `(-\infty,1)\cup(1,\infty)`},
		{`\mathbb R`, "=", `(-\infty,\infty)`}, {`\mathbb{R}^+`, "=", `(0,\infty)`}, {`\{x|x<1\}`, "=", `(-\infty,1)`}, {`1\le|z|\le2`, "=", `[-2,-1]\cup[1,2]`}, {`x\in[0,\sqrt8]`, "=", `[0,2\sqrt2]`}, {`250`, "!", `[249,251]`},
		{`y=2x+1`, "=", `2x-y+1=0`}, {`y=2x+1`, "=", `2x+1`}, {`y=2x+1`, "=", `f(x)=2x+1`}, {`y=2x+1`, "!", `y=2x`}, {`x=3`, "=", `3`}, {`x=3`, "!", `y=3`}, {`x^2+y^2=4`, "=", `2x^2+2y^2=8`},
		{`x^2+y^2=4`, "!", `x^2+y^2=2`}, {`a^2+b=0`, "!", `0`}, {`x+y=5`, "=", `5`}, {`x+y=1`, "=", `2x+2y=2`}, {`x+y=z`, "=", `z=x+y`}, {`x\approx 11`, "=", `11`}, {`f(2)<f(1)<f(4)`, "=", `f(4)>f(1)>f(2)`}, {`f(2)<f(1)`, "!", `f(1)<f(2)`},
	})
}

func TestWordsUnitsAndRemains(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`\text{(B)}`, "=", `B`}, {`\textbf{(A)}`, "=", `(A)`}, {`A`, "!", `B`}, {`\text{Evelyn}`, "=", `evelyn`}, {`\text{even}`, "!", `odd`}, {`\text{No}`, "!", `\text{Yes}`},
		{`\text{an ellipse}`, "=", `ellipse`}, {`5\text{ cm}`, "=", `5`}, {`5\text{ cm}`, "=", `5 \mathrm{~cm}`}, {`5\text{ cm}`, "!", `5\text{ m}`}, {`5 cm`, "=", `5`}, {`12 \text{ apples}`, "=", `12 apples`},
		{`5\text{ cm}^2`, "=", `5\text{ square cm}`}, {`90^\circ`, "=", `90`}, {`90^\circ`, "=", `90 \text{ degrees}`}, {`90^\circ`, "!", `180^\circ`}, {`\boxed{5}`, "=", `5`},
		{`\color{blue}{5}`, "=", `5`}, {`\left(1,2\right)`, "=", `(1,2)`}, {`{5}`, "=", `5`}, {`5{}`, "=", `5`}, {`\frac{1}{2}`, "=", `\\frac{1}{2}`}, {`\text{two}`, "=", `2`},
		{`5`, "!", ``}, {`5`, "?", `)(`}, {`\text{no solution}`, "=", `\emptyset`}, {`x=5`, "=", `x = 5`}, {`15小时`, "=", `15`},
	})
}

func TestResponses(t *testing.T) {
	for _, tc := range []struct{ gold, want, pred string }{
		{"669", "=", `We have $x=717$. Hence the answer is $\boxed{669}$. Note that 717 is not it.`},
		{"42", "!", `First \boxed{42}. No, \boxed{43}.`},
		{"42", "=", `First \boxed{43}. No, wait: \boxed{42}.`},
		{"441, 482", "=", `The solutions are \boxed{441} and \boxed{482}.`},
		{"589", "!", `\boxed{591}. By the way, 589.`},
		{"589", "!", `\boxed{} 589`},
		{"720", "=", "The final answer is 720."},
		{"19", "=", "Final Answer: the maximum number of points in the domain of $f(x)$ is 19."},
		{"5", "!", "I cannot solve this."},
		{"1", "=", "The answer is **1**."},
		{"4", "=", "<think>3 or 4</think> The answer is $\\sqrt{16}$."},
		{"13", "=", "所以，现在一共有3 + 10 = 13只鸟。"},
		{"84", "=", "<answer>84</answer>"},
		{`\sqrt{70}`, "=", `\boxed{\sqrt{70}`},
		{"C", "=", "I think the correct answer is C"},
		{"100%", "=", "Therefore, with $x > 2$ the error increases by 100%."},
		{"B", "=", "We find \\boxed{\\langle A\\rangle \\gg \\Delta B_0}.\n\n**Answer: B**"},
		{"C", "!", "We find \\boxed{\\langle A\\rangle \\gg \\Delta C}.\n\n**Answer: B**"},
		{"24", "=", "The answer is 24. (Check: 12 + 12 = 24, as 3 + 9 = 12.)"},
		{"24", "=", "#### 24\n\nQuestion: the next one has 5 apples"},
		{"24", "=", "Ann earns \\$24 per day. Answer: \\$24"},
		{"24", "!", "The answer is not 24."},
		{"24", "!", "The answer is anything but 24."},
		{"24", "!", "So 24 is wrong."},
		{"24", "!", "It is not the case that the answer is $24$."},
		{"24", "!", "The answer is definitely not equal to $24$."},
		{"24", "!", "The answer is at least 24."},
		{"24", "=", "Therefore the total number of ways is 24."},
	} {
		v := Compare(tc.gold, tc.pred, Options{})
		if (v.Outcome == Equal) != (tc.want == "=") {
			t.Errorf("%q against %q: got %s (%s), read %q and %q", tc.gold, tc.pred, v.Outcome, v.Reason, v.GoldRead, v.PredRead)
		}
	}
}

func TestSentences(t *testing.T) {
	for _, r := range [][3]string{
		{`-9`, "=", `The product is −9 times the first.`}, {`(4,9)`, "=", `The vertex is (4, 9).`}, {`[4,9)`, "=", `So t lies in [4, 9).`}, {`9\%`, "=", `It grows by 9 percent.`},
		{`18`, "=", `She sells 9 for $2 each, $9 * 2 = $18 a day. He makes $18 in total.`}, {`4100`, "=", "It costs $4,000 + $100 = $4,100.\n#### 4100"}, {`6`, "=", "That is $15 - $9 = $6.\nThus $x=6$."}, {`6`, "!", "That is $15 - $9 = $6.\nThus $x=7$."},
		{`4, 9`, "=", `The roots are $4$ and $9$.`}, {`18`, "=", `Total: 18`}, {`-18`, "=", `I get -18.`}, {`18`, "=", `Hence, 18.`}, {`diverges, 18`, "!", `18`}, {`18`, "!", `not 18`}, {`18`, "!", `half of 18`}, {`18`, "!", `9 or 18`}, {`\sin 18`, "!", `18`}, {`18`, "=", `The correct answer is 18, because 9+9=18.`},
		{`D`, "=", `Option D is correct.`}, {`D`, "!", `Option D is wrong, option B is right.`}, {`It takes 9 hours 4 times.`, "=", `\boxed{x=Ittakes9hours4times.}`}, {`It takes 9 4 times.`, "!", `\boxed{Ittakes94times.}`},
	} {
		for _, profile := range []Profile{Sound, Compat} {
			if v := Compare(r[0], r[2], Options{Profile: profile}); (v.Outcome == Equal) != (r[1] == "=") {
				t.Errorf("%q against %q in %s: %+v", r[0], r[2], profile, v)
			}
		}
	}
}

func TestABoxedSentenceIsNotSearchedForAnAnswer(t *testing.T) {
	for _, boxed := range []string{"it could be 3 or 4 or 5", "the answer is 4. No, the answer is 5", "either 4 or 5", "1, 2, 3, 4, 5", "not 5", "5 = 4"} {
		if v := CompareAnswer("5", boxed, Options{}); v.Outcome == Equal {
			t.Errorf("%q was taken for 5: %+v", boxed, v)
		}
	}
}

func TestCompatFollowsMathVerify(t *testing.T) {
	checkRows(t, Options{Profile: Compat}, []row{
		{`42`, "=", `x=41=42`}, {`28\%`, "!", `28`}, {`5\text{ cm}`, "=", `5\text{ m}`}, {`0.0000012`, "=", `0.0000014`}, {`312`, "!", `312.0000001`}, {`x>3`, "!", `y>3`},
	})
	if v := Compare(`$x \in [-2,7]$`, `$-2 \le x \le 7$`, Options{Profile: Compat}); v.Outcome != Different {
		t.Errorf("a set as reference against an inequality: got %+v", v)
	}
	if v := Compare(`$x \in [-2,7]$`, `$-2 \le x \le 7$`, Options{Profile: Compat, SetAgainstInequality: true}); v.Outcome != Equal {
		t.Errorf("the same, allowed: got %+v", v)
	}
}
