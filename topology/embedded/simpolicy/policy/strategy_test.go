package policy

import (
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	weng     = "Weng earns $12 an hour. She sat for 50 minutes. How much?"
	goodCall = "<tool_call>\n<function=code_interpreter>\n<parameter=code>\nstep1 = 12 / 60\nstep2 = step1 * 50\nprint(step2)\n</parameter>\n</function>\n</tool_call>"
	nameErr  = "Traceback (most recent call last):\n  File \"<string>\", line 3, in <module>\nNameError: name 'total' is not defined"
)

// Each strategy, chosen for sure, says what it should. Skill (slips, sums in the
// head) stays random: the seeds are those that show it.
func TestStrategies(t *testing.T) {
	w := newWorld(t)
	code := map[Site]string{FirstPlan: "code", FirstCode: "right", CallForm: "one_call"}
	with := func(s Site, choice string) map[Site]string {
		m := map[Site]string{s: choice}
		for k, v := range code {
			if k != s {
				m[k] = v
			}
		}
		return m
	}
	for _, c := range []struct {
		name    string
		choices map[Site]string
		history []string
		text    bool
		ask     string
		want    []string
		wantNot string
	}{
		{name: "right code", choices: code, want: []string{goodCall}},
		{name: "name error", choices: with(FirstCode, "name_error"), want: []string{"\nprint(total)\n</parameter>"}},
		{name: "syntax error", choices: with(FirstCode, "syntax_error"), want: []string{"\nprint(step2\n</parameter>"}},
		{name: "wrong value", choices: with(FirstCode, "wrong_value"), want: []string{"\nprint(step2 + 1)\n"}},
		{name: "silent", choices: with(FirstCode, "silent"), want: []string{"\nstep2\n</parameter>"}},
		{name: "two calls", choices: with(CallForm, "two_calls"), want: []string{"</tool_call>\n<tool_call>"}},
		{name: "unclosed call", choices: with(CallForm, "unclosed"), want: []string{"</function>\n"}, wantNot: "</tool_call>"},
		{name: "text after", choices: with(CallForm, "text_after"), want: []string{"</tool_call>\nThat gives"}},
		{name: "in the head", choices: map[Site]string{FirstPlan: "head", HeadForm: "box"}, want: []string{"\\boxed{"}, wantNot: "<tool_call>"},
		{name: "in the head, no box", choices: map[Site]string{FirstPlan: "head", HeadForm: "no_box"}, want: []string{"about"}, wantNot: "\\boxed"},
		{name: "reads the observation", choices: map[Site]string{AfterResult: "box"}, history: []string{goodCall, "10.0\n"}, want: []string{"\\boxed{10}"}},
		{name: "reads it even when it is wrong", choices: map[Site]string{AfterResult: "box"}, history: []string{goodCall, "so\n11.5"}, want: []string{"\\boxed{11.5}"}},
		{name: "rounds what floats do", choices: map[Site]string{AfterResult: "box"}, history: []string{goodCall, "9.999999999999998"}, want: []string{"\\boxed{10}"}},
		{name: "forgets the box", choices: map[Site]string{AfterResult: "no_box"}, history: []string{goodCall, "10.0"}, want: []string{"The answer is 10."}, wantNot: "\\boxed"},
		{name: "checks again with the same program", choices: map[Site]string{AfterResult: "check", CallForm: "one_call"}, history: []string{goodCall, "10.0"}, want: []string{goodCall}},
		{name: "fixes", choices: map[Site]string{AfterError: "fix", FixedCode: "right", CallForm: "one_call"}, history: []string{"x", nameErr}, want: []string{"failed with a NameError", goodCall}},
		{name: "gives up", choices: map[Site]string{AfterError: "give_up"}, history: []string{"x", nameErr}, want: []string{"I stop here."}, wantNot: "\\boxed"},
		{name: "repeats itself", choices: map[Site]string{AfterError: "same_again", CallForm: "one_call"}, history: []string{strings.ReplaceAll(goodCall, "step2)", "total)"), nameErr}, want: []string{"print(total)"}},
		{name: "second error has its own site", choices: map[Site]string{AfterError: "fix", AfterErrors: "give_up"}, history: []string{"x", nameErr, "x", nameErr}, want: []string{"I stop here."}},
		{name: "a time-out is an error", choices: map[Site]string{AfterError: "give_up"}, history: []string{"x", "Execution timed out after 30 s"}, want: []string{"I stop here."}},
		{name: "nothing printed", choices: map[Site]string{AfterSilence: "fix", FixedCode: "right", CallForm: "one_call"}, history: []string{"x", ""}, want: []string{"Nothing was printed", goodCall}},
		{name: "text only", text: true, choices: map[Site]string{TextForm: "box"}, want: []string{"\nstep1 = 12 / 60\n", "\\boxed{"}, wantNot: "<tool_call>"},
		{name: "text only, question within more words", text: true, ask: weng + "\n\nPlease reason and box the answer.", choices: map[Site]string{TextForm: "box"}, want: []string{"step1 = 12 / 60"}},
		{name: "unknown, guessed", ask: "What is 17 times 4?", choices: map[Site]string{UnknownPlan: "guess"}, want: []string{"I guess it is \\boxed{"}},
		{name: "unknown, admitted", ask: "What is 17 times 4?", choices: map[Site]string{UnknownPlan: "admit"}, want: []string{"I do not know"}, wantNot: "\\boxed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ask := c.ask
			if ask == "" {
				ask = weng
			}
			got, g := w.say(t, certain(c.choices), w.prompt(t, !c.text, ask, c.history...), 3)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("it says\n%s\nwant %q in it", got, want)
				}
			}
			if c.wantNot != "" && strings.Contains(got, c.wantNot) {
				t.Errorf("it says\n%s\nwant no %q in it", got, c.wantNot)
			}
			if last := g.Tokens[len(g.Tokens)-1]; g.Finish != Stopped || last.ID != w.pol.EOS() {
				t.Errorf("it ends with token %d, finish %v; want EOS", last.ID, g.Finish)
			}
		})
	}
}

// Skill is not for training: the share of right sums is the table's, whatever the
// parameters.
func TestHeadIsRightAsOftenAsItsSkill(t *testing.T) {
	w := newWorld(t)
	p := certain(map[Site]string{FirstPlan: "head", HeadForm: "box"})
	prompt := w.prompt(t, true, weng)
	right := 0
	const n = 4000
	for seed := range uint64(n) {
		if got, _ := w.say(t, p, prompt, seed); strings.HasSuffix(got, "\\boxed{10}") {
			right++
		}
	}
	if got, want := float64(right)/n, skill(2); got < want-0.03 || got > want+0.03 {
		t.Errorf("right in %.3f of cases, want about %.2f", got, want)
	}
}

func TestNoOptionBeginsAnother(t *testing.T) {
	w := newWorld(t)
	for _, s := range w.lib.All() {
		for name, options := range map[string][]option{
			"openings": openings, "endings": endings(s.Last), "sums": sums(s, "}"), "guesses": guesses(numbersIn(s.Question), "}"),
		} {
			if err := checkGrammar(options); err != nil {
				t.Errorf("%s of %q: %v", name, s.Question, err)
			}
		}
	}
}

func TestEveryChoiceHasItsOption(t *testing.T) {
	w := newWorld(t)
	s := w.lib.All()[0]
	for site, options := range map[Site][]option{Opening: openings, TextOpening: openings, FirstCode: endings(s.Last), FixedCode: endings(s.Last)} {
		if len(options) != len(site.Choices()) {
			t.Errorf("%s: %d options, %d choices", site.Name(), len(options), len(site.Choices()))
		}
	}
}

// An observation is hostile text: whatever it holds, the policy answers, and copies
// nothing of it but a number.
func TestHostileObservations(t *testing.T) {
	w := newWorld(t)
	for _, obs := range []string{
		"1e308", "-1e308", "1e-300", "nan", "inf", "0x1p-2", "1_000", "1e999999999", strings.Repeat("9", 5000),
		"\x1b[31mred", "\xff\xfe", "</tool_response>", "\\boxed{7}", strings.Repeat("\n", 1000), "1/3", "--5", "٣",
	} {
		got, _ := w.say(t, Initial(), w.prompt(t, true, weng, goodCall, obs), 1)
		if strings.Contains(got, "\x1b") || !utf8.ValidString(got) || strings.Contains(got, "boxed{7}") {
			t.Errorf("observation %q: it says %q", obs, got)
		}
	}
}
