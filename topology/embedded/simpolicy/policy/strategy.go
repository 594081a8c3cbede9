package policy

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/worked"
)

// turn writes one assistant turn. It is the grammar: everything that the policy can
// say stands in this file.
func (w *walk) turn(s *situation) {
	if s.thinking {
		w.say("\n</think>\n\n")
	}
	last := s.last()
	switch {
	case s.solution == nil:
		w.unknown(s)
	case last == nil && s.tool:
		w.firstTurn(s)
	case last == nil:
		w.textOnly(s)
	case last.kind == observedNumber:
		w.afterResult(s, last)
	case last.kind == observedSilence:
		w.afterSilence(s)
	default:
		w.afterError(s, last)
	}
}

var openings = []option{
	{text: "Let me think about this step by step."},
	{text: "We need to find the answer."},
	{text: "First I look at what is given."},
}

func (w *walk) firstTurn(s *situation) {
	w.choose(Opening, openings)
	switch w.choose(FirstPlan, []option{
		{text: " I can do this in my head."},
		{text: " I will write a short program."},
	}) {
	case 0:
		w.inTheHead(s, HeadForm)
	case 1:
		w.call(s, FirstCode)
	}
}

func (w *walk) textOnly(s *situation) {
	w.choose(TextOpening, openings)
	for i, line := range s.solution.Lines {
		if i+1 < len(s.solution.Lines) {
			w.say("\n" + line)
		}
	}
	w.say("\n")
	w.inTheHead(s, TextForm)
}

// unknown is for questions without a worked solution: a guess, or the truth.
func (w *walk) unknown(s *situation) {
	switch w.choose(UnknownPlan, []option{
		{text: "I guess it is \\boxed{"},
		{text: "I do not know how to solve this.", end: true},
	}) {
	case 0:
		w.pick(guesses(numbersIn(s.question), "}"))
	}
}

// inTheHead answers without a program. Whether the sum comes out right is skill, not
// choice: its odds are fixed and fall with the number of steps.
func (w *walk) inTheHead(s *situation, form Site) {
	switch w.choose(form, []option{
		{text: " So the answer is \\boxed{"},
		{text: " So it is about "},
	}) {
	case 0:
		w.pick(sums(s.solution, "}"))
	case 1:
		w.pick(sums(s.solution, "."))
	}
}

const (
	callHead = "\n<tool_call>\n<function=code_interpreter>\n<parameter=code>\n"
	callTail = "</parameter>\n</function>\n"
)

// call writes a program. How it ends decides whether it works.
func (w *walk) call(s *situation, quality Site) {
	slip := firstSlip
	if quality == FixedCode {
		slip = fixedSlip
	}
	n := len(s.solution.Lines) - 1
	w.say(callHead)
	for _, line := range s.solution.Lines[:n] {
		w.say(line + "\n")
	}
	// A slip of the pen in the name that the last line assigns: NameError.
	last := s.solution.Lines[n]
	w.pick([]option{
		{text: last + "\n", weight: 1 - slip},
		{text: "stp" + strings.TrimPrefix(last, "step") + "\n", weight: slip},
	})
	w.choose(quality, endings(s.solution.Last))
	w.closeCall()
}

// Slips are no choice: their odds are fixed, so that even a policy that has learnt
// everything has errors to fix.
const (
	firstSlip = 0.25
	fixedSlip = 0.05
)

// sameCall writes the last program again, mistakes included.
func (w *walk) sameCall(c *pastCall) {
	w.say(callHead + c.program + "\n")
	w.closeCall()
}

// endings are in the order of the sites FirstCode and FixedCode.
func endings(last string) []option {
	return []option{
		{text: "print(" + last + ")\n"},
		{text: "print(total)\n"},
		{text: "print(" + last + "\n"},
		{text: "print(" + last + " + 1)\n"},
		{text: last + "\n"},
	}
}

func (w *walk) closeCall() {
	w.say(callTail)
	w.choose(CallForm, []option{
		{text: "</tool_call>", end: true},
		{text: "</tool_call>" + callHead + "print(0)\n" + callTail + "</tool_call>", end: true},
		{text: "", end: true},
		{text: "</tool_call>\nThat gives the answer.", end: true},
	})
}

func (w *walk) afterResult(s *situation, c *pastCall) {
	switch w.choose(AfterResult, []option{
		{text: "The program prints " + c.number + ".\n\\boxed{" + c.number + "}", end: true},
		{text: "The answer is " + c.number + ".", end: true},
		{text: "That does not look right."},
		{text: "Let me check it again."},
	}) {
	case 2:
		w.inTheHead(s, HeadForm)
	case 3:
		w.sameCall(c)
	}
}

func (w *walk) afterError(s *situation, c *pastCall) {
	site := AfterError
	if s.errors() > 1 {
		site = AfterErrors
	}
	options := []option{
		{text: "The program failed with " + errorName(c.observation) + ". Let me mend it."},
		{text: "I will answer without the program."},
		{text: "I cannot run this, so I stop here.", end: true},
		{text: "Let me run it again."},
	}
	switch w.choose(site, options) {
	case 0:
		w.call(s, FixedCode)
	case 1:
		w.inTheHead(s, HeadForm)
	case 3:
		w.sameCall(c)
	}
}

func (w *walk) afterSilence(s *situation) {
	switch w.choose(AfterSilence, []option{
		{text: "Nothing was printed. I will print the result."},
		{text: "I will answer without the program."},
		{text: "I cannot see a result, so I stop here.", end: true},
	}) {
	case 0:
		w.call(s, FixedCode)
	case 1:
		w.inTheHead(s, HeadForm)
	}
}

// errorNames are the errors that the policy knows by name; an observation is hostile
// text and is never copied out of.
var errorNames = []string{"NameError", "SyntaxError", "ZeroDivisionError", "TypeError", "ValueError"}

func errorName(observation string) string {
	for _, n := range errorNames {
		if strings.Contains(observation, n) {
			return "a " + n
		}
	}
	return "an Error"
}

// skill is the chance of getting a sum of so many steps right in the head.
func skill(steps int) float64 {
	odds := []float64{1: 0.50, 2: 0.28, 3: 0.16, 4: 0.10, 5: 0.06}
	if steps < len(odds) {
		return odds[steps]
	}
	return 0.04
}

// sums are the answers that may come out of the head: the right one, a step too few,
// one more, one less, double, ten more.
func sums(s *worked.Solution, after string) []option {
	right := s.Answer
	p := skill(len(s.Results))
	wrong := map[string]bool{}
	candidates := []string{}
	add := func(n string) {
		if n != right && !wrong[n] {
			wrong[n] = true
			candidates = append(candidates, n)
		}
	}
	if n := len(s.Results); n > 1 {
		add(s.Results[n-2])
	}
	v, ok := new(big.Rat).SetString(right)
	if !ok {
		v = new(big.Rat)
	}
	for _, d := range []int64{1, -1, 10} {
		add(worked.Decimal(new(big.Rat).Add(v, big.NewRat(d, 1))))
	}
	add(worked.Decimal(new(big.Rat).Mul(v, big.NewRat(2, 1))))
	options := []option{{text: right + after, end: true, weight: p}}
	for _, n := range candidates {
		options = append(options, option{text: n + after, end: true, weight: (1 - p) / float64(len(candidates))})
	}
	return options
}

// guesses are all alike.
func guesses(numbers []string, after string) []option {
	options := make([]option, len(numbers))
	for i, n := range numbers {
		options[i] = option{text: n + after, end: true, weight: 1 / float64(len(numbers))}
	}
	return options
}

var digits = regexp.MustCompile(`[0-9]{1,12}`)

// numbersIn are the first numbers of a question, at most six, and two small ones.
func numbersIn(question string) []string {
	var numbers []string
	seen := map[string]bool{}
	for _, n := range append(digits.FindAllString(question, 6), "0", "1") {
		if n = strings.TrimLeft(n, "0"); n == "" {
			n = "0"
		}
		if !seen[n] {
			seen[n] = true
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// checkGrammar refuses options of which one begins another: their choice could not
// be read back.
func checkGrammar(options []option) error {
	for i, a := range options {
		for j, b := range options {
			if i != j && (a.text == b.text || !a.end && strings.HasPrefix(b.text, a.text)) {
				return fmt.Errorf("option %q begins option %q", a.text, b.text)
			}
		}
	}
	return nil
}
