package mathverify

import (
	"testing"
)

func TestNumbersInWords(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`14`, "=", `fourteen`}, {`14`, "=", `\text{Fourteen}`}, {`46`, "=", `forty-six`}, {`46`, "=", `\text{forty six}`}, {`300`, "=", `three hundred`}, {`305`, "=", `\text{three hundred and five}`},
		{`1234`, "=", `one thousand two hundred thirty-four`}, {`2000000`, "=", `two million`}, {`2500000`, "=", `2.5 million`}, {`7000`, "=", `seven thousand`}, {`7`, "!", `seven thousand`}, {`120000`, "=", `one hundred twenty thousand`},
		{`\frac23`, "=", `two thirds`}, {`\frac23`, "=", `\text{two-thirds}`}, {`\frac34`, "=", `three quarters`}, {`\frac14`, "=", `\text{a quarter}`}, {`\frac12`, "=", `\text{a half}`}, {`\frac12`, "=", `half`},
		{`2.5`, "=", `two and a half`}, {`2.5`, "=", `2\text{ and a half}`}, {`2.75`, "=", `two and three quarters`}, {`3.14`, "=", `three point one four`}, {`24`, "=", `two dozen`}, {`24`, "=", `2\text{ dozen}`}, {`40`, "=", `two score`},
		{`21`, "!", `twenty`}, {`21`, "!", `\text{twenty-two}`}, {`0`, "=", `zero`}, {`-4`, "=", `negative four`}, {`-4`, "=", `\text{minus four}`}, {`5`, "=", `\text{five apples}`}, {`1.5`, "=", `one and a half`},
		{`1`, "?", `no one`}, {`3`, "?", `third`}, {`\frac14`, "=", `one in four`}, {`0.3`, "=", `3\text{ in }10`}, {`4, 5`, "=", `\text{either }4\text{ or }5`}, {`4`, "!", `\text{both }4\text{ and }5`}, {`0.3`, "=", `three tenths`}, {`0.07`, "=", `7\text{ hundredths}`}, {`5`, "!", `five or six`},
	})
}

func TestWordsThatAreArithmetic(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`9`, "!", `half of 9`}, {`4.5`, "=", `half of 9`}, {`18`, "=", `twice 9`}, {`27`, "=", `\text{three times }9`}, {`81`, "=", `\text{the square of }9`}, {`3`, "=", `\text{the square root of }9`}, {`\frac19`, "=", `the reciprocal of 9`},
		{`12`, "=", `9\text{ plus }3`}, {`6`, "=", `9 minus 3`}, {`3`, "=", `9 divided by 3`}, {`12`, "=", `3\text{ more than }9`}, {`6`, "=", `3 less than 9`}, {`-9`, "=", `9\text{ below zero}`}, {`9`, "!", `9 degrees below zero`},
		{`9`, "!", `9 squared`}, {`9`, "!", `9\text{ cubed}`}, {`9`, "!", `9 factorial`}, {`362880`, "=", `9 factorial`}, {`9`, "!", `9\text{ to the power of }2`}, {`2`, "=", `10\%\text{ of }20`}, {`9`, "!", `9 percent of 50`}, {`0.75`, "=", `3 out of 4`},
		{`9`, "!", `the opposite of 9`}, {`\ln 9`, "=", `\text{the natural log of }9`}, {`9`, "!", `ten times 9`}, {`9`, "!", `9 hundred`}, {`900`, "=", `9 hundred`},
	})
}

func TestWordsThatChangeAnAnswer(t *testing.T) {
	for _, said := range []string{
		`at least 9`, `at most 9`, `more than 9`, `\text{less than }9`, `over 9`, `under 9`, `\text{above }9`, `below 9`, `no more than 9`, `up to 9`, `9 or more`, `9\text{ or less}`, `9\text{ or fewer}`, `9 and above`,
		`not 9`, `\text{not }9`, `is not 9`, `\text{anything but }9`, `anything except 9`, `all but 9`, `never 9`, `9\text{ is wrong}`, `9 is incorrect`, `9\text{ is false}`, `9 is not correct`, `\text{cannot be }9`, `9, no, ten`,
		`\text{a multiple of }9`, `\text{a factor of }9`, `divides 9`, `\text{divisible by }9`, `\text{the complement of }9`, `\text{a power of }9`, `\text{the digits of }9`, `\text{the sum of }9`, `congruent to 9`,
		`between 8 and 9`, `\text{from 1 to }9`, `8 to 9`, `9 through 12`, `9\text{ or ten}`, `either 9 or 10`, `9 percent more`, `9\text{ more}`, `9 fewer`, `9 increments`, `9\text{ doubled}`, `9 halved`, `9 inverted`, `9\text{ negative}`, `9 times itself`,
		`9 maximum`, `\text{by }9`, `\text{out of }9`, `\text{in }9`, `9\text{ short}`, `\text{since }9`, `\text{increased to }9`, `\text{times }9`, `square 9`, `9\text{ at the minimum}`, `(C) and 9`, `it could be 9`, `\text{maybe }9`, `\text{possibly }9`, `I doubt 9`, `almost 9`, `\text{nearly }9`, `\text{close to }9`, `anyone but 9`, `9\text{ short of ten}`, `9 too many`, `9\text{ off}`, `nine times 9`, `9\text{ tenths}`, `9 fifths`, `9 halves`,
		`不是9`, `不等于9`, `大于9`, `小于9`, `至少9`, `至多9`, `不超过9`, `9以上`, `9以下`, `负9`, `9的倍数`, `9的一半`, `9或10`, `除了9`, `9是错误的`, `不止9`,
	} {
		for _, pair := range [][2]string{{`9`, said}, {said, `9`}} {
			if v := CompareAnswer(pair[0], pair[1], Options{}); v.Outcome == Equal {
				t.Errorf("%q was taken for %q: %s (%s); read %q and %q", pair[1], pair[0], v.Method, v.Reason, v.GoldRead, v.PredRead)
			}
		}
		if v := CompareAnswer(said, said, Options{}); v.Outcome != Equal {
			t.Errorf("%q against itself: %+v", said, v)
		}
	}
}

func TestWordsThatSayNothing(t *testing.T) {
	for _, said := range []string{
		`about 9`, `\text{approximately }9`, `exactly 9`, `\text{the answer is }9`, `The final answer is 9`, `\text{Answer: }9`, `\text{Total: }9`, `\text{so }9`, `therefore, 9`, `\text{we get }9`, `it is 9`, `\text{There are }9`, `n is 9`, `equals 9`, `\text{a total of }9`,
		`the area is 9`, `\text{the length of the side is }9`, `the maximum value is 9`, `\text{Perimeter: }9`, `9\text{ apples}`, `9 students`, `9\text{ red marbles}`, `9 more students`, `9\text{ bags of flour}`, `9\text{ boys and girls}`, `9\text{ ways to choose them}`, `9\text{ years old}`,
		`9 people`, `9 square units`, `9\text{ units}`, `9\text{ different ways}`, `9 ordered pairs`, `9\text{ children}`, `9 in total`, `9\text{ left}`, `9\text{ remaining}`, `9 hours`, `9\text{ miles per hour}`, `9\text{ cubic inches}`, `9\text{ sq. ft}`, `9 km/h`, `9\text{ dollars per hour}`, `\$9`, `9\text{ dollars}`,
		`9 m`, `9\text{ real solutions}`, `9 positive integers`, `9\text{ times}`, `9°`, `9 \text{ (approximately)}`, `9.`, `\mathbf{9.}`, `9\phantom{0}`, `9\blacksquare`, `9 \text{ minutes}`, `9个`, `答案是9`, `共9人`, `约9`, `9厘米`, `9平方米`, `九`, `9 (\text{or nine})`,
	} {
		for _, pair := range [][2]string{{`9`, said}, {said, `9`}} {
			if v := CompareAnswer(pair[0], pair[1], Options{}); v.Outcome != Equal {
				t.Errorf("%q against %q: %s by %s (%s); read %q and %q", pair[1], pair[0], v.Outcome, v.Method, v.Reason, v.GoldRead, v.PredRead)
			}
		}
		if v := CompareAnswer(`8`, said, Options{}); v.Outcome == Equal {
			t.Errorf("%q was taken for 8: %+v", said, v)
		}
	}
}

func TestWordsOnBothSides(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`\text{May 3}`, "=", `May 3rd`}, {`\text{May 3}`, "=", `3 May`}, {`\text{May 3}`, "?", `\text{June 3}`}, {`\text{Tuesday the 5th}`, "?", `\text{Sunday the 5th}`}, {`\text{Room 12}`, "?", `\text{Floor 12}`},
		{`\text{a rise of }5\%`, "?", `\text{a fall of }5\%`}, {`30\%\text{ increase}`, "!", `30\%\text{ decrease}`}, {`30\%\text{ increase}`, "=", `\text{an increase of }30\%`}, {`30\%`, "?", `30\%\text{ decrease}`},
		{`\text{maximum } 4`, "!", `\text{minimum } 4`}, {`n\text{ is even}`, "!", `n\text{ is odd}`}, {`12\text{ cats}, 15\text{ dogs}`, "?", `15\text{ cats}, 12\text{ dogs}`}, {`12\text{ cats}, 15\text{ dogs}`, "=", `15\text{ dogs and }12\text{ cats}`}, {`12, 15`, "=", `15\text{ dogs and }12\text{ cats}`},
		{`5\text{ m/s north}`, "!", `5\text{ m/s south}`}, {`\text{converges to }0`, "!", `\text{diverges to }0`}, {`\text{yes}`, "!", `\text{no}`}, {`\text{Yes}`, "=", `\text{Yes, it does.}`}, {`\text{odd}`, "=", `\text{an odd function}`}, {`\text{odd}`, "!", `\text{not odd}`},
		{`\text{no solution}`, "=", `\text{There are no solutions.}`}, {`\text{no solution}`, "!", `\text{one solution}`}, {`\text{Paris}`, "?", `\text{Rome}`}, {`\text{Paris}`, "!", `\text{not Paris}`}, {`x>2`, "=", `x\text{ is greater than }2`}, {`x\ge2`, "=", `x\text{ is at least }2`}, {`x\ge 2`, "=", `\text{at least }2`},
		{`x\ne2`, "=", `\text{all real numbers except }2`}, {`\mathbb{R}`, "=", `\text{all real numbers}`}, {`5\text{ apples}`, "?", `5\text{ oranges}`}, {`5\text{ apples}`, "=", `5\text{ apple}`}, {`\text{the sum is }5`, "?", `\text{the product is }5`},
		{`\text{true for }k>2`, "!", `\text{false for }k>2`}, {`5\text{ to the left}`, "!", `5\text{ to the right}`},
	})
}

func TestUnitsConvert(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`4\text{ m}`, "=", `400\text{ cm}`}, {`4\text{ m}`, "!", `400\text{ mm}`}, {`2\text{ h}`, "=", `120\text{ minutes}`}, {`4\text{ m}^2`, "=", `40000\text{ cm}^2`}, {`36\text{ km/h}`, "=", `10\text{ m/s}`}, {`60\text{ mph}`, "=", `60\text{ miles per hour}`}, {`60\text{ mph}`, "=", `60\text{ mi/h}`},
		{`60\text{ mph}`, "!", `60\text{ km/h}`}, {`4\text{ kg}`, "!", `4\text{ m}`}, {`4\text{ kg}`, "=", `4000\text{ g}`}, {`\$2\text{ million}`, "=", `2000000`}, {`\$2`, "=", `200\text{ cents}`}, {`6\text{ ft }2\text{ in}`, "=", `74\text{ inches}`}, {`\$1.25`, "=", `1\text{ dollar and }25\text{ cents}`}, {`9\text{ sq cm}`, "=", `9\text{ cm}^2`}, {`9\text{ cm}`, "!", `9\text{ cm}^2`}, {`12\text{ cubic feet}`, "=", `12\text{ ft}^3`}, {`2,500.75\text{ m}^2`, "=", `2,500.75m²`},
		{`2500.75`, "=", `2,500.75 m²`}, {`4 m`, "=", `4`}, {`3m`, "!", `3`}, {`3\text{ ft}`, "=", `36\text{ inches}`}, {`30\text{ mi/gal}`, "=", `30\text{ mpg}`}, {`20^\circ\text{C}`, "=", `20\text{ degrees Celsius}`}, {`20^\circ\text{C}`, "!", `20^\circ\text{F}`},
	})
}

func TestPerCentAndBases(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`35\%`, "=", `35`}, {`35\%`, "=", `0.35`}, {`0.25`, "!", `0.25\%`}, {`\frac14`, "!", `\frac14\%`}, {`35`, "!", `0.35`}, {`150\%`, "=", `1.5`},
		{`132_5`, "=", `132_{5}`}, {`132_5`, "=", `132`}, {`132_5`, "?", `42`}, {`132_5`, "!", `43`}, {`132_5`, "!", `132_6`}, {`132_5`, "=", `42_{10}`}, {`132_5`, "=", `132_{\text{five}}`},
	})
}

func TestWhatAnAnswerLeavesOpen(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`\frac{\pi}2+k\pi, k\in\mathbb{Z}`, "=", `\frac{\pi}2+n\pi, n\in\mathbb{Z}`}, {`k\pi, k\in\mathbb{Z}`, "=", `n\pi\text{ where }n\text{ is an integer}`}, {`k\pi, k\in\mathbb{Z}`, "=", `n\pi`}, {`k\pi, k\in\mathbb{Z}`, "?", `2n\pi, n\in\mathbb{Z}`}, {`k\pi, k\in\mathbb{Z}`, "?", `\pi`},
		{`2k\pi, k\in\mathbb{Z}`, "=", `2n\pi\quad(n\in\mathbb{Z})`}, {`2k\pi, k\in\mathbb{Z}`, "=", `2n\pi\text{ (where }n\text{ is an integer)}`}, {`56`, "=", `8C3`}, {`56`, "=", `C_8^3`}, {`57`, "?", `8C3`}, {`\sin x+C`, "=", `\sin x+K`}, {`\sin x+C`, "!", `\sin x`}, {`\sin x+C`, "!", `\cos x+K`}, {`x+c`, "!", `x+d`},
		{`56`, "=", `C(8,3)`}, {`336`, "=", `P(8,3)`}, {`55`, "?", `C(8,3)`}, {`(8,3)`, "=", `P(8,3)`}, {`56`, "=", `^8C_3`}, {`56`, "=", `_{8}C_{3}`}, {`56`, "=", `{}^{8}C_{3}`}, {`720`, "=", `\frac{d^6}{dx^6}x^6`},
		{`|t-1|`, "=", `\begin{cases}t-1&t\ge1\\1-t&t<1\end{cases}`}, {`|t-1|`, "!", `\begin{cases}t-1&t\ge1\\t+1&t<1\end{cases}`}, {`\begin{cases}1&x>0\\-1&\text{otherwise}\end{cases}`, "=", `\begin{cases}-1,&\text{if }x\le0,\\1,&\text{if }x>0.\end{cases}`},
		{`\begin{cases}1&x>0\\-1&\text{otherwise}\end{cases}`, "!", `\begin{cases}-1,&\text{if }x<0,\\1,&\text{if }x\ge0.\end{cases}`},
	})
}

func TestListsTuplesAndSets(t *testing.T) {
	checkRows(t, Options{}, []row{
		{`\{\{4\},\{5\}\}`, "!", `\{4,5\}`}, {`\{\{4\},\{5\}\}`, "=", `\{\{5\},\{4\}\}`}, {`4,5`, "?", `(4,5)`}, {`x=4, y=5`, "=", `(4,5)`}, {`(4,\infty)`, "!", `(4,\infty]`}, {`20,060`, "!", `(20, 060)`}, {`x^{k+2}`, "=", `xᵏ⁺²`}, {`7:00`, "=", `7{:}00`},
	})
	for _, r := range []struct{ gold, want, pred string }{
		{"$4$ and $5$ and $6$", "=", `\boxed{4,5,6}`}, {"$4$, $5$, $6$, or $7$", "=", `\boxed{4,5,6,7}`}, {"$4$ or $5$ or $6$", "!", `\boxed{5,6}`}, {"$x=4$, $y=5$ and $z=6$", "=", `\boxed{(4,5,6)}`}, {"$x<4$ or $x>5$", "=", `\boxed{(-\infty,4)\cup(5,\infty)}`},
		{`\(4\) and \(5\)`, "=", `\boxed{5, 4}`},
	} {
		if v := Compare(r.gold, r.pred, Options{}); (v.Outcome == Equal) != (r.want == "=") {
			t.Errorf("%q against %q: %+v", r.gold, r.pred, v)
		}
	}
}

// TestDenialsOfAnyAnswer denies and bounds answers of every kind: none is then equal.
func TestDenialsOfAnyAnswer(t *testing.T) {
	for _, answer := range []string{
		`9`, `\frac{9}{4}`, `9\sqrt2`, `x=9`, `(4,9)`, `[4,9)`, `4,9`, `x=4\text{ or }x=9`, `\{4,9\}`, `4<x<9`, `x\ge4\text{ and }x\le9`, `x<4\text{ or }x>9`, `x\ne9`, `0<x<9, x\ne4`, `y=4x+9`, `x^2+9`,
		`9\text{ cm}`, `9\%`, `9^\circ`, `4:9`, `9\text{ apples}`, `\text{the area is }9`, `\text{about }9`, `2k\pi, k\in\mathbb{Z}`, `\begin{pmatrix}4\\9\end{pmatrix}`, `\text{(B)}`, `B, D`, `\text{Paris}`, `\pm9`, `9_{16}`,
	} {
		for _, changed := range []string{
			`\text{not }` + answer, `\text{anything but }` + answer, answer + `\text{ is wrong}`, answer + `\text{ is not it}`, `不是` + answer, `\text{at least }` + answer, answer + `\text{ or more}`, `\text{less than }` + answer, `\text{maybe }` + answer, answer + `\text{ or seventeen}`,
		} {
			for _, pair := range [][2]string{{answer, changed}, {changed, answer}} {
				if v := CompareAnswer(pair[0], pair[1], Options{}); v.Outcome == Equal {
					t.Errorf("%q was taken for %q: %s (%s); read %q and %q", pair[1], pair[0], v.Method, v.Reason, v.GoldRead, v.PredRead)
				}
			}
		}
		if v := CompareAnswer(answer, answer, Options{}); v.Outcome != Equal {
			t.Errorf("%q against itself: %+v", answer, v)
		}
	}
}
