package mathverify

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// units maps spellings of units to one name. Two different names are two
// different units; a word that is not here is no unit and is not compared.
var units = func() map[string]string {
	m := map[string]string{}
	for name, spellings := range map[string]string{
		"mm": "mm millimeter millimeters millimetre millimetres", "cm": "cm centimeter centimeters centimetre centimetres", //nolint:misspell // both spellings are read
		"dm": "dm", "m": "m meter meters metre metres", "km": "km kilometer kilometers kilometre kilometres", //nolint:misspell // both spellings are read
		"in": "in inch inches", "ft": "ft foot feet", "yd": "yd yard yards", "mi": "mi mile miles",
		"g": "g gram grams", "kg": "kg kilogram kilograms", "mg": "mg milligram milligrams", "lb": "lb lbs pound pounds", "oz": "oz ounce ounces",
		"s": "s sec secs second seconds", "min": "min mins minute minutes", "h": "h hr hrs hour hours 小时", "day": "day days 天", "week": "week weeks",
		"month": "month months", "year": "year years yr yrs 年",
		"mph": "mph", "am": "am a.m", "pm": "pm p.m", "l": "l liter liters litre litres", "ml": "ml milliliter milliliters", "gal": "gal gallon gallons", //nolint:misspell // both spellings are read
		"degree": "degree degrees deg", "rad": "rad radian radians",
		"dollar": "dollar dollars usd", "cent": "cent cents", "euro": "euro euros eur", "gbp": "gbp quid sterling", "yen": "yen jpy", "rupee": "rupee rupees inr", "yuan": "yuan 元",
		"percent": "percent pct percentage",
		"N":       "newton newtons", "J": "j joule joules", "W": "w watt watts", "Pa": "pa pascal pascals", "Hz": "hz hertz", "V": "volt volts",
		"K": "kelvin", "C": "celsius", "F": "fahrenheit",
	} {
		for _, s := range strings.Fields(spellings) {
			m[s] = name
		}
	}
	return m
}()

// bareUnits are the units that a run of letters without \text is read as; all
// others could be a product of variables.
var bareUnits = map[string]bool{
	"mm": true, "cm": true, "km": true, "kg": true, "mph": true, "ft": true, "lb": true, "lbs": true, "oz": true, "hrs": true, "min": true,
	"mins": true, "sec": true, "inch": true, "deg": true, "pct": true, "rad": true, "yd": true, "hr": true, "ml": true, "mL": true,
}

// wordish guesses whether a run of bare letters is a word rather than a product
// of variables: it is long, or follows white space and reads like English.
func wordish(run string, spaced bool) bool {
	n := len(run)
	if n >= 4 {
		return true
	}
	lower := strings.ToLower(run)
	if n < 4 && lower != run && run == strings.ToUpper(run) {
		return false // NO is a length in geometry
	}
	switch lower {
	case "and", "or", "the", "is", "are", "yes", "no", "odd", "dne", "if", "for", "all", "any", "per", "none", "not", "of", "to", "when", "am", "pm":
		return true
	}
	if bareUnits[run] {
		return true
	}
	return n == 3 && spaced && strings.ContainsAny(lower, "aeiou") && lower != "abc" && lower == run
}

func (l *lexer) word() {
	end := l.pos
	for end < len(l.src) && isLetter(l.src[end]) {
		end++
	}
	if r, _ := utf8.DecodeRuneInString(l.src[end:]); r >= utf8.RuneSelf && unicode.Is(unicode.Latin, r) && asciiOf(r) == 0 {
		l.foreignWord() // "réponse"
		return
	}
	run := l.src[l.pos:end]
	if n := len(l.out); n > 0 && l.out[n-1].kind == tNum && strings.ContainsAny(run[:1], "apAP") {
		for _, spelling := range []string{"a.m", "p.m", "AM", "PM"} {
			if rest, ok := strings.CutPrefix(l.src[l.pos:], spelling); ok && (rest == "" || !isLetter(rest[0])) {
				l.emit(tWord, units[strings.ToLower(spelling)])
				l.pos += len(spelling)
				return
			}
		}
	}
	switch {
	case len(run) == 1:
		l.emit(tLetter, run)
	case plainFunctions[run]:
		l.emit(tFunc, functions[run])
	case run == "sqrt":
		l.emit(tCmd, "sqrt")
	case run == "mod":
		l.emit(tCmd, "mod")
	case run == "pi":
		l.emit(tCmd, "pi")
	case run == "infinity" || run == "inf" || run == "oo":
		l.emit(tCmd, "infty")
	case len(run) > 3 && slices.Contains(greek, run):
		l.emit(tLetter, run)
	case wordish(run, l.spaced || l.pos == 0), l.spaced && len(l.out) > 0 && l.out[len(l.out)-1].kind == tWord:
		l.emit(tWord, run)
	default:
		for _, name := range []string{"sin", "cos", "tan", "ln", "log", "cot", "sec"} {
			if strings.HasPrefix(run, name) {
				l.emit(tFunc, functions[name])
				l.pos += len(name)
				return
			}
		}
		for i := range len(run) {
			l.emit(tLetter, run[i:i+1])
			l.pos++
		}
		return
	}
	l.pos = end
}

// runes that mean what an ASCII character or a command means.
var runeMeaning = map[rune]token{
	'−': {kind: tOp, text: "-"}, '–': {kind: tOp, text: "-"}, '—': {kind: tOp, text: "-"}, '‐': {kind: tOp, text: "-"}, '‑': {kind: tOp, text: "-"}, '﹣': {kind: tOp, text: "-"},
	'×': {kind: tOp, text: "*"}, '·': {kind: tOp, text: "*"}, '⋅': {kind: tOp, text: "*"}, '∙': {kind: tOp, text: "*"}, '∗': {kind: tOp, text: "*"}, '•': {kind: tOp, text: "*"},
	'∘': {kind: tOp, text: "∘"}, '÷': {kind: tOp, text: "/"}, '∕': {kind: tOp, text: "/"}, '⁄': {kind: tOp, text: "/"}, '∶': {kind: tOp, text: ":"}, '∣': {kind: tOp, text: "|"},
	'°': {kind: tOp, text: "°"}, 'º': {kind: tOp, text: "°"}, '˚': {kind: tOp, text: "°"}, '′': {kind: tOp, text: "'"}, '’': {kind: tOp, text: "'"},
	'∞': {kind: tCmd, text: "infty"}, 'π': {kind: tCmd, text: "pi"}, '√': {kind: tCmd, text: "sqrt"}, '±': {kind: tCmd, text: "pm"}, '∓': {kind: tCmd, text: "mp"},
	'∅': {kind: tCmd, text: "emptyset"}, '∪': {kind: tSetOp, text: "cup"}, '∩': {kind: tSetOp, text: "cap"}, '∖': {kind: tSetOp, text: "setminus"},
	'≤': {kind: tRel, text: "<="}, '⩽': {kind: tRel, text: "<="}, '≦': {kind: tRel, text: "<="}, '≥': {kind: tRel, text: ">="}, '⩾': {kind: tRel, text: ">="}, '≧': {kind: tRel, text: ">="},
	'≠': {kind: tRel, text: "!="}, '≈': {kind: tRel, text: "~"}, '∈': {kind: tRel, text: "in"}, '→': {kind: tRel, text: "to"}, '⇒': {kind: tRel, text: "to"}, '≡': {kind: tRel, text: "="},
	'⊆': {kind: tRel, text: "subseteq"}, '⊂': {kind: tRel, text: "subset"}, 'ℝ': {kind: tCmd, text: "reals"},
	'⌊': {kind: tCmd, text: "lfloor"}, '⌋': {kind: tCmd, text: "rfloor"}, '⌈': {kind: tCmd, text: "lceil"}, '⌉': {kind: tCmd, text: "rceil"},
	'∠': {kind: tLetter, text: "angle"}, '△': {kind: tLetter, text: "triangle"}, '…': {kind: tCmd, text: "dots"}, '⋯': {kind: tCmd, text: "dots"},
	'€': {kind: tWord, text: "euro"}, '£': {kind: tWord, text: "gbp"}, '¥': {kind: tWord, text: "yuan"}, '￥': {kind: tWord, text: "yuan"}, '₹': {kind: tWord, text: "rupee"},
	'∉': {kind: tRel, text: "notin"}, '∥': {kind: tRel, text: "parallel"}, '⊥': {kind: tRel, text: "perp"}, '∼': {kind: tRel, text: "~"}, '≅': {kind: tRel, text: "="}, '⟹': {kind: tRel, text: "to"}, '⟶': {kind: tRel, text: "to"},
	'⟨': {kind: tOp, text: "("}, '⟩': {kind: tOp, text: ")"}, '、': {kind: tOp, text: ","}, '。': {kind: tOp, text: "."}, '∑': {kind: tCmd, text: "sum"}, '∫': {kind: tCmd, text: "int"}, '∏': {kind: tCmd, text: "prod"},
	'和': {kind: tWord, text: "and"}, '或': {kind: tWord, text: "or"}, '【': {kind: tOp, text: "["}, '】': {kind: tOp, text: "]"}, '«': {kind: tOp, text: "("},
}

var greekRunes = map[rune]string{
	'α': "alpha", 'β': "beta", 'γ': "gamma", 'δ': "delta", 'ε': "epsilon", 'ϵ': "epsilon", 'ζ': "zeta", 'η': "eta", 'θ': "theta", 'ϑ': "theta",
	'κ': "kappa", 'λ': "lambda", 'μ': "mu", 'µ': "mu", 'ν': "nu", 'ξ': "xi", 'ρ': "rho", 'σ': "sigma", 'τ': "tau", 'φ': "phi", 'ϕ': "phi",
	'χ': "chi", 'ψ': "psi", 'ω': "omega", 'Δ': "Delta", 'Θ': "Theta", 'Λ': "Lambda", 'Σ': "Sigma", 'Φ': "Phi", 'Ψ': "Psi", 'Ω': "Omega", 'ℓ': "ell",
}

var vulgar = map[rune][2]string{
	'½': {"1", "2"}, '⅓': {"1", "3"}, '⅔': {"2", "3"}, '¼': {"1", "4"}, '¾': {"3", "4"}, '⅕': {"1", "5"}, '⅖': {"2", "5"}, '⅗': {"3", "5"},
	'⅘': {"4", "5"}, '⅙': {"1", "6"}, '⅚': {"5", "6"}, '⅛': {"1", "8"}, '⅜': {"3", "8"}, '⅝': {"5", "8"}, '⅞': {"7", "8"}, '⅐': {"1", "7"}, '⅑': {"1", "9"}, '⅒': {"1", "10"},
}

// standardSets are the letters of \mathbb, and higherRoots the signs of roots.
var (
	standardSets = map[rune]string{'ℤ': "Z", 'ℕ': "N", 'ℚ': "Q", 'ℂ': "C"}
	higherRoots  = map[rune]string{'∛': "3", '∜': "4"}
)

const superscripts, subscripts = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "₀₁₂₃₄₅₆₇₈₉"

func (l *lexer) unicode() {
	r, size := utf8.DecodeRuneInString(l.src[l.pos:])
	switch {
	case r == utf8.RuneError && size <= 1:
		l.emit(tLetter, "\ufffd")
	case asciiOf(r) != 0:
		l.ascified()
		return
	case unicode.IsSpace(r), r == '“', r == '”', r == '„':
		l.spaced = true
	case r == 0x200b || r == 0x200c || r == 0x200d || r == 0x2060 || r == 0xfeff || r == 0x00ad || r >= 0x2061 && r <= 0x2064,
		r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfe0e || r == 0xfe0f:
		// invisible
	case vulgar[r] != [2]string{}:
		v := vulgar[r]
		for _, t := range []token{{kind: tCmd, text: "frac"}, {kind: tOp, text: "{"}, {kind: tNum, text: v[0]}, {kind: tOp, text: "}"},
			{kind: tOp, text: "{"}, {kind: tNum, text: v[1]}, {kind: tOp, text: "}"}} {
			l.emit(t.kind, t.text)
		}
	case strings.ContainsRune(superscripts, r):
		l.script(superscripts, "0123456789+-n", "^")
		return
	case strings.ContainsRune(subscripts, r):
		l.script(subscripts, "0123456789", "_")
		return
	case higherRoots[r] != "":
		for _, t := range []token{{kind: tCmd, text: "sqrt"}, {kind: tOp, text: "["}, {kind: tNum, text: higherRoots[r]}, {kind: tOp, text: "]"}} {
			l.emit(t.kind, t.text)
		}
	case standardSets[r] != "":
		l.emit(tCmd, "mathbb")
		l.emit(tLetter, standardSets[r])
	default:
		if t, ok := runeMeaning[r]; ok {
			l.emit(t.kind, t.text)
		} else if name := greekRunes[r]; name != "" {
			l.emit(tLetter, name)
		} else if unicode.Is(unicode.Han, r) || unicode.IsLetter(r) {
			l.foreignWord()
			return
		} else {
			l.emit(tLetter, string(r))
		}
	}
	l.pos += size
}

// digitValue returns the value of a decimal digit of any script: they stand in
// runs of ten that start at zero.
func digitValue(r rune) int {
	n := 0
	for n < 9 && unicode.IsDigit(r-rune(n)-1) {
		n++
	}
	return n % 10
}

func (l *lexer) script(from, to, opener string) {
	l.emit(tOp, opener)
	l.emit(tOp, "{")
	var text []rune
	for l.pos < len(l.src) {
		r, size := utf8.DecodeRuneInString(l.src[l.pos:])
		i := strings.IndexRune(from, r)
		if i < 0 {
			break
		}
		text = append(text, rune(to[utf8.RuneCountInString(from[:i])]))
		l.pos += size
	}
	inner := &lexer{src: string(text)}
	for inner.pos < len(inner.src) {
		inner.step()
	}
	l.out = append(l.out, inner.out...)
	l.emit(tOp, "}")
}

// asciiOf is the character that a fullwidth form, a letter or digit of the
// mathematical alphabets or a digit of another script stands for, or 0.
func asciiOf(r rune) byte {
	switch {
	case r >= 0xFF01 && r <= 0xFF5E:
		return byte(r - 0xFF01 + '!')
	case r >= 0x1D400 && r <= 0x1D6A3:
		n := (r - 0x1D400) % 52
		if n < 26 {
			return byte('A' + n)
		}
		return byte('a' + n - 26)
	case r >= 0x1D7CE && r <= 0x1D7FF:
		return byte('0' + (r-0x1D7CE)%10)
	case r == 'ℎ':
		return 'h'
	case r >= utf8.RuneSelf && unicode.IsDigit(r):
		return byte('0' + digitValue(r))
	}
	return 0
}

// ascified turns a run of such characters into ASCII and reads that.
func (l *lexer) ascified() {
	var text []byte
	for l.pos < len(l.src) {
		r, size := utf8.DecodeRuneInString(l.src[l.pos:])
		c := asciiOf(r)
		if c == 0 {
			break
		}
		text = append(text, c)
		l.pos += size
	}
	inner := &lexer{src: string(text), spaced: l.spaced}
	for inner.pos < len(inner.src) {
		inner.step()
	}
	if len(l.out)+len(inner.out) > maxTokens {
		l.err = errLimit
		return
	}
	l.out = append(l.out, inner.out...)
	l.spaced = false
}

func (l *lexer) foreignWord() {
	end := l.pos
	for end < len(l.src) {
		r, size := utf8.DecodeRuneInString(l.src[end:])
		if !unicode.IsLetter(r) || r == '和' || r == '或' || greekRunes[r] != "" || runeMeaning[r].text != "" || asciiOf(r) != 0 || standardSets[r] != "" {
			break
		}
		end += size
	}
	if end == l.pos {
		_, size := utf8.DecodeRuneInString(l.src[l.pos:])
		end += size
	}
	l.emit(tWord, l.src[l.pos:end])
	l.pos = end
}
