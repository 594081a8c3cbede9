package reading

import (
	"slices"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// phraser rewrites words that are mathematics.
type phraser struct {
	in        []Token
	pos       int
	out       []Token
	lower     []string // the words from pos on, as far as one phrase can reach
	steps     int
	restating int // open brackets in "(or 0.5)"
}

// phrases turns the words of mathematics into its tokens: numerals, "half of",
// "is at least", "divided by". What is no such word stays.
func phrases(toks []Token) []Token {
	if !slices.ContainsFunc(toks, mayBegin) && !asides(toks) {
		return toks
	}
	p := &phraser{in: toks, out: make([]Token, 0, len(toks)+8)}
	p.run()
	return p.out
}

func (p *phraser) run() {
	for p.pos < len(p.in) {
		p.step()
	}
}

func (p *phraser) last() Token {
	if len(p.out) == 0 {
		return Token{}
	}
	return p.out[len(p.out)-1]
}

func (p *phraser) at(n int) Token {
	p.steps++
	if p.pos+n >= 0 && p.pos+n < len(p.in) {
		return p.in[p.pos+n]
	}
	return Token{}
}

// words collects the words from here on. A number counts as one behind "point".
func (p *phraser) words() {
	p.lower = p.lower[:0]
	for n := 0; n < 12; n++ {
		t := p.at(n)
		if t.Kind != TWord && (t.Kind != TNum || n == 0 || p.lower[n-1] != "point") {
			return
		}
		p.lower = append(p.lower, strings.ToLower(t.Text))
	}
}

func (p *phraser) step() {
	t := p.in[p.pos]
	if t.Kind == TNum && p.at(1).Word("point") && !strings.ContainsAny(t.Text, ".e") {
		p.pos++
		p.words()
		if n, used := numeralAt(append([]string{"zero"}, p.lower...)); n.decimal != "" {
			t.Text += strings.TrimPrefix(n.decimal, "0")
			p.pos += used - 1
			p.out = append(p.out, t)
			return
		}
		p.pos--
	}
	if t.Kind == TNum && p.at(1).Word("and") {
		p.pos++
		p.words()
		if n, used := partAt(p.lower); used > 0 {
			n.whole = 0
			p.out = append(append(p.out, t), n.tokens(t)...)
			p.pos += used
			return
		}
		p.pos--
	}
	if t.Op("(") && p.restated() {
		return
	}
	if t.Op(")") && p.restating > 0 {
		p.restating--
		if p.restating == 0 {
			p.pos++
			return
		}
	} else if t.Op("(") && p.restating > 0 {
		p.restating++
	}
	if t.Kind != TWord {
		p.out = append(p.out, t)
		p.pos++
		return
	}
	p.words()
	if p.numeral(t) || p.phrase(t) || p.joint(t) {
		return
	}
	p.out = append(p.out, t)
	p.pos++
}

// aside drops the brackets of words in brackets: "5 (approximately)".
func (p *phraser) aside() bool {
	n := 1
	for ; n < maxPhrase && p.at(n).Kind == TWord; n++ {
		if w := strings.ToLower(p.at(n).Text); units[w] != "" || w == "or" {
			return false
		}
		if _, numeric := smallNumerals[strings.ToLower(p.at(n).Text)]; numeric {
			return false
		}
	}
	if n == 1 || !p.at(n).Op(")") || !endsQuantity(p.last()) {
		return false
	}
	p.out = append(p.out, p.in[p.pos+1:p.pos+n]...)
	p.pos += n + 1
	return true
}

// condition reads "2nπ (n ∈ Z)" and "2nπ (where n is an integer)" with a comma for the
// brackets.
func (p *phraser) condition() bool {
	n := 1
	if t := p.at(n); t.Word("where") || t.Word("for") || t.Word("with") {
		n++
	}
	if p.restating > 0 || !endsQuantity(p.last()) || p.at(n).Kind != TLetter || !p.at(n+1).Is(TRel, "in") && !p.at(n+1).Word("is") {
		return false
	}
	p.out = append(p.out, Token{Kind: TOp, Text: ",", at: p.at(0).at, Spaced: true})
	p.restating = 1
	p.pos += n
	return true
}

// again reads "seven (7)" and "7 (seven)" as an equation.
func (p *phraser) again() bool {
	if p.last().Kind != TNum || p.restating > 0 {
		return false
	}
	rel := Token{Kind: TRel, Text: "=", at: p.at(0).at}
	if p.last().worded && p.at(1).Kind == TNum && p.at(2).Op(")") {
		p.out = append(p.out, rel, p.at(1))
		p.pos += 3
		return true
	}
	p.pos++
	p.words()
	if n, used := numeralAt(p.lower); used > 0 && p.at(used).Op(")") {
		p.out = append(append(p.out, rel), n.tokens(p.at(0))...)
		p.pos += used + 1
		return true
	}
	p.pos--
	return false
}

// restated reads "1/2 (or 0.5)" as an equation: both must hold.
func (p *phraser) restated() bool {
	w := strings.ToLower(p.at(1).Text)
	if p.aside() || p.again() || p.condition() {
		return true
	}
	if p.restating > 0 || !endsQuantity(p.last()) || p.at(1).Kind != TWord && !p.at(1).Is(TRel, "~") && !p.at(1).Is(TRel, "=") {
		return false
	}
	rel := "="
	switch {
	case w == "about" || w == "approximately" || w == "approx" || w == "roughly", p.at(1).Is(TRel, "~"):
		rel = "~"
	case w == "or" || w == "equivalently" || w == "i.e" || p.at(1).Is(TRel, "="):
	default:
		return false
	}
	n := 2
	for p.at(n).Kind == TWord && ClassOf(strings.ToLower(p.at(n).Text)) == Filler {
		n++
	}
	if !p.quantityAt(n) {
		return false
	}
	p.out = append(p.out, Token{Kind: TRel, Text: rel, at: p.at(0).at})
	p.restating = 1
	p.pos += n
	return true
}

// numeral takes a number in words.
func (p *phraser) numeral(t Token) bool {
	n, used := numeralAt(p.lower)
	if used == 0 || p.last().Kind == TNum && p.last().worded {
		return false
	}
	if last := p.last(); last.Kind == TWord && (last.Word("no") || last.Word("any") || last.Word("every") || last.Word("some")) {
		return false // "no one"
	}
	p.out = append(p.out, n.tokens(t)...)
	p.pos += used
	return true
}

// phrase takes the longest phrase that stands here.
func (p *phraser) phrase(t Token) bool {
	for n := min(maxPhrase, len(p.lower)); n > 0; n-- {
		for _, f := range phraseTable[strings.Join(p.lower[:n], " ")] {
			if p.fits(f, n) {
				p.apply(f, t, n)
				return true
			}
		}
	}
	switch w := p.lower[0]; {
	case (w == "where" || w == "for" || w == "with" || w == "when" || w == "if") && p.at(1).Kind == TLetter && endsQuantity(p.last()) && (p.at(2).Kind == TRel || p.at(2).Word("is")): // a condition
		p.out = append(p.out, Token{Kind: TOp, Text: ",", at: t.at, Spaced: true})
		p.pos++
		return true
	case w == "of" && p.portion() && p.quantityAt(1):
		p.apply(phrase{TOp, "*", between}, t, 1)
		return true
	case (w == "all" || w == "any" || w == "every") && p.at(1).Kind == TLetter && (p.at(2).Word("such") && p.at(3).Word("that") || p.at(2).Word("with") || p.at(2).Word("where") || p.at(2).Word("satisfying")):
		p.pos += 3
		if p.at(0).Word("that") {
			p.pos++
		}
		return true
	case w == "in" && p.last().Kind == TNum && p.quantityAt(1) && p.at(1).Kind != TLetter && units[strings.ToLower(p.at(2).Text)] == "": // one in four
		p.apply(phrase{TOp, "/", between}, t, 1)
		return true
	case w == "分之" && p.last().Kind == TNum && p.at(1).Kind == TNum:
		den, num := p.last(), p.at(1)
		p.out = p.out[:len(p.out)-1]
		p.out = append(p.out, Token{Kind: tCmd, Text: "frac"}, Token{Kind: TOp, Text: "{"}, num, Token{Kind: TOp, Text: "}"},
			Token{Kind: TOp, Text: "{"}, den, Token{Kind: TOp, Text: "}"})
		p.pos += 2
		return true
	case w == "百分之" && p.at(1).Kind == TNum:
		p.out = append(p.out, p.at(1), Token{Kind: TOp, Text: "%", at: t.at})
		p.pos += 2
		return true
	}
	return false
}

// quantityAt says whether a quantity, perhaps in words, begins n tokens ahead.
func (p *phraser) quantityAt(n int) bool {
	t := p.at(n)
	if t.Kind != TWord {
		return startsQuantity(t)
	}
	w := strings.ToLower(t.Text)
	if _, ok := smallNumerals[w]; ok {
		return true
	}
	switch w {
	case "half", "twice", "negative", "minus", "dollar", "double", "triple", "infinity":
		return true
	case "a", "an", "the":
		return p.at(n+1).Kind == TWord && (multiples[strings.ToLower(p.at(n+1).Text)] > 0 || denominator(strings.ToLower(p.at(n+1).Text)) > 0)
	}
	return false
}

// quantityBefore says whether a quantity ends here, also with its unit.
func (p *phraser) quantityBefore() bool {
	t := p.last()
	return endsQuantity(t) || t.Kind == TWord && (units[strings.ToLower(t.Text)] != "" || multiples[strings.ToLower(t.Text)] > 0) && len(p.out) > 1 && endsQuantity(p.out[len(p.out)-2])
}

// portion says whether what ends here can be a part "of" something.
func (p *phraser) portion() bool {
	t := p.last()
	return t.Op("%") || t.Op("}") && len(p.out) > 6 && p.out[len(p.out)-7].cmd("frac") || t.Word("percent")
}

// fits says whether a phrase of n words stands where it is one.
func (p *phraser) fits(f phrase, n int) bool {
	if f.text == "in" && n == 1 {
		return p.last().Kind == TLetter && p.quantityAt(1)
	}
	if f.kind == tSetOp {
		return p.last().cmd("reals") && p.quantityAt(n)
	}
	switch f.where {
	case between:
		// "the answer is 7" is a relation of words and a number.
		left := p.quantityBefore() || f.kind == TRel && f.text != "in" && p.last().Kind == TWord && !p.last().Word("and") && !p.last().Word("or") && !p.denial()
		if f.text == ":" && (p.last().Kind != TNum || p.at(n).Kind != TNum) || f.text == "/" && p.lower[0] == "out" && p.at(n).Kind != TNum {
			return false
		}
		return left && p.quantityAt(n) || f.kind == TRel && f.text == "=" && p.last().Kind == TLetter && p.quantityAt(n)
	case before:
		return p.quantityAt(n)
	case behind:
		return p.quantityBefore() && !p.quantityAt(n) && !p.at(n).Word("than") && !p.at(n).Word("or")
	}
	return true
}

// denial says whether a word that turns the sentence round stands before here.
func (p *phraser) denial() bool {
	for i := len(p.out) - 1; i >= max(0, len(p.out)-maxLook) && p.out[i].Kind == TWord; i-- {
		if ClassOf(strings.ToLower(p.out[i].Text)) == Denial {
			return true
		}
	}
	return false
}

// apply emits the tokens of a phrase.
func (p *phraser) apply(f phrase, t Token, n int) {
	put := func(k kind, text string) {
		p.out = append(p.out, Token{Kind: k, Text: text, at: t.at, Spaced: t.Spaced, worded: true})
	}
	p.pos += n
	switch {
	case f.kind == tCmd && f.text == "half":
		for _, text := range []string{"(", "1", "/", "2", ")"} {
			if expr.IsDigit(text[0]) {
				put(TNum, text)
			} else {
				put(TOp, text)
			}
		}
		put(TOp, "*")
	case f.kind == tCmd && folds[f.text] != "":
		put(TNum, folds[f.text])
		put(TOp, "*")
	case f.kind == tCmd && f.text == "cbrt":
		put(tCmd, "sqrt")
		put(TOp, "[")
		put(TNum, "3")
		put(TOp, "]")
	case f.kind == TRel && p.last().Kind == TNum && (f.text == ">" || f.text == "<") && (p.lower[0] == "more" || p.lower[0] == "less" || p.lower[0] == "fewer") && p.alone():
		// "3 more than 4" is a sum, "3 less than 4" a difference.
		left := p.last()
		if f.text == "<" {
			p.out = append(p.out[:len(p.out)-1], Token{Kind: TOp, Text: "-", at: left.at}, left)
		}
		put(TOp, "+")
	case f.kind == TRel && f.text == "=" && len(p.out) == 0:
	default:
		put(f.kind, f.text)
	}
}

// alone says whether the number that ends here is all of its answer.
func (p *phraser) alone() bool {
	if len(p.out) == 1 {
		return true
	}
	t := p.out[len(p.out)-2]
	return t.Op(",") || t.Op(";") || t.Kind == TWord
}

// joint drops the "and" of "7 boys and girls": behind a number, it joins nouns
// and no answers.
func (p *phraser) joint(t Token) bool {
	if !t.Word("and") || p.last().Kind != TWord || p.at(1).Kind != TWord || !nounFollows([]string{strings.ToLower(p.last().Text)}) || !nounFollows(p.lower[1:]) {
		return false
	}
	for n := 1; n < maxLook; n++ {
		switch next := p.at(n); {
		case next.Kind == TWord && !next.Word("and") && !next.Word("or"):
			continue
		case next.Kind == TNum || next.Kind == TLetter:
			return false
		}
		break
	}
	for i := len(p.out) - 1; i >= max(0, len(p.out)-maxLook); i-- {
		switch b := p.out[i]; {
		case b.Kind == TWord && !b.Word("and") && !b.Word("or"):
			continue
		case b.Kind == TNum:
			p.out = append(p.out, Token{Kind: TWord, Text: "with", at: t.at, Spaced: true})
			p.pos++
			return true
		}
		return false
	}
	return false
}
