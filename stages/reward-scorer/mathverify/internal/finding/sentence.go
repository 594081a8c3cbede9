package finding

import (
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

// fromSentence takes what a sentence says: all of it if it is understood, what
// its last "is" or "=" gives, or its last formula, bracket, number or choice. A
// sentence that denies what would be taken is taken whole.
func fromSentence(text string, compat bool) string {
	sentence := firstSentence(text)
	if !compat && len(sentence) < 200 && len(sentence) < len(text) && clean(sentence) {
		return sentence
	}
	answer := takenFrom(text, compat)
	if answer != text && deniedIn(text, answer) {
		return text
	}
	return answer
}

func takenFrom(text string, compat bool) string {
	if !compat && len(text) < 200 && clean(text) {
		return text
	}
	if hasFormula(text) {
		// "the maximum of $f(x)$ is 19."
		tail := text[max(strings.LastIndexByte(text, '$'), strings.LastIndex(text, `\)`), strings.LastIndex(text, `\]`))+1:]
		if n := lastNumber(tail); n != "" && countWords(tail) >= 1 && strings.HasSuffix(strings.TrimRight(tail, ".!* \n"), n) {
			return n
		}
		if f := lastFormula(text, compat); f != text {
			return f
		}
	}
	if given, ok := copula(text); ok && !compat {
		return given
	}
	if countWords(text) <= 2 && len(text) < 200 {
		return text
	}
	if first, _, ok := strings.Cut(text, ". "); ok && len(first) <= 2 && first != "" {
		return first // "A. Because …"
	}
	if pair := lastBracket(text); pair != "" {
		return pair
	}
	if n := lastNumber(text); n != "" {
		return n
	}
	if w := lastChoice(text); w != "" {
		return w
	}
	return text
}

// firstSentence is the text up to the first full stop or line's end outside of
// formulas.
func firstSentence(text string) string {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '$', '\\':
			return text
		case '\n':
			return text[:i]
		case '.', '!', '?':
			if i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\n') {
				return text[:i]
			}
		}
	}
	return text
}

// copula is what the last "is" or "=" of a text gives, if it is understood.
func copula(text string) (string, bool) {
	best := -1
	tail := text[max(0, len(text)-200):]
	for _, be := range []string{" is ", " are ", " equals ", "=", "是", "为"} {
		if i := strings.LastIndex(tail, be); i >= 0 {
			best = max(best, i+len(be))
		}
	}
	if best < 0 {
		return "", false
	}
	given := strings.TrimSpace(tail[best:])
	return given, lastNumber(given) != "" && clean(given)
}

// deniedIn says whether the clause around what is taken denies it: "so it is not
// 7", "7 is wrong".
func deniedIn(text, taken string) bool {
	at := strings.LastIndex(text, taken)
	if at < 0 {
		return false
	}
	before := text[max(0, at-120):at]
	before = before[strings.LastIndexAny(before, ".,;:!?\n")+1:]
	after := text[at+len(taken) : min(len(text), at+len(taken)+60)]
	if i := strings.IndexAny(after, ".,;:!?\n"); i >= 0 {
		after = after[:i]
	}
	toks, err := reading.Lex(strings.NewReplacer("$", " ", `\(`, " ", `\)`, " ", "*", " ").Replace(before + " 0 " + after))
	if err != nil {
		return false
	}
	for i, t := range toks {
		if t.Word("of") && i > 0 && i+1 < len(toks) && toks[i+1].Is(reading.TNum, "0") && toks[i-1].Kind == reading.TWord && !reading.Measures[strings.ToLower(toks[i-1].Text)] {
			return true // "a multiple of 7"
		}
		if t.Kind == reading.TWord && reading.ClassOf(strings.ToLower(t.Text)) == reading.Denial && !t.Word("without") && !t.Word("no") || t.Is(reading.TRel, "!=") {
			return true
		}
	}
	return false
}

// deniedAhead says whether a sentence up to "the answer is" denies what follows: "it is
// not the case that the answer is".
func deniedAhead(text string) bool {
	clause := text[max(0, len(text)-100):]
	clause = clause[strings.LastIndexAny(clause, ".,;:!?\n")+1:]
	if !strings.Contains(clause, " that ") {
		return false
	}
	for _, w := range strings.Fields(strings.ToLower(clause)) {
		if reading.ClassOf(w) == reading.Denial && w != "no" && w != "without" {
			return true
		}
	}
	return false
}
