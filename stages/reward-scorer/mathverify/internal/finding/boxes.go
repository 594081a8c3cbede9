package finding

import (
	"strings"
)

// onlyBox is the content of a text that is one box and nothing else.
func onlyBox(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, `\boxed{`)
	if !ok || len(rest) == 0 || rest[len(rest)-1] != '}' || closingBrace(rest, 0) != len(rest)-1 {
		return "", false
	}
	inner := rest[:len(rest)-1]
	for _, b := range boxes {
		if strings.Contains(inner, b) {
			return "", false
		}
	}
	return strings.TrimSpace(inner), true
}

// maxBoxes is how many boxes in a row can make one answer.
const maxBoxes = 64

var boxes = []string{`\boxed{`, `\fbox{`, `\boxed {`}

// lastBoxes returns the content of the last box. Boxes that follow each other
// with no more than "and" or a comma between are several answers.
func lastBoxes(text string) (answer string, end int, ok bool) {
	type box struct{ at, from, to, end int }
	var last []box
	at := 0
	for at < len(text) {
		next, open := nextBox(text, at)
		if next < 0 {
			break
		}
		from := next + len(open)
		to := closingBrace(text, from)
		end := to + 1
		if to < 0 {
			to, end = len(text), len(text)
		}
		if len(last) > 4*maxBoxes {
			last = append(last[:0], last[len(last)-2*maxBoxes:]...)
		}
		last = append(last, box{next, from, to, end})
		at = end
	}
	for i := len(last) - 1; i > 0; i-- {
		if !joined(text[last[i-1].end:last[i].at]) || len(last)-i > maxBoxes {
			last = last[i:]
			break
		}
	}
	if len(last) == 0 {
		return "", 0, false
	}
	if len(last) == 1 {
		return unboxed(text[last[0].from:last[0].to], last[0].end == len(text)), last[0].end, true
	}
	parts := make([]string, len(last))
	for i, b := range last {
		parts[i] = strings.TrimSpace(text[b.from:b.to])
	}
	return strings.Join(parts, " ; "), last[len(last)-1].end, true
}

// nextBox finds the first opener from at on.
func nextBox(text string, at int) (int, string) {
	for at < len(text) {
		i := strings.IndexByte(text[at:], '\\')
		if i < 0 {
			break
		}
		at += i
		for _, b := range boxes {
			if strings.HasPrefix(text[at:], b) {
				return at, b
			}
		}
		at++
	}
	return -1, ""
}

// unboxed takes the inner one of nested boxes, and from a box that runs to the
// end of the text the delimiters behind it.
func unboxed(content string, toEnd bool) string {
	if toEnd {
		content = strings.TrimRight(content, " $\n")
		content = strings.TrimSuffix(strings.TrimSuffix(content, `\]`), `\)`)
		if !strings.Contains(content, `\{`) {
			content = strings.TrimSuffix(content, `\}`)
		}
	}
	return strings.TrimSpace(content)
}

func closingBrace(text string, from int) int {
	depth := 1
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i+1 < len(text) && (text[i+1] == '{' || text[i+1] == '}') {
				i++
			}
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// joined says whether a gap between boxes makes them parts of one answer.
func joined(gap string) bool {
	if len(gap) > 60 {
		return false
	}
	plain := strings.NewReplacer("$", " ", `\(`, " ", `\)`, " ", `\quad`, " ", `\text{`, " ", "}", " ", `\ `, " ", `\,`, " ").Replace(gap)
	and, words := false, 0
	for _, w := range strings.Fields(plain) {
		switch strings.Trim(w, ",;") {
		case "and", "or", "和", "或":
			and = true
		case "so", "then", "not", "but", "is", "hence", "wait", "or,":
			return false
		default:
			words++
		}
		if strings.ContainsAny(w, ".?!:") {
			return false
		}
	}
	if and {
		return words <= 4
	}
	for _, w := range strings.Fields(plain) {
		if strings.ContainsAny(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") || w == "=" {
			return false
		}
	}
	return !strings.Contains(gap, "\n") && (strings.ContainsAny(gap, ",;+") || plain == "")
}
