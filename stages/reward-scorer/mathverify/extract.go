package mathverify

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Extract returns the answer that a text gives: the content of its last box,
// or of its <answer> tag, or what follows "the answer is", or its last formula,
// or its last number. A text that is nothing but an answer is returned whole.
func Extract(text string) string { return extract(text, false) }

var perCent = []string{`\%`, "%", "pct", "percent"}

const maxExtract = 4_000_000

func extract(text string, compat bool) string {
	if len(text) > maxExtract {
		text = text[len(text)-maxExtract:]
	}
	text = strings.TrimSpace(text)
	if inner, ok := onlyBox(text); ok {
		return inner
	}
	if bareAnswer(text) {
		return text
	}
	if i := strings.LastIndex(text, "</think>"); i >= 0 && strings.TrimSpace(text[i+len("</think>"):]) != "" {
		text = strings.TrimSpace(text[i+len("</think>"):]) // what was thought is no answer
	}
	if answer, end, ok := lastBoxes(text); ok {
		// "\boxed{255} … Final Answer: The final answer is $10,455$."
		from := end
		if compat {
			from = 0 // Math-Verify prefers it wherever it stands
		}
		if i := strings.LastIndex(text[from:], "inal answer is"); i > 0 {
			if rest, ok := afterAnchor(text[from+i-1:]); ok && (hasFormula(rest) || lastNumber(rest) != "") {
				return fromSentence(rest, compat)
			}
		}
		after := strings.TrimLeft(text[end:], "$ ")
		for _, sign := range perCent {
			if strings.HasPrefix(after, sign) {
				return answer + " percent"
			}
		}
		return answer
	}
	if open := strings.LastIndex(text, "<answer>"); open >= 0 {
		rest := text[open+len("<answer>"):]
		if end := strings.Index(rest, "</answer>"); end >= 0 {
			rest = rest[:end]
		}
		return lastFormula(strings.TrimSpace(rest), compat)
	}
	if i := strings.Index(text, "<|im_start|>"); i > 0 {
		text = strings.TrimSpace(text[:i])
	}
	if i := strings.LastIndex(text, "####"); i >= 0 { // GSM8K's mark
		if rest := strings.TrimSpace(text[i+4:]); len(rest) < 40 && countWords(rest) == 0 && lastNumber(rest) != "" {
			return rest
		}
	}
	if rest, ok := afterAnchor(text); ok {
		if w := leadingChoice(rest); w != "" {
			return w
		}
		return fromSentence(rest, compat)
	}
	if w := leadingChoice(text); w != "" {
		return w
	}
	if w := chosen(text); w != "" {
		return w
	}
	if strings.Count(text, "$")-strings.Count(text, `\$`) == 1 && strings.Contains(strings.Trim(text, "$ "), "$") {
		if n := lastNumber(text); n != "" { // an amount of money: "2,74 $ a piece"
			return n
		}
	}
	if n := numberBehindWords(text); n != "" {
		return n
	}
	if words := countWords(text); words >= 5 || words >= 1 && hasFormula(text) || words >= 3 && endsSentence(text) {
		return fromSentence(text, compat)
	}
	return lastFormula(text, compat)
}

// numberBehindWords returns the number of "Total: 17", "I get 17" or "Hence, 17."
func numberBehindWords(text string) string {
	for _, w := range []string{"Hence,", "Thus,", "So,", "Therefore,"} {
		if strings.HasPrefix(text, w) { // no comma of a list
			text = strings.Replace(text, ",", "", 1)
		}
	}
	rest := strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ :")
	lead := strings.TrimSpace(text[:len(text)-len(rest)])
	n := lastNumber(rest)
	if n == "" || strings.TrimRight(rest, ". ") != n || countWords(lead) == 0 || changesValue(strings.TrimRight(lead, ": ")) {
		return ""
	}
	for _, w := range strings.FieldsFunc(strings.ToLower(lead), func(r rune) bool { return r == ' ' || r == ':' }) {
		if w == "and" || w == "or" || w == "sqrt" || w == "pi" || plainFunctions[w] {
			return ""
		}
	}
	return n
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
			for i+1 < len(text) && isLetter(text[i+1]) {
				i++
			}
			run = 0
		case isLetter(c):
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
	rest := strings.TrimLeft(text[best:], " :：*}\n")
	for _, remark := range []string{"I hope it is correct", " because ", "(because ", " since ", "(since "} {
		rest, _, _ = strings.Cut(rest, remark)
	}
	if i := strings.Index(rest, "**"); i >= 0 && strings.Trim(rest[i:], "*. ") == "" {
		rest = rest[:i] // "**1**."
	}
	rest = strings.TrimSpace(rest)
	return rest, rest != ""
}

// fromSentence takes the last formula of a sentence, or all of it if it is
// short, or its last number.
func fromSentence(text string, compat bool) string {
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
		if len(rest) > 0 && !isLetter(rest[0]) && word != "et" && word != "y" {
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
			for i < len(text) && isLetter(text[i]) {
				i++
			}
		case c == '{':
			depth++
			i++
		case c == '}':
			depth--
			i++
		case isLetter(c):
			start := i
			for i < len(text) && isLetter(text[i]) {
				i++
			}
			apart := (start == 0 || !isDigit(text[start-1]) && !strings.ContainsRune("^_+-*/=)}]", rune(text[start-1]))) &&
				(i == len(text) || !isDigit(text[i]) && !strings.ContainsRune("^_+-*/=([{", rune(text[i])))
			if run := text[start:i]; apart && depth <= 0 && len(run) >= 2 && !plainFunctions[run] && run != "pi" && run != "sqrt" && !bareUnits[run] {
				n++
			}
		case c >= utf8.RuneSelf: // a run of letters of another script is a word
			start := i
			for i < len(text) && text[i] >= utf8.RuneSelf {
				r, size := utf8.DecodeRuneInString(text[i:])
				if !unicode.IsLetter(r) && !unicode.IsMark(r) || greekRunes[r] != "" {
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

func hasFormula(text string) bool {
	if strings.Count(text, "$")-strings.Count(text, `\$`) >= 2 {
		if _, stop := lastDollars(text); stop >= 0 {
			return true
		}
	}
	return strings.Contains(text, `\[`) || strings.Contains(text, `\(`)
}

// lastFormula returns the content of the last $…$, \(…\) or \[…\], joined with
// the one before it by "and".
func lastFormula(text string, compat bool) string {
	best, end, skipped := "", -1, false
	for _, d := range [][2]string{{`\[`, `\]`}, {`\(`, `\)`}} {
		stop := strings.LastIndex(text, d[1])
		if stop < 0 {
			continue
		}
		start := strings.LastIndex(text[:stop], d[0])
		if start < 0 || stop <= end {
			continue
		}
		content := text[start+2 : stop]
		if compat && d[0] == `\(` && strings.Contains(content, "\n") {
			skipped = true
			continue // Math-Verify reads no inline formula over several lines
		}
		best, end = content, stop
	}
	if content, stop := lastDollars(text); stop > end {
		best, end = content, stop
	}
	switch {
	case end < 0 && skipped:
		return ""
	case end < 0:
		return text
	}
	return strings.TrimSpace(best)
}

// lastDollars returns the content of the last $…$ or $$…$$ and where it ends,
// or -1. A sign that money stands behind, as in "$9 + $3 = $12", opens nothing.
func lastDollars(text string) (string, int) {
	var marks []int // the last sign of each "$" or "$$"
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '$':
			if i+1 < len(text) && text[i+1] == '$' {
				i++
			}
			marks = append(marks, i)
		}
	}
	content, from, stop := "", 0, -1
	for i := 0; i+1 < len(marks); {
		open, shut := marks[i], marks[i+1]
		inner := text[open+1 : max(open+1, shut-strings.Count(text[shut-1:shut], "$"))]
		if (open == 0 || text[open-1] != '$') && money(inner) {
			i++
			continue
		}
		// "between $12$ and $13$"
		gap := ""
		if stop >= 0 {
			gap = strings.Trim(text[stop+1:open], " $")
		}
		if gap == "and" || gap == "or" || gap == "," {
			inner = strings.Trim(text[from:stop], " $") + " , " + inner
		}
		content, from, stop = inner, open+1, shut
		i += 2
	}
	return content, stop
}

// money says whether what stands between two signs is part of a sentence: it
// has words in it and not only a unit, or ends in the middle of a calculation.
func money(inner string) bool {
	t := strings.TrimRight(inner, " ")
	if t == "" || !isDigit(t[0]) {
		return false
	}
	words := countWords(inner)
	return words > 1 || words > 0 && (strings.Contains(inner, "\n") || len(t) < len(inner)) || strings.ContainsAny(t[len(t)-1:], "=+-*/<>(")
}

// lastNumber finds the last number of a sentence, with sign, separators,
// fraction and sign for per cent. Digits inside a word are no number.
func lastNumber(text string) string {
	for i := len(text) - 1; i >= 0; i-- {
		if !isDigit(text[i]) {
			continue
		}
		start := i
		for start > 0 && (isDigit(text[start-1]) || (text[start-1] == '.' || text[start-1] == ',' || text[start-1] == '/') && start > 1 && isDigit(text[start-2])) {
			start--
		}
		if start > 0 && (isLetter(text[start-1]) || text[start-1] == '_') {
			i = start
			continue
		}
		end := i + 1
		if f := strings.LastIndex(text[:start], `\frac{`); f >= 0 && start-f < 60 {
			if mid := closingBrace(text, f+len(`\frac{`)); mid > 0 && strings.HasPrefix(text[mid+1:], "{") {
				if stop := closingBrace(text, mid+2); stop >= end {
					return text[f : stop+1]
				}
			}
		}
		number := text[start:end]
		if before := strings.ReplaceAll(text[max(0, start-6):start], "−", "-"); strings.HasSuffix(before, "-") && (len(before) == 1 || !isDigit(before[len(before)-2])) {
			number = "-" + number
		}
		for _, sign := range perCent {
			if strings.HasPrefix(strings.TrimPrefix(text[end:], " "), sign) {
				return number + "%"
			}
		}
		return number
	}
	return ""
}
