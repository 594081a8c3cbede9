package reading

import (
	"strings"
)

// phrase is what a run of words stands for.
type phrase struct {
	kind kind
	text string
	// where says beside what the phrase is one: "7 over 2", but not "over".
	where place
}

type place uint8

const (
	anywhere place = iota
	between        // two quantities
	before         // a quantity
	behind         // a quantity
)

// folds are the factors of "twice" and its like.
var folds = map[string]string{"twofold": "2", "threefold": "3", "fourfold": "4"}

// maxPhrase is how many words a phrase has at most, maxLook how far around it is
// looked.
const (
	maxPhrase = 7
	maxLook   = 32
)

// phraseTable holds the phrases by their words. Longer ones are preferred.
var phraseTable = func() map[string][]phrase {
	m := map[string][]phrase{}
	put := func(kind kind, text string, where place, spellings ...string) {
		for _, s := range spellings {
			m[s] = append(m[s], phrase{kind, text, where})
		}
	}
	for _, be := range []string{"", "is ", "are ", "be ", "must be ", "strictly "} {
		put(TRel, ">", before, be+"greater than", be+"more than", be+"larger than", be+"bigger than", be+"above", be+"strictly greater than", be+"in excess of")
		put(TRel, "<", before, be+"less than", be+"fewer than", be+"smaller than", be+"below", be+"under", be+"strictly less than")
		put(TRel, ">=", before, be+"at least", be+"no less than", be+"not less than", be+"no fewer than", be+"not fewer than", be+"greater than or equal to", be+"more than or equal to", be+"not smaller than", be+"not below", be+"a minimum of")
		put(TRel, "<=", before, be+"at most", be+"no more than", be+"not more than", be+"no greater than", be+"not greater than", be+"less than or equal to", be+"up to", be+"not above", be+"a maximum of")
		put(TRel, "!=", before, be+"not equal to", be+"different from")
		put(TRel, "=", between, be+"equal to", be+"exactly")
		put(TRel, "~", between, be+"approximately", be+"about", be+"roughly", be+"approximately equal to", be+"around")
	}
	put(TOp, "/", between, "divided by", "over", "out of")
	put(TRel, ">", before, "exceeds", "over")
	put(TRel, "!=", before, "does not equal", "cannot be", "is not")
	put(TRel, "=", between, "equals", "is", "are", "was", "be")
	put(TRel, "in", between, "belongs to", "is in", "lies in", "is an element of")
	put(TOp, "+", between, "plus", "added to", "and another")
	put(TOp, "*", between, "times", "multiplied by")
	put(TOp, ":", between, "to", "is to")
	put(TOp, "-", before, "minus", "negative", "the opposite of", "opposite of", "the negative of")
	put(TOp, "^", between, "to the power of", "to the power", "raised to the power of", "raised to", "raised to the", "to the")
	put(tCmd, "mod", between, "mod", "modulo", "modulus")
	put(tCmd, "choose", between, "choose")
	put(tCmd, "pm", before, "plus or minus", "plus/minus")
	put(tFunc, "square", before, "square of", "the square of")
	put(tFunc, "cube", before, "cube of", "the cube of")
	put(tFunc, "reciprocal", before, "reciprocal of", "the reciprocal of", "inverse of", "the inverse of", "multiplicative inverse of", "the multiplicative inverse of")
	put(tCmd, "sqrt", before, "square root of", "the square root of", "root of", "the root of")
	put(tCmd, "cbrt", before, "cube root of", "the cube root of")
	for name, spelling := range map[string]string{"log": "log logarithm", "ln": "ln", "sin": "sin sine", "cos": "cos cosine", "tan": "tan tangent"} {
		for _, s := range strings.Fields(spelling) {
			put(tFunc, name, before, s+" of", "the "+s+" of")
		}
	}
	put(tFunc, "ln", before, "natural log of", "the natural log of", "natural logarithm of", "the natural logarithm of")
	put(tFunc, "abs", before, "absolute value of", "the absolute value of")
	put(TOp, "!", behind, "factorial")
	put(tCmd, "half", before, "half of", "half")
	put(tCmd, "twofold", before, "twice", "double")
	put(tCmd, "threefold", before, "thrice", "triple")
	put(tCmd, "fourfold", before, "quadruple")
	put(TWord, "at-least", anywhere, "at least")
	put(TWord, "percent", anywhere, "per cent", "percentage points")
	put(TPost, ">=", behind, "or more", "or greater", "or above", "or higher", "and above", "and up", "or over", "and more", "and over", "or larger", "and higher", "and beyond", "or up", "at least", "at minimum", "at the least")
	put(TPost, "<=", behind, "or less", "or fewer", "or below", "and below", "or lower", "or smaller", "and under", "or under", "and less", "and fewer", "at most", "at maximum", "at the most", "tops")
	put(TPost, "neg", behind, "below zero", "under zero")
	put(TRel, "in", between, "in")
	put(tCmd, "reals", anywhere, "all real numbers", "all reals", "the set of all real numbers", "the set of real numbers", "every real number", "all real values")
	put(tCmd, "infty", anywhere, "infinity", "positive infinity")
	put(tCmd, "emptyset", anywhere, "empty set", "the empty set")
	put(tSetOp, "setminus", between, "except", "except for", "excluding", "other than", "without", "but not")
	return m
}()

// startsQuantity says whether a quantity may begin with this token.
func startsQuantity(t Token) bool {
	switch t.Kind {
	case TNum, TLetter, tFunc:
		return true
	case TOp:
		return strings.Contains("([{|-+", t.Text) || t.Text == `\{`
	case tCmd:
		switch t.Text {
		case "end", "rfloor", "rceil", "not", "mod", "pmod", "and", "or", "over", "choose", "dots":
			return false
		}
		return true
	}
	return false
}

// beginners are the words with which a phrase or a numeral can begin.
var beginners = func() map[string]bool {
	m := map[string]bool{}
	for spelling := range phraseTable {
		first, _, _ := strings.Cut(spelling, " ")
		m[first] = true
	}
	for w := range smallNumerals {
		m[w] = true
	}
	for _, w := range strings.Fields("a an and half point of in where for with when if all any every 分之 百分之") {
		m[w] = true
	}
	return m
}()

// mayBegin says whether a phrase can begin with this token.
func mayBegin(t Token) bool {
	return t.Kind == TWord && beginners[strings.ToLower(t.Text)] || t.Is(TRel, "in")
}

// asides says whether brackets with words or a restatement in them follow something.
func asides(toks []Token) bool {
	for i := 1; i+1 < len(toks); i++ {
		if next := toks[i+1]; toks[i].Op("(") && (next.Kind == TWord || next.Is(TRel, "~") || next.Is(TRel, "=") || toks[i-1].worded) {
			return true
		}
	}
	return false
}
