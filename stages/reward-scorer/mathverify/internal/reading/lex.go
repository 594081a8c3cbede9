package reading

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// Limits on what is read. They bound time and memory for hostile text.
const (
	maxBytes   = 400_000 // of one answer
	maxTokens  = 60_000  // of one answer
	maxWords   = 4_000   // of one answer
	maxDigits  = 4_000   // of one number that is written out; longer ones are only reduced modulo primes
	maxDepth   = 1_200   // of nesting
	maxName    = 4_000   // bytes of one symbol, to which more is attached
	maxCommand = 24      // bytes of a known command
)

// ErrLimit says that an answer is larger than a limit; it is then only
// compared as text.
var ErrLimit = errors.New("larger than the limits of reading")

// raisedPrimes are the signs in f^\prime and f^{\prime\prime}, which are written as apostrophes, too.
var raisedPrimes = regexp.MustCompile(`\^\s*(\\prime|\{\s*(\\prime\s*)+\})`)

// composed is what follows \circ in f\circ g.
var composed = regexp.MustCompile(`^\s*[a-zA-Z(\\]`)

// mode is what the lexer is inside of: \text{…}, or a formula in it.
type mode struct {
	text  bool
	depth int // of braces at which it ends
}

// lexer cuts an answer into tokens in one pass. It has no second look at any
// text: what it is inside of stands on a stack.
type lexer struct {
	src          string
	pos          int
	spaced, wide bool
	modes        []mode
	depth        int // open braces
	environments int // open environments
	words        int
	steps        int
	out          []Token
	err          error
}

// Lex cuts an answer into tokens. It takes linear time. Anything that it does
// not know becomes a letter or word of its own, so that nothing is dropped
// silently.
func Lex(src string) ([]Token, error) {
	if len(src) > maxBytes {
		return nil, ErrLimit
	}
	if strings.Contains(src, `\\begin{`) { // every backslash was doubled
		src = strings.ReplaceAll(src, `\\`, `\`)
	}
	if strings.Contains(src, `\prime`) {
		src = raisedPrimes.ReplaceAllStringFunc(src, func(s string) string { return strings.Repeat("'", strings.Count(s, `\prime`)) })
	}
	l := &lexer{src: src, out: make([]Token, 0, len(src)/2+4)}
	for l.pos < len(l.src) && l.err == nil {
		l.step()
	}
	if l.err != nil {
		return nil, l.err
	}
	return phrases(l.out), nil
}

func (l *lexer) emit(k kind, text string) {
	if k == TWord {
		l.words++
	}
	if len(l.out) >= maxTokens || l.words > maxWords {
		l.err = ErrLimit
		return
	}
	if n := len(l.out); k == TRel && n > 0 && l.out[n-1].cmd("not") && negated[text] != "" {
		l.out, text = l.out[:n-1], negated[text]
	}
	if n := len(l.out); n > 1 && l.out[n-1].Op(".") && (k == tCmd && text == "end" || k == TOp && (text == `\\` || text == "&")) {
		l.out = l.out[:n-1] // a full stop in a matrix or a list of cases
	}
	l.out = append(l.out, Token{Kind: k, Spaced: l.spaced, wide: l.wide, Text: text, at: l.pos})
	l.spaced, l.wide = false, false
}

func (l *lexer) inText() bool { return len(l.modes) > 0 && l.modes[len(l.modes)-1].text }

func (l *lexer) last() Token {
	if len(l.out) == 0 {
		return Token{}
	}
	return l.out[len(l.out)-1]
}

func (l *lexer) step() {
	l.steps++
	c := l.src[l.pos]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '~':
		l.pos++
		l.spaced = true
	case c >= '0' && c <= '9', c == '.' && l.pos+1 < len(l.src) && expr.IsDigit(l.src[l.pos+1]):
		l.number()
	case c == '\\':
		l.command()
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		l.letters()
	case c == '{' || c == '}' || c == '$':
		l.boundary(c)
	case c < utf8.RuneSelf:
		l.ascii(c)
	default:
		l.unicode()
	}
}

// boundary reads what opens and closes groups, text and formulas.
func (l *lexer) boundary(c byte) {
	switch c {
	case '{':
		l.depth++
		if !l.inText() {
			l.emit(TOp, "{")
		}
	case '}':
		for n := len(l.modes); n > 0 && l.modes[n-1].depth == l.depth; n-- { // also a formula that text does not close
			text := l.modes[n-1].text
			l.modes = l.modes[:n-1]
			if text {
				l.pos++
				return
			}
		}
		l.depth = max(0, l.depth-1)
		if !l.inText() {
			l.shut()
		}
	case '$':
		l.spaced = true
		switch n := len(l.modes); {
		case l.inText():
			l.modes = append(l.modes, mode{depth: l.depth})
		case n > 0:
			l.modes = l.modes[:n-1]
		}
	}
	l.pos++
}

// shut emits a closing brace: a full stop before it ends nothing, and braces
// around one sign, as in 3{:}00, only space it.
func (l *lexer) shut() {
	n := len(l.out)
	if n > 1 && l.out[n-1].Op(".") && !l.out[n-2].Op("{") {
		l.out = l.out[:n-1]
	} else if n > 1 && l.out[n-2].Op("{") && (l.out[n-1].Op(":") || l.out[n-1].Op("-") && n > 2 && !l.out[n-3].Op("^") && !l.out[n-3].Op("_") && l.out[n-3].Kind != tCmd || l.out[n-1].Is(TRel, "=")) {
		l.out[n-2] = l.out[n-1]
		l.out = l.out[:n-1]
		return
	}
	l.emit(TOp, "}")
}

// lettersAt is the run of letters from there on.
func (l *lexer) lettersAt(at int) string {
	end := at
	for end < len(l.src) && expr.IsLetter(l.src[end]) {
		end++
	}
	return l.src[at:end]
}

func (l *lexer) number() {
	start, dot := l.pos, false
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		if c == '.' && !dot && l.pos+1 < len(l.src) && expr.IsDigit(l.src[l.pos+1]) {
			dot = true
		} else if !expr.IsDigit(c) {
			break
		}
		l.pos++
	}
	text := l.src[start:l.pos]
	// "1e3", "2.5E-2": only directly after the digits and with digits behind,
	// of any number: an exponent cut short would leave Euler's e as a factor.
	if rest := l.src[l.pos:]; len(rest) > 1 && (rest[0] == 'e' || rest[0] == 'E') {
		n := 1
		if rest[n] == '-' || rest[n] == '+' {
			n++
		}
		first := n
		for n < len(rest) && expr.IsDigit(rest[n]) {
			n++
		}
		if n > first && (n == len(rest) || !expr.IsLetter(rest[n])) {
			text += "e" + strings.TrimPrefix(rest[1:n], "+")
			l.pos += n
		}
	}
	l.emit(TNum, text)
	if !dot && l.pos+2 <= len(l.src) && ordinalEnding(text, l.src[l.pos:min(len(l.src), l.pos+3)]) { // "July 4th"
		l.pos += 2
	}
}

// ordinalEnding says whether the letters behind a number make it an ordinal.
func ordinalEnding(digits, rest string) bool {
	if len(rest) > 2 && expr.IsLetter(rest[2]) {
		return false
	}
	want := "th"
	if n := len(digits); n == 1 || digits[n-2] != '1' {
		switch digits[n-1] {
		case '1':
			want = "st"
		case '2':
			want = "nd"
		case '3':
			want = "rd"
		}
	}
	return strings.EqualFold(rest[:2], want)
}

func (l *lexer) ascii(c byte) {
	next := byte(0)
	if l.pos+1 < len(l.src) {
		next = l.src[l.pos+1]
	}
	two := func(k kind, text string) { l.emit(k, text); l.pos += 2 }
	switch {
	case c == '*' && next == '*' && !l.inText():
		two(TOp, "^")
		return
	case c == '<' && next == '=', c == '=' && next == '<':
		two(TRel, "<=")
		return
	case c == '>' && next == '=':
		two(TRel, ">=")
		return
	case c == '!' && next == '=', c == '<' && next == '>':
		two(TRel, "!=")
		return
	case c == '=' && next == '=':
		two(TRel, "=")
		return
	case c == '=' && strings.HasPrefix(l.src[l.pos:], "=/="):
		l.emit(TRel, "!=")
		l.pos += 3
		return
	case c == '.' && strings.HasPrefix(l.src[l.pos:], "..."):
		l.emit(tCmd, "dots")
		for l.pos < len(l.src) && l.src[l.pos] == '.' {
			l.pos++
		}
		return
	case c == '-' && next == '>':
		two(TRel, "to")
		return
	}
	switch c {
	case '=', '<', '>':
		l.emit(TRel, l.src[l.pos:l.pos+1])
	case '`', '"', '#', '@':
		l.spaced = true // delimiters of mathematics or of nothing
	case '.', '!', '?', '\'':
		if l.last().Kind == TWord && !l.spaced && (c == '.' || l.inText()) { // the end of a sentence or of "sq."
			l.spaced = true
			break
		}
		l.emit(TOp, l.src[l.pos:l.pos+1])
	default:
		if c >= ' ' {
			l.emit(TOp, l.src[l.pos:l.pos+1])
		}
	}
	l.pos++
}

// command reads what starts with a backslash.
func (l *lexer) command() {
	if l.pos+1 >= len(l.src) {
		l.pos++
		return
	}
	c := l.src[l.pos+1]
	if !expr.IsLetter(c) {
		l.escaped(c)
		return
	}
	name := l.lettersAt(l.pos + 1)
	if !known(name) {
		// "\vertx" or "\cdotx": the longest command that it starts with.
		for cut := min(len(name)-1, maxCommand); cut >= 2; cut-- {
			if known(name[:cut]) {
				name = name[:cut]
				break
			}
		}
	}
	l.named(name, l.pos+1+len(name))
}

func known(name string) bool {
	return len(name) <= maxCommand && commands[name].class != unknownCommand
}

func (l *lexer) named(name string, end int) {
	m := commands[name]
	switch m.class {
	case looks:
		l.pos = end
		switch rest := l.src[end:]; {
		case name != "left" && name != "right" || rest == "":
		case rest[0] == '.':
			l.pos++
		case rest[0] == '<', rest[0] == '>':
			l.emit(TOp, map[byte]string{'<': "(", '>': ")"}[rest[0]])
			l.pos++
		}
	case space:
		l.pos, l.spaced, l.wide = end, true, l.wide || name == "quad" || name == "qquad"
		if name == "hspace" || name == "vspace" {
			l.skipGroup()
		}
	case dropped:
		l.pos = end
		l.skipGroup()
	case textual:
		l.pos = end
		l.text(name)
	case symbolic:
		if n := len(l.out); name == "circ" && n > 0 && l.out[n-1].Kind == TLetter && composed.MatchString(l.src[end:]) {
			m.text = "∘" // no degrees, and f∘g is no product
		}
		switch {
		case m.kind == tCmd && m.text == "begin":
			l.environments++
		case m.kind == tCmd && m.text == "end":
			l.environments = max(0, l.environments-1)
		}
		l.emit(m.kind, m.text)
		l.pos = end
	default:
		l.emit(TLetter, `\`+name)
		l.pos = end
	}
}

func (l *lexer) escaped(c byte) {
	switch c {
	case '{', '}':
		l.emit(TOp, `\`+string(c))
	case '%':
		l.emit(TOp, "%")
	case '\\':
		// "\\frac" is a backslash too many, "\\ x" ends a line.
		if name := l.lettersAt(l.pos + 2); len(name) > 1 && known(name) && l.environments == 0 {
			l.pos++
			return
		}
		l.emit(TOp, `\\`)
	case '|':
		l.emit(tCmd, "norm")
	case '$':
		// A sign of money stands before or behind a number.
		if rest := strings.TrimLeft(l.src[l.pos+2:min(len(l.src), l.pos+8)], ` \,!~`); rest != "" && (expr.IsDigit(rest[0]) || rest[0] == '.') {
			l.emit(TWord, "dollar")
		} else {
			l.spaced = true
		}
	case '!': // draws together: "32,\! 349" is one number
		l.pos += 2
		for l.pos < len(l.src) && l.src[l.pos] == ' ' {
			l.pos++
		}
		l.spaced = false
		return
	case ' ', ',', ';', ':', '>', '\n', '\t', '/', '(', ')', '[', ']', '-', '_', '&', '#':
		l.spaced = true
	default:
		l.pos++ // a stray backslash
		return
	}
	l.pos += 2
}

// skipGroup moves behind the braces at this place, or behind one character.
func (l *lexer) skipGroup() {
	for l.pos < len(l.src) && (l.src[l.pos] == ' ' || l.src[l.pos] == '*') {
		l.pos++
	}
	if l.pos >= len(l.src) {
		return
	}
	if l.src[l.pos] != '{' {
		_, n := utf8.DecodeRuneInString(l.src[l.pos:])
		l.pos += n
		return
	}
	depth := 0
	for ; l.pos < len(l.src); l.pos++ {
		switch l.src[l.pos] {
		case '\\':
			l.pos++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				l.pos++
				return
			}
		}
	}
	l.pos = len(l.src)
}

// text enters the braces of \text and its like. Upright names, as in
// \operatorname{foo} and \mathrm{d}, are read at once.
func (l *lexer) text(command string) {
	at := l.pos
	for at < len(l.src) && (l.src[at] == ' ' || l.src[at] == '*') {
		at++
	}
	if at >= len(l.src) || l.src[at] != '{' {
		return // it holds one token, which is read as it is
	}
	if name := l.lettersAt(at + 1); name != "" && at+1+len(name) < len(l.src) && l.src[at+1+len(name)] == '}' && l.upright(command, name, at+2+len(name)) {
		l.pos = at + 2 + len(name)
		return
	}
	l.pos = at + 1
	l.depth++
	l.modes = append(l.modes, mode{text: true, depth: l.depth})
}

// upright emits a name that is the whole content of its braces, if it is not
// words: a function, or a letter.
func (l *lexer) upright(command, name string, after int) bool {
	quantity := endsQuantity(l.last())
	switch {
	case name == "mod":
		l.emit(tCmd, name)
	case functions[name] != "" && (!quantity || units[name] == "" || l.argumentAt(after)):
		l.emit(tFunc, functions[name])
	case len(name) > 1 && units[name] == "" && (command == "mathrm" && l.bracketAt(after) || command == "operatorname" && l.argumentAt(after) && name != "and" && name != "or"):
		l.emit(TLetter, `\`+name) // an unknown function must not be dropped like a remark
	case command == "mathrm" && (name == "e" || name == "i" || name == "d") || command == "operatorname" && len(name) == 1:
		l.emit(TLetter, name)
	default:
		return false
	}
	return true
}

// bracketAt says whether a round bracket opens at this offset.
func (l *lexer) bracketAt(at int) bool {
	return strings.HasPrefix(l.src[at:], "(") || strings.HasPrefix(l.src[at:], `\left(`)
}

// argumentAt says whether a quantity begins there.
func (l *lexer) argumentAt(at int) bool {
	rest := strings.TrimLeft(l.src[at:min(len(l.src), at+20)], " {")
	for _, name := range []string{`\frac`, `\sqrt`, `\begin`, `\left`} {
		if strings.HasPrefix(rest, name) {
			return true
		}
	}
	return rest != "" && (rest[0] == '(' || expr.IsDigit(rest[0]) || expr.IsLetter(rest[0]))
}

// endsQuantity says whether a quantity may end with this token.
func endsQuantity(t Token) bool {
	switch t.Kind {
	case TNum, TLetter:
		return true
	case TOp:
		return strings.Contains(")]}|%°!'", t.Text) || t.Text == `\}`
	case tCmd:
		return t.Text == "pi" || t.Text == "infty" || t.Text == "dots" || t.Text == "rfloor" || t.Text == "rceil" || t.Text == "norm" || t.Text == "emptyset"
	}
	return false
}
