package boxed

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestReferenceRule(t *testing.T) {
	pad := func(s string, n int) string { return strings.Repeat(s, n) }
	for _, tc := range []struct {
		name, text, answer string
		why                Reason
	}{
		{"plain", `so \boxed{42}`, "42", ""},
		{"nested braces", `\boxed{\frac{1}{2}}`, `\frac{1}{2}`, ""},
		{"white space is kept", `\boxed{ 7 }`, " 7 ", ""},
		{"an empty box is a box", `\boxed{}`, "", ""},
		{"the last of two", `\boxed{1} no, \boxed{2}`, "2", ""},
		{"the inner of two", `\boxed{\boxed{3}}`, "3", ""},
		{"nothing", `the answer is 42`, "", NoBox},
		{"empty text", ``, "", NoBox},
		{"fbox is not a box", `\fbox{3}`, "", NoBox},
		{"a space before the brace", `\boxed {3}`, "", NoBox},
		{"unbalanced", `\boxed{3`, "", Unbalanced},
		{"the last is unbalanced, the one before is not looked at", `\boxed{1} \boxed{{2}`, "", Unbalanced},
		{"an escaped brace counts as a brace", `\boxed{\{1}`, "", Unbalanced},
		{"opens exactly at the window's start", `\boxed{5}` + pad("é", 291), "5", ""},
		{"opens one code point too early", `\boxed{5}` + pad("é", 292), "", NoBox},
		{"code points, not bytes", `\boxed{5}` + pad("😀", 291), "5", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Config{}.Find(tc.text)
			want := Box{Answer: tc.answer, Found: tc.why == "", Reason: tc.why}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestOtherRules(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		rule       Config
		want       Box
	}{
		{"first", `\boxed{1} \boxed{2}`, Config{Choice: First}, Box{Answer: "1", Found: true}},
		{"single of one", `\boxed{1}`, Config{Choice: Single}, Box{Answer: "1", Found: true}},
		{"single of two", `\boxed{1} \boxed{1}`, Config{Choice: Single}, Box{Reason: Several}},
		{"earlier", `\boxed{1} \boxed{2`, Config{Strictness: Earlier}, Box{Answer: "1", Found: true}},
		{"earlier, first chosen", `\boxed{{1 \boxed{2}`, Config{Strictness: Earlier, Choice: First}, Box{Answer: "2", Found: true}},
		{"earlier, none", `\boxed{1 \boxed{2`, Config{Strictness: Earlier}, Box{Reason: Unbalanced}},
		{"open", `\boxed{1} \boxed{2`, Config{Strictness: Open}, Box{Answer: "2", Found: true}},
		{"small window", `\boxed{1}.`, Config{Window: 9}, Box{Reason: NoBox}},
		{"whole text", `\boxed{1}` + strings.Repeat("x", 5000), Config{Window: WholeText}, Box{Answer: "1", Found: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.rule.Find(tc.text); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for field, c := range map[string]Config{
		"window": {Window: -2}, "strictness": {Strictness: "lax"}, "choice": {Choice: "best"},
	} {
		err := c.Validate()
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: got %v, want ErrConfig naming %s", c, err, field)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the zero rule: %v", err)
	}
}

// naive is the rule as one would write it over a slice of code points.
func naive(text string) (string, bool) {
	runes := []rune(text)
	if len(runes) > 300 {
		runes = runes[len(runes)-300:]
	}
	for at := len(runes) - 7; at >= 0; at-- {
		if string(runes[at:at+7]) != `\boxed{` {
			continue
		}
		depth := 0
		for end := at + 6; end < len(runes); end++ {
			switch runes[end] {
			case '{':
				depth++
			case '}':
				depth--
			}
			if depth == 0 {
				return string(runes[at+7 : end]), true
			}
		}
		return "", false
	}
	return "", false
}

func TestAgreesWithTheNaiveRule(t *testing.T) {
	piece := rapid.SampledFrom([]string{`\boxed{`, `\boxed`, `{`, `}`, `\{`, `7`, `é`, `😀`, ` `, strings.Repeat("数", 97), strings.Repeat("x", 141)})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
		answer, found := naive(text)
		if got := (Config{}).Find(text); got.Answer != answer || got.Found != found {
			t.Fatalf("%q: got %+v, want %q %v", text, got, answer, found)
		}
	})
}

func FuzzFind(f *testing.F) {
	f.Add(`\boxed{1} \boxed{2`, 300)
	f.Add("\xff\xfe\\boxed{\xff}", 3)
	f.Fuzz(func(t *testing.T, text string, window int) {
		for _, strictness := range []Strictness{Balanced, Earlier, Open} {
			for _, choice := range []Choice{Last, First, Single} {
				c := Config{Window: window, Strictness: strictness, Choice: choice}
				if c.Validate() != nil {
					continue
				}
				box := c.Find(text)
				if box.Found == (box.Reason != "") {
					t.Fatalf("%q: found and reason disagree: %+v", text, box)
				}
				if utf8.ValidString(text) && !strings.Contains(text, box.Answer) {
					t.Fatalf("%q: the answer %q is not in the text", text, box.Answer)
				}
			}
		}
	})
}

func TestAThoughtThatNeverEndsHasNoAnswerIfAskedFor(t *testing.T) {
	for text, want := range map[string]Box{
		`<think>Maybe \boxed{42}, let me check`:          {Reason: Unfinished},
		`<think>Maybe \boxed{41}</think> \boxed{42}`:     {Answer: "42", Found: true},
		`<think>a</think> \boxed{1} <think>or \boxed{2}`: {Reason: Unfinished},
		`so \boxed{42}`: {Answer: "42", Found: true},
		`thought in the prompt</think> hence \boxed{42}`: {Answer: "42", Found: true},
	} {
		if got := (Config{Thought: ThoughtMustEnd}).Find(text); got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
		if got := (Config{}).Find(text); !got.Found {
			t.Errorf("%q by the default: got %+v, want the box", text, got)
		}
	}
	if err := (Config{Thought: "maybe"}).Validate(); err == nil {
		t.Error("an unknown rule for thoughts was accepted")
	}
}
