package mathverify_test

import (
	"fmt"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
)

func ExampleCompare() {
	v := mathverify.Compare(`\frac{1}{2}`, `Hence the share is \boxed{0.5}.`, mathverify.Options{})
	fmt.Println(v.Outcome, v.Method)

	v = mathverify.Compare("7", `\boxed{\text{at least } 7}`, mathverify.Options{})
	fmt.Println(v.Outcome)
	// Output:
	// equal rational
	// different
}

func ExampleCompareAnswer() {
	// What is known to be an answer is not searched for one.
	v := mathverify.CompareAnswer("5", "it could be 3 or 4 or 5", mathverify.Options{})
	fmt.Println(v.Outcome)
	// Output: different
}

func ExampleAny() {
	v := mathverify.Any([]string{`x=1`, `x=2`}, "2", mathverify.Options{})
	fmt.Println(v.Outcome)
	// Output: equal
}

func ExampleExtract() {
	fmt.Println(mathverify.Extract(`We get $x = 3$, so the answer is $\boxed{9}$.`))
	// Output: 9
}

func ExampleOptions() {
	strict := mathverify.Options{Strict: true, Decimals: 3, Pred: mathverify.Box}
	fmt.Println(mathverify.Compare(`5\text{ cm}`, `\boxed{5}`, strict).Outcome)
	fmt.Println(mathverify.Compare(`5\text{ cm}`, `\boxed{5}`, mathverify.Options{}).Outcome)
	// Output:
	// undecided
	// equal
}

func ExampleOptions_CheckReference() {
	fmt.Println(mathverify.Options{}.CheckReference(`\frac{1}{`))
	// Output: the reference "\\frac{1}{" cannot be read: not understood: an answer is missing at the end
}
