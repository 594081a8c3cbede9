package mathverify

import (
	"errors"
	"fmt"
	"strings"
)

// conventions are the options of a comparison that concern what is decided.
type conventions struct {
	compat      bool
	setRelation bool // in compat, a set is compared with an inequality
	strict      bool // nothing may be left out on one side
	decimals    int
}

// texts compares the answers g and p of the texts gold and pred. It never panics.
func texts(gold, pred, g, p string, k conventions) (v Verdict) {
	defer func() {
		if r := recover(); r != nil { // one answer must not stop a scorer
			v = Verdict{Outcome: Undecided, Method: MethodFault, Reason: clipText(fmt.Sprint("a fault of the comparison: ", r), maxRead)}
		}
	}()
	c := &comparer{budget: budget{left: maxSteps}, conventions: k}
	// A sentence equals itself, whatever would be extracted from it.
	if whole := strings.TrimSpace(gold); strings.Count(whole, " ") > 1 && len(whole) < 4096 && (whole == strings.TrimSpace(pred) || sameWriting(whole, p) || squeeze(whole) == squeeze(p)) {
		return Verdict{Outcome: Equal, Method: MethodText, Reason: "the same text", GoldRead: clipText(g, maxRead), PredRead: clipText(p, maxRead)}
	}
	return c.answers(g, p)
}

// sameWriting says whether two texts are the same but for spaces and, on one
// side, "x =" in front.
func sameWriting(a, b string) bool {
	x, errX := lex(a)
	y, errY := lex(b)
	if errX != nil || errY != nil || len(x) == 0 || len(y) == 0 {
		return false
	}
	return sameKey(x, y) || sameKey(withoutName(x), y) || sameKey(x, withoutName(y))
}

// squeeze drops "x =" in front, full stops behind and white space, which stays
// between digits.
func squeeze(s string) string {
	if name, rest, ok := strings.Cut(s, "="); ok && len(strings.TrimSpace(name)) == 1 {
		s = rest
	}
	var b strings.Builder
	for _, f := range strings.Fields(strings.TrimRight(s, ". ")) {
		if n := b.Len(); n > 0 && isDigit(b.String()[n-1]) && isDigit(f[0]) {
			b.WriteByte(' ')
		}
		b.WriteString(f)
	}
	return b.String()
}

// answers compares two bare answers.
func (c *comparer) answers(g, p string) Verdict {
	v := Verdict{GoldRead: clipText(strings.TrimSpace(g), maxRead), PredRead: clipText(strings.TrimSpace(p), maxRead)}
	if v.GoldRead == "" || v.PredRead == "" {
		v.Outcome, v.Method, v.Reason = Different, MethodAbsent, "an answer is empty"
		if v.GoldRead == v.PredRead {
			v.Outcome, v.Reason = Undecided, "both answers are empty"
		}
		return v
	}
	c.size = len(g) + len(p)
	gt, errG := lex(collapse(g))
	pt, errP := lex(collapse(p))
	if errG != nil || errP != nil {
		return c.unread(v, g == p, errors.Join(errG, errP))
	}
	if len(gt) > 0 && len(gt) <= 3*len(pt) && len(pt) <= 3*len(gt) && sameKey(gt, pt) {
		v.Outcome, v.Method, v.Reason = Equal, MethodText, "the same text"
		return v
	}
	if sameChoice(gt, pt) {
		v.Outcome, v.Method, v.Reason = Equal, MethodWords, "the same choice"
		return v
	}
	return c.readings(v, gt, pt)
}

// collapse removes braces that enclose each other, of which hostile text can
// hold hundreds of thousands.
func collapse(s string) string {
	n := 0
	for n < len(s)/2 && s[n] == '{' && s[len(s)-1-n] == '}' {
		n++
	}
	if n < 8 {
		return s
	}
	return s[n-1 : len(s)-n+1]
}

// readings tries the meanings of ambiguous spellings until one makes the two
// equal. The first, most usual one gives the verdict otherwise.
func (c *comparer) readings(v Verdict, gt, pt []token) Verdict {
	g, ambG, errG := parse(gt, reading{})
	p, ambP, errP := parse(pt, reading{})
	if errG != nil || errP != nil {
		return c.unparsed(v, gt, pt, g, p, errG, errP)
	}
	g, p = productNotCall(g, p)
	v.GoldRead, v.PredRead = g.String(), p.String()
	r := c.value(g, p)
	if r.out != Equal && (ambG || ambP) {
		gs, _, errG := parse(gt, reading{split: true})
		ps, _, errP := parse(pt, reading{split: true})
		if errG == nil && errP == nil {
			if s := c.value(gs, ps); s.out == Equal {
				r, g, p = s, gs, ps
				v.GoldRead, v.PredRead = g.String(), p.String()
			}
		}
	}
	if r.out != Equal && (commaNumber(gt) && isLiteral(p) || commaNumber(pt) && isLiteral(g)) {
		gs, _, errG := parse(gt, reading{decimalComma: true})
		ps, _, errP := parse(pt, reading{decimalComma: true})
		if errG == nil && errP == nil {
			if s := c.value(gs, ps); s.out == Equal {
				r = s
				v.GoldRead, v.PredRead = gs.String(), ps.String()
			}
		}
	}
	if r.out != Equal && !c.compat && (lengthLike(gt) || lengthLike(pt)) {
		gs, _, errG := parse(gt, reading{unitLetters: lengthLike(gt)})
		ps, _, errP := parse(pt, reading{unitLetters: lengthLike(pt)})
		if errG == nil && errP == nil && len(symbolsOf(gs, ps)) == 0 {
			if s := c.value(gs, ps); s.out == Equal {
				r = s
				v.GoldRead, v.PredRead = gs.String(), ps.String()
			}
		}
	}
	v.Outcome, v.Method, v.Reason = r.out, r.method, r.reason
	return v
}

// lengthLike says whether a letter that can be a unit follows white space or a
// decimal: "5 m" and "2.5m", but not "5m".
func lengthLike(toks []token) bool {
	for i := 1; i < len(toks) && i < 64; i++ {
		if t := toks[i]; t.kind == tLetter && toks[i-1].kind == tNum && (t.spaced || strings.Contains(toks[i-1].text, ".")) && strings.Contains(letterUnits, t.text) {
			return true
		}
	}
	return false
}

// productNotCall reads h(h+8) as a product where h also stands alone.
func productNotCall(g, p *node) (*node, *node) {
	names := map[string]bool{}
	for _, n := range []*node{g, p} {
		n.any(func(k *node) bool {
			if k.op == opFunc && len(k.name) == 2 && k.name[0] == '@' && len(k.kids) == 1 {
				names[k.name[1:]] = false
			}
			return false
		})
	}
	if len(names) == 0 {
		return g, p
	}
	for _, s := range symbolsOf(g, p) {
		if _, ok := names[s]; ok {
			names[s] = true
		}
	}
	f := func(k *node) *node {
		if k.op == opFunc && len(k.kids) == 1 && k.name[0] == '@' && names[k.name[1:]] {
			return mul(sym(k.name[1:]), k.kids[0])
		}
		return k
	}
	return g.rewrite(f), p.rewrite(f)
}

// commaNumber: digits, a comma and digits, which could be a decimal comma. In
// 12,345 the comma parts thousands.
func commaNumber(toks []token) bool {
	toks = trim(toks)
	if len(toks) > 0 && toks[0].op("-") {
		toks = toks[1:]
	}
	return len(toks) >= 3 && toks[0].kind == tNum && toks[1].op(",") && toks[2].kind == tNum && !toks[2].spaced && !toks[1].spaced &&
		(len(toks[2].text) != 3 || toks[0].text == "0" || len(toks[0].text) > 3)
}

func isLiteral(n *node) bool { return n.op == opNum && n.dec }

// unparsed is the verdict if a text could not be read as mathematics.
func (c *comparer) unparsed(v Verdict, gt, pt []token, g, p *node, errG, errP error) Verdict {
	gt, pt = trim(withoutName(gt)), trim(withoutName(pt))
	if len(gt) > 0 && sameKey(gt, pt) {
		v.Outcome, v.Method, v.Reason = Equal, MethodText, "the same text"
		return v
	}
	if errG == nil {
		v.GoldRead = g.String()
	}
	if errP == nil {
		v.PredRead = p.String()
	}
	return c.unread(v, false, errors.Join(errG, errP))
}

func (c *comparer) unread(v Verdict, same bool, err error) Verdict {
	v.Outcome, v.Method = Undecided, MethodUnread
	if errors.Is(err, errLimit) {
		v.Method = MethodLimit
	}
	v.Reason = strings.ReplaceAll(err.Error(), "\n", "; ")
	if same {
		v.Outcome, v.Method, v.Reason = Equal, MethodText, "the same text"
	}
	return v
}

// withoutName drops "x =" in front of an answer.
func withoutName(toks []token) []token {
	if len(toks) > 2 && toks[0].kind == tLetter && toks[1].is(tRel, "=") {
		return toks[2:]
	}
	return toks
}

// sameKey compares the texts of tokens without spaces, without braces around a
// single token, and without case in words.
func sameKey(a, b []token) bool {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := bareToken(a, &i), bareToken(b, &j)
		if x.text != y.text && (x.kind != tWord || y.kind != tWord || !strings.EqualFold(x.text, y.text)) {
			return false
		}
	}
	return i == len(a) && j == len(b)
}

// bareToken returns the token at *i and moves behind it.
func bareToken(toks []token, i *int) token {
	t := toks[*i]
	if t.op("{") && *i+2 < len(toks) && toks[*i+2].op("}") {
		inner := toks[*i+1]
		if (inner.kind != tOp || inner.text == "°") && (inner.kind != tNum || len(inner.text) == 1) {
			*i += 3
			return inner
		}
	}
	*i++
	return t
}

// choiceOf is the letter of a multiple choice: "(B)", "B.", "Option B", "(B) 12",
// "B: text". Alone says whether nothing else stands with it.
func choiceOf(toks []token) (letter string, alone bool) {
	i := 0
	for i < len(toks) && i < 8 && toks[i].kind == tWord && (kinds[strings.ToLower(toks[i].text)] || classOf(strings.ToLower(toks[i].text)) == filler) {
		i++
	}
	bracket := i < len(toks) && (toks[i].op("(") || toks[i].op("{"))
	if bracket {
		i++
	}
	if i >= len(toks) || toks[i].kind != tLetter || len(toks[i].text) != 1 || toks[i].text < "A" || toks[i].text > "J" {
		return "", false
	}
	letter, rest := toks[i].text, toks[i+1:]
	for _, t := range rest[:min(len(rest), 12)] { // "(C) and (D)", "C is wrong"
		if w := strings.ToLower(t.text); t.kind == tWord && (classOf(w) == denial || w == "or" || w == "and") || t.kind == tLetter && len(t.text) == 1 && t.text >= "A" && t.text <= "J" && t.text != letter {
			return "", false
		}
	}
	shut := len(rest) > 0 && (rest[0].op(")") || rest[0].op("}") && bracket)
	if shut {
		rest = rest[1:]
	}
	switch {
	case len(rest) == 0 || len(rest) == 1 && rest[0].op("."):
		return letter, true
	case bracket && shut, rest[0].op(".") && rest[1].spaced, rest[0].op(":") && rest[1].spaced, shut && rest[0].spaced:
		return letter, false
	case rest[0].kind == tWord && rest[0].spaced: // "B Berlin"
		for _, t := range rest[:min(len(rest), 12)] {
			if t.kind != tWord {
				return "", false
			}
		}
		return letter, false
	}
	return "", false
}

// sameChoice says whether both answers choose the same letter, one of them at
// least without more.
func sameChoice(gt, pt []token) bool {
	a, aloneA := choiceOf(gt)
	b, aloneB := choiceOf(pt)
	return a != "" && a == b && (aloneA || aloneB)
}
