package mathverify

import (
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on what is read. They bound time and memory for hostile text.
const (
	maxBytes  = 400_000 // of one answer
	maxTokens = 60_000  // of one answer
	maxDigits = 4_000   // of one number that is written out; longer ones are only reduced modulo primes
	maxDepth  = 1_200   // of nesting
	maxName   = 4_000   // bytes of one symbol, to which more is attached
)

// errLimit says that an answer is larger than a limit; it is then only
// compared as text.
var errLimit = errors.New("larger than the limits of reading")

// raisedPrimes are the signs in f^\prime and f^{\prime\prime}, which are written as apostrophes, too.
var raisedPrimes = regexp.MustCompile(`\^\s*(\\prime|\{\s*(\\prime\s*)+\})`)

// composed is what follows \circ in f\circ g.
var composed = regexp.MustCompile(`^\s*[a-zA-Z(\\]`)

type lexer struct {
	src    string
	pos    int
	spaced bool
	wide   bool
	out    []token
	err    error
}

// lex cuts an answer into tokens. It takes linear time. Anything that it does
// not know becomes a letter of its own, so that nothing is dropped silently.
func lex(src string) ([]token, error) {
	if len(src) > maxBytes {
		return nil, errLimit
	}
	if strings.Contains(src, `\\begin{`) { // every backslash was doubled
		src = strings.ReplaceAll(src, `\\`, `\`)
	}
	if strings.Contains(src, `\prime`) {
		src = raisedPrimes.ReplaceAllStringFunc(src, func(s string) string { return strings.Repeat("'", strings.Count(s, `\prime`)) })
	}
	l := &lexer{src: src, out: make([]token, 0, len(src)/2+4)}
	for l.pos < len(l.src) && l.err == nil {
		l.step()
	}
	if l.err != nil {
		return nil, l.err
	}
	return l.out, nil
}

func (l *lexer) emit(k kind, text string) {
	if len(l.out) >= maxTokens {
		l.err = errLimit
		return
	}
	if n := len(l.out); k == tRel && n > 0 && l.out[n-1].cmd("not") && negated[text] != "" {
		l.out, text = l.out[:n-1], negated[text]
	}
	l.out = append(l.out, token{kind: k, spaced: l.spaced, wide: l.wide, text: text, at: l.pos})
	l.spaced, l.wide = false, false
}

func (l *lexer) step() {
	c := l.src[l.pos]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '~':
		l.pos++
		l.spaced = true
	case c >= '0' && c <= '9', c == '.' && l.pos+1 < len(l.src) && isDigit(l.src[l.pos+1]):
		l.number()
	case c == '\\':
		l.command()
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		l.word()
	case c < utf8.RuneSelf:
		l.ascii(c)
	default:
		l.unicode()
	}
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func (l *lexer) number() {
	start, dot := l.pos, false
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		if c == '.' && !dot && l.pos+1 < len(l.src) && isDigit(l.src[l.pos+1]) {
			dot = true
		} else if !isDigit(c) {
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
		for n < len(rest) && isDigit(rest[n]) {
			n++
		}
		if n > first && (n == len(rest) || !isLetter(rest[n])) {
			text += "e" + strings.TrimPrefix(rest[1:n], "+")
			l.pos += n
		}
	}
	l.emit(tNum, text)
}

func (l *lexer) ascii(c byte) {
	next := byte(0)
	if l.pos+1 < len(l.src) {
		next = l.src[l.pos+1]
	}
	two := func(k kind, text string) { l.emit(k, text); l.pos += 2 }
	switch {
	case c == '*' && next == '*':
		two(tOp, "^")
		return
	case c == '<' && next == '=', c == '=' && next == '<':
		two(tRel, "<=")
		return
	case c == '>' && next == '=':
		two(tRel, ">=")
		return
	case c == '!' && next == '=', c == '<' && next == '>':
		two(tRel, "!=")
		return
	case c == '=' && next == '=':
		two(tRel, "=")
		return
	case c == '=' && strings.HasPrefix(l.src[l.pos:], "=/="):
		l.emit(tRel, "!=")
		l.pos += 3
		return
	case c == '.' && strings.HasPrefix(l.src[l.pos:], "..."):
		l.emit(tCmd, "dots")
		for l.pos < len(l.src) && l.src[l.pos] == '.' {
			l.pos++
		}
		return
	case c == '-' && next == '>':
		two(tRel, "to")
		return
	}
	switch c {
	case '=', '<', '>':
		l.emit(tRel, l.src[l.pos:l.pos+1])
	case '$', '`', '"', '#', '@':
		l.spaced = true // delimiters of mathematics or of nothing
	default:
		if c >= ' ' {
			l.emit(tOp, l.src[l.pos:l.pos+1])
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
	if !isLetter(c) {
		l.escaped(c)
		return
	}
	end := l.pos + 1
	for end < len(l.src) && isLetter(l.src[end]) {
		end++
	}
	name := l.src[l.pos+1 : end]
	if !known(name) {
		// "\vertx" or "\cdotx": the longest command that it starts with.
		for cut := len(name) - 1; cut >= 2; cut-- {
			if known(name[:cut]) {
				name, end = name[:cut], l.pos+1+cut
				break
			}
		}
	}
	l.named(name, end)
}

func known(name string) bool {
	return commands[name].class != unknownCommand
}

// class of a command.
type class uint8

const (
	unknownCommand class = iota
	looks                // ignored
	space
	colour
	textual
	symbolic // becomes one token
)

type meaning struct {
	class class
	kind  kind
	text  string
}

// commands is all tables of commands in one, so that each command is looked up
// once. Later tables do not overrule earlier ones.
var commands = func() map[string]meaning {
	m := map[string]meaning{"displaymode": {class: symbolic, kind: tLetter, text: `\displaymode`}, "color": {class: colour}, "textcolor": {class: colour}}
	put := func(name string, v meaning) {
		if m[name].class == unknownCommand {
			m[name] = v
		}
	}
	for c, names := range map[class]map[string]bool{looks: ignored, space: spaces, textual: textCommands} {
		for name := range names {
			put(name, meaning{class: c})
		}
	}
	for _, table := range []struct {
		kind  kind
		names map[string]string
	}{{tRel, relations}, {tSetOp, setOps}, {tCmd, grammar}, {tOp, operators}, {tFunc, functions}, {tLetter, symbols}, {tWord, currencies}} {
		for name, text := range table.names {
			if text == "accent" {
				text = "accent:" + name
			}
			put(name, meaning{symbolic, table.kind, text})
		}
	}
	return m
}()

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
			l.emit(tOp, map[byte]string{'<': "(", '>': ")"}[rest[0]])
			l.pos++
		}
	case space:
		l.pos, l.spaced, l.wide = end, true, l.wide || name == "quad" || name == "qquad"
		if name == "hspace" || name == "vspace" {
			_, l.pos = l.group(end)
		}
	case colour:
		_, l.pos = l.group(end)
	case textual:
		content, after := l.group(end)
		l.text(name, content, after)
		l.pos = after
	case symbolic:
		if n := len(l.out); name == "circ" && n > 0 && l.out[n-1].kind == tLetter && composed.MatchString(l.src[end:]) {
			m.text = "∘" // no degrees, and f∘g is no product
		}
		l.emit(m.kind, m.text)
		l.pos = end
	default:
		l.emit(tLetter, `\`+name)
		l.pos = end
	}
}

func (l *lexer) escaped(c byte) {
	switch c {
	case '{', '}':
		l.emit(tOp, `\`+string(c))
	case '%':
		l.emit(tOp, "%")
	case '\\':
		// "\\frac" is a backslash too many, "\\ x" ends a line.
		if rest := l.src[l.pos+2:]; len(rest) > 1 && isLetter(rest[0]) && isLetter(rest[1]) {
			end := 0
			for end < len(rest) && isLetter(rest[end]) {
				end++
			}
			if known(rest[:end]) && !insideEnvironment(l.out) {
				l.pos++
				return
			}
		}
		l.emit(tOp, `\\`)
	case '|':
		l.emit(tCmd, "norm")
	case ' ', ',', ';', ':', '!', '>', '\n', '\t', '/', '(', ')', '[', ']', '$', '-':
		switch c {
		case '!': // draws together: "32,\! 349" is one number
			l.pos += 2
			for l.pos < len(l.src) && l.src[l.pos] == ' ' {
				l.pos++
			}
			l.spaced = false
			return
		case '(', ')', '[', ']':
			// Delimiters of mathematics. A bracket of an interval is never escaped.
			l.spaced = true
		default:
			l.spaced = true
		}
	case '_', '&', '#':
		l.spaced = true
	default:
		l.pos++ // a stray backslash
		return
	}
	l.pos += 2
}

func insideEnvironment(out []token) bool {
	depth := 0
	for i := len(out) - 1; i >= 0 && i > len(out)-4000; i-- {
		if out[i].cmd("end") {
			depth++
		} else if out[i].cmd("begin") {
			if depth == 0 {
				return true
			}
			depth--
		}
	}
	return false
}

// group returns the braces' content from at on and the offset behind it. An
// unclosed group runs to the end; without a group it is the next character.
func (l *lexer) group(at int) (string, int) {
	for at < len(l.src) && l.src[at] == ' ' {
		at++
	}
	if at >= len(l.src) {
		return "", at
	}
	if l.src[at] != '{' {
		_, n := utf8.DecodeRuneInString(l.src[at:])
		return l.src[at : at+n], at + n
	}
	depth := 0
	for i := at; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return l.src[at+1 : i], i + 1
			}
		}
	}
	return l.src[at+1:], len(l.src)
}

// text emits the content of \text and its like: a number inside is a number,
// a single letter inside \mathrm a symbol, anything else a word.
func (l *lexer) text(command, content string, after int) {
	if l.unitText(content) {
		return
	}
	if strings.ContainsAny(content, `0123456789\$`) || strings.ContainsAny(content, "+-*/=<>^") && !strings.Contains(content, " ") {
		inner := &lexer{src: content, spaced: l.spaced}
		for inner.pos < len(inner.src) && inner.err == nil {
			inner.step()
		}
		if len(l.out)+len(inner.out) > maxTokens {
			l.err = errLimit
			return
		}
		l.out = append(l.out, inner.out...)
		return
	}
	word := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '~' || unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, content))
	switch {
	case word == "":
		l.spaced = true
	case word == "," || word == ";":
		l.emit(tOp, word)
	case word == "mod":
		l.emit(tCmd, word)
	case functions[word] != "":
		l.emit(tFunc, functions[word])
	case len(word) > 1 && units[word] == "" && (command == "mathrm" && l.bracketAt(after) || command == "operatorname" && l.argumentAt(after) && word != "and" && word != "or"):
		l.emit(tLetter, `\`+word) // an unknown function must not be dropped like a remark
	case command == "mathrm" && (word == "e" || word == "i" || word == "d") || command == "operatorname" && len(word) == 1:
		l.emit(tLetter, word)
	default:
		l.emit(tWord, word)
	}
}
