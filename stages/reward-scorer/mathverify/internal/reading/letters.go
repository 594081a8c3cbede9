package reading

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// shortWords are the words of up to three letters that are words wherever they
// stand.
var shortWords = map[string]bool{
	"and": true, "or": true, "the": true, "is": true, "are": true, "yes": true, "no": true, "odd": true, "dne": true, "if": true, "for": true, "all": true, "any": true, "per": true,
	"none": true, "not": true, "of": true, "to": true, "when": true, "am": true, "pm": true, "one": true, "two": true, "six": true, "ten": true, "in": true, "sq": true,
}

// wordish guesses whether a run of bare letters is a word rather than a product
// of variables: it is long, or follows white space and reads like English.
func wordish(run string, spaced bool) bool {
	n := len(run)
	if n >= 4 {
		return true
	}
	lower := strings.ToLower(run)
	if n == 3 && spaced && (months[lower] || monthNames[lower] != "") {
		return true
	}
	if lower != run && run == strings.ToUpper(run) {
		return false // NO is a length in geometry
	}
	if shortWords[lower] || BareUnits[run] {
		return true
	}
	return n == 3 && spaced && strings.ContainsAny(lower, "aeiou") && lower != "abc" && lower == run
}

// letters reads a run of letters: a word, a name, or a product of variables.
func (l *lexer) letters() {
	run := l.lettersAt(l.pos)
	end := l.pos + len(run)
	if r, _ := utf8.DecodeRuneInString(l.src[end:]); r >= utf8.RuneSelf && unicode.Is(unicode.Latin, r) && asciiOf(r) == 0 && !strings.ContainsRune(superscripts, r) {
		l.foreignWord() // "réponse"
		return
	}
	if l.last().Kind == TNum && strings.ContainsAny(run[:1], "apAP") {
		for _, spelling := range []string{"a.m", "p.m", "A.M", "P.M", "AM", "PM"} {
			if rest, ok := strings.CutPrefix(l.src[l.pos:], spelling); ok && (rest == "" || !expr.IsLetter(rest[0])) {
				l.emit(TWord, units[strings.ToLower(spelling)])
				l.pos += len(spelling)
				return
			}
		}
	}
	if run == "o" && strings.HasPrefix(l.src[end:], "'clock") {
		l.emit(TWord, "o'clock")
		l.pos = end + len("'clock")
		return
	}
	if n := len(l.out); n > 1 && l.out[n-1].Op("{") && (l.out[n-2].cmd("begin") || l.out[n-2].cmd("end")) {
		l.emit(TLetter, run) // the name of an environment
		l.pos = end
		return
	}
	start := l.spaced || l.pos == 0
	switch {
	case len(run) == 1 && l.article(run, end):
		l.emit(TWord, run)
	case len(run) == 1:
		l.emit(TLetter, run)
		l.out[max(0, len(l.out)-1)].upright = l.inText()
	case l.inText():
		l.word(run)
		return
	case PlainFunctions[run] && (units[run] == "" || !endsQuantity(l.last()) || l.argumentAt(end)):
		l.emit(tFunc, functions[run])
	case run == "sqrt" || run == "mod" || run == "pi":
		l.emit(tCmd, run)
	case run == "infinity" || run == "inf" || run == "oo":
		l.emit(tCmd, "infty")
	case len(run) > 3 && slices.Contains(greek, run):
		l.emit(TLetter, run)
	case wordish(run, start), start && len(run) == 2 && functionWords[strings.ToLower(run)] && l.wordBehind(end), start && l.last().Kind == TWord, l.spaced && l.last().Kind == TNum && units[run] != "":
		l.word(run)
		return
	default:
		l.product(run)
		return
	}
	l.pos = end
}

// functionWords are words of two letters that are words in front of others.
var functionWords = map[string]bool{"it": true, "we": true, "he": true, "by": true, "at": true, "on": true, "so": true, "an": true, "my": true, "be": true, "as": true, "us": true, "do": true}

// wordBehind says whether another word follows.
func (l *lexer) wordBehind(end int) bool {
	return end+2 < len(l.src) && l.src[end] == ' ' && expr.IsLetter(l.src[end+1]) && expr.IsLetter(l.src[end+2])
}

// article says whether a single letter is the article of a word behind it, or
// the I of somebody who speaks.
func (l *lexer) article(run string, end int) bool {
	if run != "a" && run != "A" && run != "I" || end >= len(l.src) || l.src[end] != ' ' || l.pos > 0 && !l.spaced && !l.inText() {
		return false
	}
	next := l.lettersAt(end + 1)
	switch run {
	case "A": // the letter of a choice
		return multiples[next] > 0 || denominator(next) > 0
	case "I":
		return len(next) > 1 && strings.ToLower(next) == next && wordish(next, true) && !shortWords[next]
	}
	return len(next) > 2 && wordish(next, true) && (!shortWords[next] || next == "one" || next == "ten") && functions[next] == ""
}

// word emits a word with the hyphens and apostrophes in it; number words stay
// apart, so that twenty-one is read.
func (l *lexer) word(run string) {
	end := l.pos + len(run)
	for end+1 < len(l.src) && (l.src[end] == '-' || l.src[end] == '\'') && expr.IsLetter(l.src[end+1]) {
		more := l.lettersAt(end + 1)
		if l.src[end] == '-' && (len(run) < 3 || len(more) < 3) && !l.inText() || len(run) < 2 {
			break
		}
		if _, numeric := smallNumerals[strings.ToLower(run)]; numeric || denominator(strings.ToLower(more)) > 0 {
			l.emit(TWord, run)
			l.pos = end + 1
			l.word(more)
			return
		}
		run = l.src[l.pos : end+1+len(more)]
		end += 1 + len(more)
	}
	l.emit(TWord, run)
	l.pos = end
}

// product emits letters that are variables, or a function's name and its
// argument.
func (l *lexer) product(run string) {
	for _, name := range []string{"sin", "cos", "tan", "ln", "log", "cot", "sec"} {
		if strings.HasPrefix(run, name) {
			l.emit(tFunc, functions[name])
			l.pos += len(name)
			return
		}
	}
	for i := range len(run) {
		l.emit(TLetter, run[i:i+1])
		l.pos++
	}
}
