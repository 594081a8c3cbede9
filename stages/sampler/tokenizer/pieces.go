package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// cutter cuts a text into the pieces within which tokens are merged. The pieces, joined,
// are the text.
type cutter func(text string, piece func(string))

// The patterns that tokenizer.json files are known to split by. Hugging Face runs them as
// regular expressions; (?!\S) is beyond Go's, and hand-written code is faster besides.
var patterns = map[string]cutter{
	// GPT-2, and every ByteLevel step with use_regex.
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`: cutGPT2,
	// Qwen 2, 2.5 and 3.
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: words{digits: 1}.cut,
	// Qwen 3.5 and 3.6: marks belong to words.
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: words{digits: 1, marks: true}.cut,
	// Llama 3.
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: words{digits: 3}.cut,
}

// class is what the patterns tell characters apart by.
type class uint8

const (
	other class = iota
	letter
	mark
	number
	space
)

// ascii is the class of the first 128 characters.
var ascii = func() (c [utf8.RuneSelf]class) {
	for r := range c {
		c[r] = classify(rune(r))
	}
	return c
}()

func classify(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	case unicode.Is(unicode.M, r):
		return mark
	}
	return other
}

// at is the class and the length of the character at i. A byte that is no character is
// one of class other.
func at(s string, i int) (class, int) {
	if s[i] < utf8.RuneSelf {
		return ascii[s[i]], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return classify(r), n
}

// run is where the characters from i on stop being of a class that ok takes.
func run(s string, i int, ok func(class) bool) int {
	for i < len(s) {
		c, n := at(s, i)
		if !ok(c) {
			break
		}
		i += n
	}
	return i
}

func isLetter(c class) bool { return c == letter }
func isNumber(c class) bool { return c == number }
func isSpace(c class) bool  { return c == space }

// isOther is [^\s\p{L}\p{N}].
func isOther(c class) bool { return c == other || c == mark }

func cutGPT2(s string, piece func(string)) {
	for i := 0; i < len(s); {
		end := nextGPT2(s, i)
		piece(s[i:end])
		i = end
	}
}

func nextGPT2(s string, i int) int {
	if n := contraction(s[i:], false); n > 0 {
		return i + n
	}
	start := i
	if s[i] == ' ' && i+1 < len(s) {
		start++
	}
	switch c, _ := at(s, start); c {
	case letter:
		return run(s, start, isLetter)
	case number:
		return run(s, start, isNumber)
	case other, mark:
		return run(s, start, isOther)
	default:
		return spaces(s, i)
	}
}

// words is the family of patterns that began with OpenAI's cl100k.
type words struct {
	// digits is how many digits may stand in one piece.
	digits int
	// marks says that combining marks are parts of words.
	marks bool
}

func (w words) cut(s string, piece func(string)) {
	for i := 0; i < len(s); {
		end := w.next(s, i)
		piece(s[i:end])
		i = end
	}
}

func (w words) next(s string, i int) int {
	if n := contraction(s[i:], true); n > 0 {
		return i + n
	}
	c, n := at(s, i)
	// A word may begin with one character that is neither letter, number nor line end.
	if c != letter && c != number && s[i] != '\r' && s[i] != '\n' && i+n < len(s) {
		if next, _ := at(s, i+n); w.inWord(next) {
			return run(s, i+n, w.inWord)
		}
	}
	switch {
	case w.inWord(c):
		return run(s, i, w.inWord)
	case c == number:
		return w.number(s, i)
	case w.isOther(c):
		return lineEnds(s, run(s, i, w.isOther))
	case s[i] == ' ' && i+1 < len(s):
		if next, _ := at(s, i+1); w.isOther(next) {
			return lineEnds(s, run(s, i+1, w.isOther))
		}
	}
	end := run(s, i, isSpace)
	for last := end; last > i; last-- {
		if s[last-1] == '\n' || s[last-1] == '\r' {
			return last
		}
	}
	return spaces(s, i)
}

func (w words) inWord(c class) bool { return c == letter || w.marks && c == mark }

func (w words) isOther(c class) bool { return c == other || c == mark && !w.marks }

func (w words) number(s string, i int) int {
	for range w.digits {
		if i == len(s) {
			break
		}
		c, n := at(s, i)
		if c != number {
			break
		}
		i += n
	}
	return i
}

func lineEnds(s string, i int) int {
	for i < len(s) && (s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// spaces is \s+(?!\S)|\s+ at i: all white space, but for its last character where
// something follows and more than one is there.
func spaces(s string, i int) int {
	end, last := i, i
	for end < len(s) {
		c, n := at(s, end)
		if c != space {
			break
		}
		last = end
		end += n
	}
	if end < len(s) && last > i {
		return last
	}
	return end
}

// contraction is the length of 's, 't, 're, 've, 'm, 'll or 'd at the beginning of s.
// Without regard to case, the long s (U+017F) is an s.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	a, b := s[1], byte(0)
	if len(s) > 2 {
		b = s[2]
	}
	if fold {
		if a == 0xC5 && b == 0xBF {
			return 3
		}
		a, b = lower(a), lower(b)
	}
	switch {
	case a == 's', a == 't', a == 'm', a == 'd':
		return 2
	case a == 'r' && b == 'e', a == 'v' && b == 'e', a == 'l' && b == 'l':
		return 3
	}
	return 0
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}

// cutDigits isolates numbers: each of its own, or each run of them.
func cutDigits(each bool) cutter {
	return func(s string, piece func(string)) {
		begun := 0
		for i := 0; i < len(s); {
			c, n := at(s, i)
			if c != number {
				i += n
				continue
			}
			if begun < i {
				piece(s[begun:i])
			}
			end := i + n
			if !each {
				end = run(s, i, isNumber)
			}
			piece(s[i:end])
			begun, i = end, end
		}
		if begun < len(s) {
			piece(s[begun:])
		}
	}
}

// cutWhole leaves a text in one piece.
func cutWhole(s string, piece func(string)) {
	if s != "" {
		piece(s)
	}
}

// inTurn cuts by one cutter and each of its pieces by the next.
func inTurn(cutters []cutter) cutter {
	switch len(cutters) {
	case 0:
		return cutWhole
	case 1:
		return cutters[0]
	}
	first, rest := cutters[0], inTurn(cutters[1:])
	return func(s string, piece func(string)) {
		first(s, func(p string) { rest(p, piece) })
	}
}
