package reading

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// runes that mean what an ASCII character or a command means.
var runeMeaning = map[rune]Token{
	'−': {Kind: TOp, Text: "-"}, '–': {Kind: TOp, Text: "-"}, '—': {Kind: TOp, Text: "-"}, '‐': {Kind: TOp, Text: "-"}, '‑': {Kind: TOp, Text: "-"}, '﹣': {Kind: TOp, Text: "-"},
	'×': {Kind: TOp, Text: "*"}, '·': {Kind: TOp, Text: "*"}, '⋅': {Kind: TOp, Text: "*"}, '∙': {Kind: TOp, Text: "*"}, '∗': {Kind: TOp, Text: "*"}, '•': {Kind: TOp, Text: "*"},
	'∘': {Kind: TOp, Text: "∘"}, '÷': {Kind: TOp, Text: "/"}, '∕': {Kind: TOp, Text: "/"}, '⁄': {Kind: TOp, Text: "/"}, '∶': {Kind: TOp, Text: ":"}, '∣': {Kind: TOp, Text: "|"},
	'°': {Kind: TOp, Text: "°"}, 'º': {Kind: TOp, Text: "°"}, '˚': {Kind: TOp, Text: "°"}, '′': {Kind: TOp, Text: "'"}, '’': {Kind: TOp, Text: "'"},
	'∞': {Kind: tCmd, Text: "infty"}, 'π': {Kind: tCmd, Text: "pi"}, '√': {Kind: tCmd, Text: "sqrt"}, '±': {Kind: tCmd, Text: "pm"}, '∓': {Kind: tCmd, Text: "mp"},
	'∅': {Kind: tCmd, Text: "emptyset"}, '∪': {Kind: tSetOp, Text: "cup"}, '∩': {Kind: tSetOp, Text: "cap"}, '∖': {Kind: tSetOp, Text: "setminus"},
	'≤': {Kind: TRel, Text: "<="}, '⩽': {Kind: TRel, Text: "<="}, '≦': {Kind: TRel, Text: "<="}, '≥': {Kind: TRel, Text: ">="}, '⩾': {Kind: TRel, Text: ">="}, '≧': {Kind: TRel, Text: ">="},
	'≠': {Kind: TRel, Text: "!="}, '≈': {Kind: TRel, Text: "~"}, '∈': {Kind: TRel, Text: "in"}, '→': {Kind: TRel, Text: "to"}, '⇒': {Kind: TRel, Text: "to"}, '≡': {Kind: TRel, Text: "="},
	'⊆': {Kind: TRel, Text: "subseteq"}, '⊂': {Kind: TRel, Text: "subset"}, 'ℝ': {Kind: tCmd, Text: "reals"},
	'⌊': {Kind: tCmd, Text: "lfloor"}, '⌋': {Kind: tCmd, Text: "rfloor"}, '⌈': {Kind: tCmd, Text: "lceil"}, '⌉': {Kind: tCmd, Text: "rceil"},
	'∠': {Kind: TLetter, Text: "angle"}, '△': {Kind: TLetter, Text: "triangle"}, '…': {Kind: tCmd, Text: "dots"}, '⋯': {Kind: tCmd, Text: "dots"},
	'€': {Kind: TWord, Text: "euro"}, '£': {Kind: TWord, Text: "gbp"}, '¥': {Kind: TWord, Text: "yuan"}, '￥': {Kind: TWord, Text: "yuan"}, '₹': {Kind: TWord, Text: "rupee"},
	'∉': {Kind: TRel, Text: "notin"}, '∥': {Kind: TRel, Text: "parallel"}, '⊥': {Kind: TRel, Text: "perp"}, '∼': {Kind: TRel, Text: "~"}, '≅': {Kind: TRel, Text: "="}, '⟹': {Kind: TRel, Text: "to"}, '⟶': {Kind: TRel, Text: "to"},
	'⟨': {Kind: TOp, Text: "("}, '⟩': {Kind: TOp, Text: ")"}, '、': {Kind: TOp, Text: ","}, '。': {Kind: TOp, Text: "."}, '∑': {Kind: tCmd, Text: "sum"}, '∫': {Kind: tCmd, Text: "int"}, '∏': {Kind: tCmd, Text: "prod"},
	'和': {Kind: TWord, Text: "and"}, '或': {Kind: TWord, Text: "or"}, '【': {Kind: TOp, Text: "["}, '】': {Kind: TOp, Text: "]"}, '«': {Kind: TOp, Text: "("},
}

var GreekRunes = map[rune]string{
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

const superscripts, subscripts = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿᵏᵐˣʸ⁽⁾", "₀₁₂₃₄₅₆₇₈₉"

func (l *lexer) unicode() {
	r, size := utf8.DecodeRuneInString(l.src[l.pos:])
	switch {
	case r == utf8.RuneError && size <= 1:
		l.emit(TLetter, "\ufffd")
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
		for _, t := range []Token{{Kind: tCmd, Text: "frac"}, {Kind: TOp, Text: "{"}, {Kind: TNum, Text: v[0]}, {Kind: TOp, Text: "}"},
			{Kind: TOp, Text: "{"}, {Kind: TNum, Text: v[1]}, {Kind: TOp, Text: "}"}} {
			l.emit(t.Kind, t.Text)
		}
	case strings.ContainsRune(superscripts, r):
		l.script(superscripts, "0123456789+-nkmxy()", "^")
		return
	case strings.ContainsRune(subscripts, r):
		l.script(subscripts, "0123456789", "_")
		return
	case higherRoots[r] != "":
		for _, t := range []Token{{Kind: tCmd, Text: "sqrt"}, {Kind: TOp, Text: "["}, {Kind: TNum, Text: higherRoots[r]}, {Kind: TOp, Text: "]"}} {
			l.emit(t.Kind, t.Text)
		}
	case standardSets[r] != "":
		l.emit(tCmd, "mathbb")
		l.emit(TLetter, standardSets[r])
	default:
		if t, ok := runeMeaning[r]; ok {
			l.emit(t.Kind, t.Text)
		} else if name := GreekRunes[r]; name != "" {
			l.emit(TLetter, name)
		} else if unicode.Is(unicode.Han, r) || unicode.IsLetter(r) {
			l.foreignWord()
			return
		} else {
			l.emit(TLetter, string(r))
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
	l.emit(TOp, opener)
	l.emit(TOp, "{")
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
	l.nested(string(text))
	l.emit(TOp, "}")
}

// nested reads the ASCII that a run of other characters stands for.
func (l *lexer) nested(text string) {
	inner := &lexer{src: text, spaced: l.spaced, modes: l.modes, depth: l.depth}
	for inner.pos < len(inner.src) && inner.err == nil {
		inner.step()
	}
	if len(l.out)+len(inner.out) > maxTokens {
		l.err = ErrLimit
		return
	}
	l.out = append(l.out, inner.out...)
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
	l.nested(string(text))
	l.spaced = false
}

// foreignWord reads a word of letters beyond ASCII. Chinese words are found by
// the longest entry of a list; what is not there is a word of its own.
func (l *lexer) foreignWord() {
	end := l.pos
	for end < len(l.src) {
		r, size := utf8.DecodeRuneInString(l.src[end:])
		if unicode.Is(unicode.Han, r) {
			if end > l.pos {
				break
			}
			l.han()
			return
		}
		if !unicode.IsLetter(r) || GreekRunes[r] != "" || runeMeaning[r].Text != "" || asciiOf(r) != 0 || standardSets[r] != "" {
			break
		}
		end += size
	}
	if end == l.pos {
		_, size := utf8.DecodeRuneInString(l.src[l.pos:])
		end += size
	}
	l.emit(TWord, l.src[l.pos:end])
	l.pos = end
}

// maxHan is how many characters an entry of hanWords has at most.
const maxHan = 6

// han reads one Chinese word.
func (l *lexer) han() {
	if entry, size := hanEntry(l.src[l.pos:]); size > 0 {
		for _, t := range entry {
			l.emit(t.Kind, t.Text)
		}
		l.pos += size
		return
	}
	if n, size := hanNumber(l.src[l.pos:]); size > 0 {
		l.emit(TNum, strconv.FormatInt(n, 10))
		l.pos += size
		return
	}
	end := l.pos
	for end < len(l.src) {
		r, size := utf8.DecodeRuneInString(l.src[end:])
		if !unicode.Is(unicode.Han, r) {
			break
		}
		if _, known := hanEntry(l.src[end:]); known > 0 && end > l.pos {
			break
		}
		end += size
	}
	l.emit(TWord, l.src[l.pos:end])
	l.pos = end
}

// hanEntry is the longest entry that s begins with.
func hanEntry(s string) (entry []Token, size int) {
	at, n := 0, 0
	for i, r := range s {
		if n++; n > maxHan || !unicode.Is(unicode.Han, r) {
			break
		}
		at = i + utf8.RuneLen(r)
		if e, ok := hanWords[s[:at]]; ok {
			entry, size = e, at
		}
	}
	return entry, size
}

// hanWords are the Chinese words that are understood, each as the tokens of what
// it means. Units stand in the table of units.
var hanWords = func() map[string][]Token {
	m := map[string][]Token{}
	put := func(k kind, text, spellings string) {
		for _, s := range strings.Fields(spellings) {
			m[s] = []Token{{Kind: k, Text: text}}
		}
	}
	put(TWord, "not", "不是 不等于 并非 非 不为 不可能是 不")
	put(TWord, "no", "没有 无")
	put(TWord, "wrong", "错误 错 不对 不正确")
	put(TWord, "except", "除了 除外 以外 除")
	put(TWord, "or", "或 或者")
	put(TWord, "and", "和 且 并且 以及 及 与")
	put(TWord, "is", "是 为 等于 就是 等 共 共有 一共 一共有 总共 总共有 得 可得 得到 即 有 需要 需")
	put(TWord, "answer", "答案 答 最终答案 结果 正确答案 所以 因此 故 值 该 这")
	put(TWord, "about", "约 大约 约为 约等于 大概 左右 恰好 正好 刚好 只 仅")
	put(TRel, ">", "大于 超过 多于 高于 大於")
	put(TRel, "<", "小于 少于 低于 不足 小於")
	put(TRel, ">=", "至少 不小于 不少于 不低于 大于等于 大于或等于 最少")
	put(TRel, "<=", "至多 不大于 不超过 不多于 不高于 小于等于 小于或等于 最多")
	put(TRel, "!=", "不等於")
	put(TPost, ">=", "以上 及以上 或以上 或更多")
	put(TPost, "<=", "以下 及以下 或以下 或更少")
	put(TOp, "-", "负 减 减去 零下")
	put(TOp, "+", "加 加上 正")
	put(TOp, "*", "乘 乘以")
	put(TOp, "/", "除以")
	put(TWord, "half", "半 一半 的一半")
	put(TWord, "solution", "解 实数解 实根 根")
	put(tCmd, "infty", "无穷 无穷大 正无穷")
	put(TWord, "odd", "奇数 奇")
	put(TWord, "even", "偶数 偶")
	put(TWord, "no", "否")
	put(tCmd, "emptyset", "空集")
	for _, place := range []string{"百", "千", "万", "亿"} {
		put(TWord, place, place)
	}
	put(TWord, "number", "数 个数 人数 整数 正整数 质数 自然数 实数")
	put(TWord, "item", "个 只 人 名 本 张 支 条 块 件 棵 辆 次 种 位 头 朵 颗 枚 箱 袋 瓶 杯 盒 元钱 组 对 双 套 层 岁 题 道 页 分 的 了 们 学生 同学 苹果 种方法 种方案 种情况 方法 方案 情况")
	put(TWord, "increase", "增加 增长 上升 提高")
	put(TWord, "decrease", "减少 下降 降低")
	put(TWord, "分之", "分之")
	put(TWord, "百分之", "百分之")
	for spelling := range units {
		if r, _ := utf8.DecodeRuneInString(spelling); unicode.Is(unicode.Han, r) {
			m[spelling] = []Token{{Kind: TWord, Text: spelling}}
		}
	}
	return m
}()
