package finding

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

var perCent = []string{`\%`, "%", "pct", "percent"}

const maxExtract = 4_000_000

// rules find the answer of a text, from the surest sign to the least. Each
// returns false where its sign is not there.
var rules = []struct {
	target Targets
	find   func(text string, compat bool) (answer string, ok bool)
}{
	{Box, boxedAnswer}, {Tag, taggedAnswer}, {Tag, markedAnswer}, {Said, declaredAnswer}, {Choice, chosenAnswer}, {Said, amountAnswer}, {Said, saidAnswer},
}

// Answer is the answer that a text gives by one of the targets, or "". With mustEnd a
// text whose last thought never ends gives none.
func Answer(text string, compat bool, targets Targets, mustEnd bool) string {
	if len(text) > maxExtract {
		text = text[len(text)-maxExtract:]
	}
	text = strings.TrimSpace(text)
	if mustEnd && strings.LastIndex(text, "<think>") > strings.LastIndex(text, "</think>") {
		return ""
	}
	if inner, ok := onlyBox(text); ok && targets.Has(Box) {
		return inner
	}
	if targets.Has(Whole) && bareAnswer(text) {
		return text
	}
	if i := strings.LastIndex(text, "</think>"); i >= 0 && strings.TrimSpace(text[i+len("</think>"):]) != "" {
		text = strings.TrimSpace(text[i+len("</think>"):]) // what was thought is no answer
	}
	for _, rule := range rules {
		if !targets.Has(rule.target) {
			continue
		}
		if answer, ok := rule.find(text, compat); ok {
			return answer
		}
	}
	switch {
	case targets.Has(Whole) && (targets.Has(Formula) || !hasFormula(text)):
		return lastFormula(text, compat)
	case targets.Has(Whole):
		return text
	case targets.Has(Formula) && hasFormula(text):
		return lastFormula(text, compat)
	}
	return ""
}

// boxedAnswer is what stands in the last box, or what a sentence behind it
// declares: "\boxed{255} … The final answer is $10,455$."
func boxedAnswer(text string, compat bool) (string, bool) {
	answer, end, ok := lastBoxes(text)
	if !ok {
		return "", false
	}
	from := end
	if compat {
		from = 0 // Math-Verify prefers it wherever it stands
	}
	if i := strings.LastIndex(text[from:], "inal answer is"); i > 0 {
		if rest, ok := afterAnchor(text[from+i-1:]); ok && (hasFormula(rest) || lastNumber(rest) != "") {
			return fromSentence(rest, compat), true
		}
	}
	if rest, ok := afterAnchor(text[end:]); ok && !compat {
		if line, _, _ := strings.Cut(rest, "\n"); clean(line) {
			return line, true
		}
	}
	after := strings.TrimLeft(text[end:min(len(text), end+40)], "$ ")
	for _, sign := range perCent {
		if strings.HasPrefix(after, sign) {
			return answer + " percent", true
		}
	}
	return answer, true
}

// taggedAnswer is what stands between <answer> and </answer>.
func taggedAnswer(text string, compat bool) (string, bool) {
	open := strings.LastIndex(text, "<answer>")
	if open < 0 {
		return "", false
	}
	rest, _, _ := strings.Cut(text[open+len("<answer>"):], "</answer>")
	return lastFormula(strings.TrimSpace(rest), compat), true
}

// markedAnswer is the line behind GSM8K's mark.
func markedAnswer(text string, _ bool) (string, bool) {
	i := strings.LastIndex(text, "####")
	if i < 0 {
		return "", false
	}
	rest, _, _ := strings.Cut(strings.TrimSpace(text[i+4:]), "\n")
	rest = strings.TrimSpace(rest)
	return rest, len(rest) < 80 && clean(rest)
}

// declaredAnswer is what "the answer is" declares.
func declaredAnswer(text string, compat bool) (string, bool) {
	text = turnOf(text)
	rest, ok := afterAnchor(text)
	if !ok {
		return "", false
	}
	if deniedAhead(text[:lastAnchor(text)]) {
		return text, true
	}
	if w := leadingChoice(rest); w != "" {
		return w, true
	}
	return fromSentence(rest, compat), true
}

// turnOf cuts off what a model wrote for its next reader.
func turnOf(text string) string {
	if i := strings.Index(text, "<|im_start|>"); i > 0 {
		return strings.TrimSpace(text[:i])
	}
	return text
}

// chosenAnswer is the letter of a multiple choice.
func chosenAnswer(text string, _ bool) (string, bool) {
	text = turnOf(text)
	if w := leadingChoice(text); w != "" {
		return w, true
	}
	w := chosen(text)
	return w, w != ""
}

// amountAnswer is an amount of money with its sign: "2,74 $ a piece".
func amountAnswer(text string, _ bool) (string, bool) {
	text = turnOf(text)
	if strings.Count(text, "$")-strings.Count(text, `\$`) != 1 || !strings.Contains(strings.Trim(text, "$ "), "$") {
		return "", false
	}
	n := lastNumber(text)
	return n, n != ""
}

// saidAnswer is the answer of a text that is prose.
func saidAnswer(text string, compat bool) (string, bool) {
	text = turnOf(text)
	if countWords(text) == 0 && !hasFormula(text) {
		return "", false // it is an answer, not said but written
	}
	if !compat && len(text) < 200 && clean(text) {
		return text, true
	}
	if words := countWords(text); words >= 5 || words >= 1 && hasFormula(text) || words >= 3 && endsSentence(text) {
		return fromSentence(text, compat), true
	}
	return "", false
}

// clean says whether a text reads as an answer in which no word counts that is
// not understood.
func clean(text string) bool {
	toks, err := reading.Lex(text)
	if err != nil || len(toks) > 200 {
		return false
	}
	n, _, err := reading.Parse(toks, reading.Reading{})
	if err != nil || n.Op == expr.OpRel && len(n.Kids) > 2 && slices.ContainsFunc(toks, func(t reading.Token) bool { return t.Kind == reading.TWord }) {
		return false
	}
	return !n.Any(func(k *expr.Node) bool {
		return k.Op == expr.OpWords && (!reading.NameInWords(k.Name) || n == k) || !k.Remark.AllFree()
	})
}

// bareAnswer says whether a short text is surely nothing but a formula, so that
// nothing has to be searched for.
func bareAnswer(text string) bool {
	if len(text) > 80 || len(text) == 0 || text[0] >= 'A' && text[0] <= 'J' {
		return false
	}
	run := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= utf8.RuneSelf, c == '$', c == '<', c == ':', c == '?', c == '#', c == '*':
			return false
		case c == '\\':
			if i+1 < len(text) && (text[i+1] == '(' || text[i+1] == '[' || text[i+1] == 'b' || text[i+1] == 'f' && !strings.HasPrefix(text[i:], `\frac`)) {
				return false
			}
			for i+1 < len(text) && expr.IsLetter(text[i+1]) {
				i++
			}
			run = 0
		case expr.IsLetter(c):
			if run++; run > 1 {
				return false
			}
		default:
			run = 0
		}
	}
	return true
}

// endsSentence says whether a full stop or its like stands at the end of a word.
func endsSentence(text string) bool {
	for i, r := range text {
		switch r {
		case '。':
			return true
		case '.', '?', '!':
			if (i == 0 || text[i-1] != '\\') && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n') {
				return true
			}
		}
	}
	return false
}

var anchors = []string{"final answer is", "final answer:", "answer is", "answer:", "answer：", "答案是", "答案为", "答案：", "答：", "réponse est", "réponse :", "réponse:", "respuesta es", "respuesta:", "antwort ist", "antwort:", "ответ:", "ответ —"}

// lastAnchor returns the offset behind the last anchor, or -1. It looks at each
// place once, from the end, as responses are long.
func lastAnchor(text string) int {
	for end := len(text); end > 3; end-- {
		switch text[end-1] {
		case 's', 'S', 't', 'T', ':', "："[2], "是"[2], "为"[2], "—"[2]: // how anchors end
			for _, a := range anchors {
				if end >= len(a) && strings.EqualFold(text[end-len(a):end], a) {
					return end
				}
			}
		}
	}
	return -1
}

// afterAnchor returns what stands behind the last "the answer is".
func afterAnchor(text string) (string, bool) {
	best := lastAnchor(text)
	if best < 0 {
		return "", false
	}
	rest, _, _ := strings.Cut(strings.TrimLeft(text[best:], " :：*}\n"), `\boxed{`)
	for _, remark := range []string{"I hope it is correct", " because ", "(because ", " since ", "(since "} {
		rest, _, _ = strings.Cut(rest, remark)
	}
	if i := strings.Index(rest, "**"); i >= 0 && strings.Trim(rest[i:], "*. ") == "" {
		rest = rest[:i] // "**1**."
	}
	rest = strings.TrimSpace(rest)
	return rest, rest != ""
}

// lastBracket returns the pair or interval at the end of "The point is (3, 4)."
func lastBracket(text string) string {
	text = strings.TrimRight(text, " .!*\n")
	open := strings.LastIndexAny(text, "([")
	if open < 0 || !strings.HasSuffix(text, ")") && !strings.HasSuffix(text, "]") {
		return ""
	}
	inner := text[open+1 : len(text)-1]
	if !strings.Contains(inner, ",") || strings.ContainsAny(inner, ")]") || lastNumber(inner) == "" || countWords(inner) > 0 {
		return ""
	}
	return text[open:]
}

// choosing are the words before a letter that is a choice.
var choosing = []string{"option", "choice", "choose", "chose", "pick", "select", "answer"}

// chosen returns the letter of "I would choose D" or "réponse: C, non A".
func chosen(text string) string {
	lower := strings.ToLower(text)
	for _, w := range choosing {
		if strings.Contains(lower, w) {
			if only := onlyOption(text); only != "" {
				return only
			}
			return lastChoice(text)
		}
	}
	return ""
}

// onlyOption returns the letter of "Option D is correct" if no other option is
// spoken of.
func onlyOption(text string) string {
	only, fields := "", strings.Fields(text)
	for i, f := range fields[:max(0, len(fields)-1)] {
		if !strings.EqualFold(f, "option") && !strings.EqualFold(f, "choice") {
			continue
		}
		letter := strings.Trim(fields[i+1], "().,:*$")
		if len(letter) != 1 || letter < "A" || letter > "J" || only != "" && only != letter {
			return ""
		}
		only = letter
	}
	return only
}

// leadingChoice returns the letter at the start of "C non A", "B不是 A" or "A
// because …".
func leadingChoice(text string) string {
	s := strings.TrimPrefix(text, "(")
	if len(s) < 3 || s[0] < 'A' || s[0] > 'J' {
		return ""
	}
	rest := strings.TrimPrefix(s[1:], ")")
	if r, _ := utf8.DecodeRuneInString(rest); unicode.Is(unicode.Han, r) || r == '。' || r == '，' {
		return s[:1]
	}
	word, _, _ := strings.Cut(strings.TrimLeft(rest, " ,.:;"), " ")
	switch strings.ToLower(word) {
	case "because", "since", "as", "not", "non", "nicht", "no", "pas", "et", "y":
		if len(rest) > 0 && !expr.IsLetter(rest[0]) && word != "et" && word != "y" {
			return s[:1]
		}
	}
	return ""
}

// lastChoice returns the letter at the end of "I think it's B".
func lastChoice(text string) string {
	fields := strings.Fields(strings.TrimRight(text, " .!*"))
	if len(fields) < 3 {
		return ""
	}
	last := strings.Trim(fields[len(fields)-1], "()*.")
	if len(last) == 1 && last[0] >= 'A' && last[0] <= 'J' {
		return last
	}
	return ""
}

func countWords(text string) int {
	n, depth := 0, 0
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\\':
			i++
			for i < len(text) && expr.IsLetter(text[i]) {
				i++
			}
		case c == '{':
			depth++
			i++
		case c == '}':
			depth--
			i++
		case expr.IsLetter(c):
			start := i
			for i < len(text) && expr.IsLetter(text[i]) {
				i++
			}
			apart := (start == 0 || !expr.IsDigit(text[start-1]) && !strings.ContainsRune("^_+-*/=)}]", rune(text[start-1]))) &&
				(i == len(text) || !expr.IsDigit(text[i]) && !strings.ContainsRune("^_+-*/=([{", rune(text[i])))
			if run := text[start:i]; apart && depth <= 0 && len(run) >= 2 && !reading.PlainFunctions[run] && run != "pi" && run != "sqrt" && !reading.BareUnits[run] {
				n++
			}
		case c >= utf8.RuneSelf: // a run of letters of another script is a word
			start := i
			for i < len(text) && text[i] >= utf8.RuneSelf {
				r, size := utf8.DecodeRuneInString(text[i:])
				if !unicode.IsLetter(r) && !unicode.IsMark(r) || reading.GreekRunes[r] != "" {
					break
				}
				i += size
			}
			switch {
			case i-start > 12:
				n += 2
			case i-start >= 4:
				n++
			case i == start:
				_, size := utf8.DecodeRuneInString(text[i:])
				i += size
			}
		default:
			i++
		}
	}
	return n
}
