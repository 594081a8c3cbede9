package finding

import (
	"slices"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

func hasFormula(text string) bool { return len(formulas(text, false)) > 0 }

// stretch is where a formula stands: from..to is its content, at..end with its
// signs.
type stretch struct{ at, from, to, end int }

// formulas finds $…$, $$…$$, \(…\) and \[…\] in one pass. A sign that money
// stands behind, as in "$9 + $3 = $12", opens nothing. Compat reads no \(…\)
// over several lines.
func formulas(text string, compat bool) []stretch {
	var all []stretch
	open := stretch{at: -1}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i+1 == len(text) {
				return all
			}
			i++
			switch c := text[i]; {
			case c == '(' || c == '[':
				open = stretch{at: i - 1, from: i + 1}
			case (c == ')' || c == ']') && open.at >= 0 && text[open.at] == '\\' && reading.Closers[text[open.at+1:open.at+2]] == text[i:i+1]:
				if !compat || c == ']' || !strings.Contains(text[open.from:i-1], "\n") {
					all = append(all, stretch{open.at, open.from, i - 1, i + 1})
				} else {
					all = append(all, stretch{at: -1})
				}
				open.at = -1
			}
		case '$':
			at := i
			if i+1 < len(text) && text[i+1] == '$' {
				i++
			}
			switch {
			case open.at >= 0 && text[open.at] == '\\': // inside \(…\)
			case open.at < 0:
				open = stretch{at: at, from: i + 1}
			case open.from-open.at == 1 && money(text[open.from:at]):
				open = stretch{at: at, from: i + 1}
			default:
				all = append(all, stretch{open.at, open.from, at, i + 1})
				open.at = -1
			}
		}
	}
	return all
}

// lastFormula returns the content of the last formula, with those before it that
// "and", "or" or a comma joins to it; the whole text if there is none.
func lastFormula(text string, compat bool) string {
	all := formulas(text, compat)
	n := len(all) - 1
	if n < 0 {
		return text
	}
	if all[n].at < 0 { // not read
		if n = slices.IndexFunc(all, func(s stretch) bool { return s.at >= 0 }); n < 0 {
			return ""
		}
		for i, s := range all {
			if s.at >= 0 {
				n = i
			}
		}
	}
	parts := []string{strings.TrimSpace(text[all[n].from:all[n].to])} // from the last to the first
	for ; n > 0 && all[n-1].at >= 0 && len(parts) < 2*maxJoined; n-- {
		gap := joiner(text[all[n-1].end:all[n].at])
		if gap == "" {
			break
		}
		parts = append(parts, gap, strings.TrimSpace(text[all[n-1].from:all[n-1].to]))
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// maxJoined is how many formulas in prose can make one answer.
const maxJoined = 256

// joiner is what joins two formulas to one answer, or "".
func joiner(gap string) string {
	switch strings.Trim(gap, " ,\n") {
	case "and":
		return ` \text{ and } `
	case "or":
		return ` \text{ or } `
	case "":
		if strings.Contains(gap, ",") {
			return " , "
		}
	}
	return ""
}

// money says whether what stands between two signs is part of a sentence: it
// has words in it and not only a unit, or ends in the middle of a calculation.
func money(inner string) bool {
	t := strings.TrimRight(inner, " ")
	if t == "" || !expr.IsDigit(t[0]) {
		return false
	}
	words := countWords(inner)
	return words > 1 || words > 0 && (strings.Contains(inner, "\n") || len(t) < len(inner)) || strings.ContainsAny(t[len(t)-1:], "=+-*/<>(")
}

// lastNumber finds the last number of a sentence, with sign, separators,
// fraction and sign for per cent. Digits inside a word are no number.
func lastNumber(text string) string {
	for i := len(text) - 1; i >= 0; i-- {
		if !expr.IsDigit(text[i]) {
			continue
		}
		start := i
		for start > 0 && (expr.IsDigit(text[start-1]) || (text[start-1] == '.' || text[start-1] == ',' || text[start-1] == '/') && start > 1 && expr.IsDigit(text[start-2])) {
			start--
		}
		if start > 0 && (expr.IsLetter(text[start-1]) || text[start-1] == '_') {
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
		if before := strings.ReplaceAll(text[max(0, start-6):start], "−", "-"); strings.HasSuffix(before, "-") && (len(before) == 1 || !expr.IsDigit(before[len(before)-2])) {
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
