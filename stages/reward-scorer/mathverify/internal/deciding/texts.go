package deciding

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/evaluation"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

// Conventions are the options of a comparison that concern what is decided.
type Conventions struct {
	Compat      bool
	SetRelation bool // in compat, a set is compared with an inequality
	Strict      bool // nothing may be left out on one side
	Decimals    int
}

// Texts compares the answers g and p of the texts gold and pred. It never panics.
func Texts(gold, pred, g, p string, k Conventions) (v Verdict) {
	defer func() {
		if r := recover(); r != nil { // one answer must not stop a scorer
			v = Verdict{Outcome: Undecided, Method: MethodFault, Reason: expr.ClipText(fmt.Sprint("a fault of the comparison: ", r), expr.MaxRead)}
		}
	}()
	c := &comparer{Budget: evaluation.Budget{Left: evaluation.MaxSteps}, Conventions: k}
	// A sentence equals itself, whatever would be extracted from it.
	if whole := strings.TrimSpace(gold); strings.Count(whole, " ") > 1 && len(whole) < 4096 && (whole == strings.TrimSpace(pred) || sameWriting(whole, p) || squeeze(whole) == squeeze(p)) {
		return Verdict{Outcome: Equal, Method: MethodText, Reason: "the same text", GoldRead: expr.ClipText(g, expr.MaxRead), PredRead: expr.ClipText(p, expr.MaxRead)}
	}
	return c.answers(g, p)
}

// sameWriting says whether two texts are the same but for spaces and, on one
// side, "x =" in front.
func sameWriting(a, b string) bool {
	x, errX := reading.Lex(a)
	y, errY := reading.Lex(b)
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
		if n := b.Len(); n > 0 && expr.IsDigit(b.String()[n-1]) && expr.IsDigit(f[0]) {
			b.WriteByte(' ')
		}
		b.WriteString(f)
	}
	return b.String()
}

// answers compares two bare answers.
func (c *comparer) answers(g, p string) Verdict {
	v := Verdict{GoldRead: expr.ClipText(strings.TrimSpace(g), expr.MaxRead), PredRead: expr.ClipText(strings.TrimSpace(p), expr.MaxRead)}
	if v.GoldRead == "" || v.PredRead == "" {
		v.Outcome, v.Method, v.Reason = Different, MethodAbsent, "an answer is empty"
		if v.GoldRead == v.PredRead {
			v.Outcome, v.Reason = Undecided, "both answers are empty"
		}
		return v
	}
	c.size = len(g) + len(p)
	gt, errG := reading.Lex(Collapse(g))
	pt, errP := reading.Lex(Collapse(p))
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

// Collapse removes braces that enclose each other, of which hostile text can
// hold hundreds of thousands.
func Collapse(s string) string {
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
func (c *comparer) readings(v Verdict, gt, pt []reading.Token) Verdict {
	g, ambG, errG := reading.Parse(gt, reading.Reading{})
	p, ambP, errP := reading.Parse(pt, reading.Reading{})
	if errG != nil || errP != nil {
		return c.unparsed(v, gt, pt, g, p, errG, errP)
	}
	g, p = productNotCall(g, p)
	v.GoldRead, v.PredRead = g.String(), p.String()
	r := c.wholes(g, p)
	if r.out != Equal && (ambG || ambP) {
		gs, _, errG := reading.Parse(gt, reading.Reading{Split: true})
		ps, _, errP := reading.Parse(pt, reading.Reading{Split: true})
		if errG == nil && errP == nil {
			if s := c.wholes(gs, ps); s.out == Equal {
				r, g, p = s, gs, ps
				v.GoldRead, v.PredRead = g.String(), p.String()
			}
		}
	}
	if r.out != Equal && (commaNumber(gt) && isLiteral(p) || commaNumber(pt) && isLiteral(g)) {
		gs, _, errG := reading.Parse(gt, reading.Reading{DecimalComma: true})
		ps, _, errP := reading.Parse(pt, reading.Reading{DecimalComma: true})
		if errG == nil && errP == nil {
			if s := c.wholes(gs, ps); s.out == Equal {
				r = s
				v.GoldRead, v.PredRead = gs.String(), ps.String()
			}
		}
	}
	if r.out != Equal && !c.Compat && (lengthLike(gt) || lengthLike(pt)) {
		gs, _, errG := reading.Parse(gt, reading.Reading{UnitLetters: lengthLike(gt)})
		ps, _, errP := reading.Parse(pt, reading.Reading{UnitLetters: lengthLike(pt)})
		if errG == nil && errP == nil && len(expr.SymbolsOf(gs, ps)) == 0 {
			if s := c.wholes(gs, ps); s.out == Equal {
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
func lengthLike(toks []reading.Token) bool {
	for i := 1; i < len(toks) && i < 64; i++ {
		if t := toks[i]; t.Kind == reading.TLetter && toks[i-1].Kind == reading.TNum && (t.Spaced || strings.Contains(toks[i-1].Text, ".")) && strings.Contains(reading.LetterUnits, t.Text) {
			return true
		}
	}
	return false
}

// wholes compares two readings. However they come to be equal, words that count and
// stand on one side only, anywhere in the answer, leave them undecided.
func (c *comparer) wholes(g, p *expr.Node) result {
	r := c.value(g, p)
	if r.out != Equal || !g.Marked && !p.Marked {
		return r
	}
	if x, y := counted(g, c.Compat), counted(p, c.Compat); x != y {
		return undecided(MethodWords, "words on one side that may change the answer: "+expr.ClipText(strings.Trim(x+" | "+y, " |"), 80))
	}
	return r
}

// counted lists the words of a whole answer that are not free; denials alone if so
// asked.
func counted(n *expr.Node, denials bool) string {
	var words []string
	n.Any(func(k *expr.Node) bool {
		for _, w := range k.Remark {
			if !w.Free && (w.Denies || !denials) && !quantifies[w.Text] {
				words = append(words, w.Text)
			}
		}
		return false
	})
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}

// productNotCall reads h(h+8) as a product where h also stands alone.
func productNotCall(g, p *expr.Node) (*expr.Node, *expr.Node) {
	names := map[string]bool{}
	for _, n := range []*expr.Node{g, p} {
		n.Any(func(k *expr.Node) bool {
			if k.Op == expr.OpFunc && len(k.Name) == 2 && k.Name[0] == '@' && len(k.Kids) == 1 {
				names[k.Name[1:]] = false
			}
			return false
		})
	}
	if len(names) == 0 {
		return g, p
	}
	for _, s := range expr.SymbolsOf(g, p) {
		if _, ok := names[s]; ok {
			names[s] = true
		}
	}
	f := func(k *expr.Node) *expr.Node {
		if k.Op == expr.OpFunc && len(k.Kids) == 1 && k.Name[0] == '@' && names[k.Name[1:]] {
			return expr.Mul(expr.Sym(k.Name[1:]), k.Kids[0])
		}
		return k
	}
	return g.Rewrite(f), p.Rewrite(f)
}

// commaNumber: digits, a comma and digits, which could be a decimal comma. In
// 12,345 the comma parts thousands.
func commaNumber(toks []reading.Token) bool {
	toks = reading.Trim(toks)
	if len(toks) > 0 && toks[0].Op("-") {
		toks = toks[1:]
	}
	return len(toks) >= 3 && toks[0].Kind == reading.TNum && toks[1].Op(",") && toks[2].Kind == reading.TNum && !toks[2].Spaced && !toks[1].Spaced &&
		(len(toks[2].Text) != 3 || toks[0].Text == "0" || len(toks[0].Text) > 3)
}

func isLiteral(n *expr.Node) bool { return n.Op == expr.OpNum && n.Dec }

// unparsed is the verdict if a text could not be read as mathematics.
func (c *comparer) unparsed(v Verdict, gt, pt []reading.Token, g, p *expr.Node, errG, errP error) Verdict {
	gt, pt = reading.Trim(withoutName(gt)), reading.Trim(withoutName(pt))
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
	if errors.Is(err, reading.ErrLimit) {
		v.Method = MethodLimit
	}
	v.Reason = strings.ReplaceAll(err.Error(), "\n", "; ")
	if same {
		v.Outcome, v.Method, v.Reason = Equal, MethodText, "the same text"
	}
	return v
}

// withoutName drops "x =" in front of an answer.
func withoutName(toks []reading.Token) []reading.Token {
	if len(toks) > 2 && toks[0].Kind == reading.TLetter && toks[1].Is(reading.TRel, "=") {
		return toks[2:]
	}
	return toks
}

// sameKey compares the texts of tokens without spaces, without braces around a
// single token, and without case in words.
func sameKey(a, b []reading.Token) bool {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := bareToken(a, &i), bareToken(b, &j)
		if x.Text != y.Text && (x.Kind != reading.TWord || y.Kind != reading.TWord || !strings.EqualFold(x.Text, y.Text)) {
			return false
		}
	}
	return i == len(a) && j == len(b)
}

// bareToken returns the token at *i and moves behind it.
func bareToken(toks []reading.Token, i *int) reading.Token {
	t := toks[*i]
	if t.Op("{") && *i+2 < len(toks) && toks[*i+2].Op("}") {
		inner := toks[*i+1]
		if (inner.Kind != reading.TOp || inner.Text == "°") && (inner.Kind != reading.TNum || len(inner.Text) == 1) {
			*i += 3
			return inner
		}
	}
	*i++
	return t
}

// choiceOf is the letter of a multiple choice: "(B)", "B.", "Option B", "(B) 12",
// "B: text". Alone says whether nothing else stands with it.
func choiceOf(toks []reading.Token) (letter string, alone bool) {
	i := 0
	for i < len(toks) && i < 8 && toks[i].Kind == reading.TWord && (reading.Kinds[strings.ToLower(toks[i].Text)] || reading.ClassOf(strings.ToLower(toks[i].Text)) == reading.Filler) {
		i++
	}
	bracket := i < len(toks) && (toks[i].Op("(") || toks[i].Op("{"))
	if bracket {
		i++
	}
	if i >= len(toks) || toks[i].Kind != reading.TLetter || len(toks[i].Text) != 1 || toks[i].Text < "A" || toks[i].Text > "J" {
		return "", false
	}
	letter, rest := toks[i].Text, toks[i+1:]
	for _, t := range rest[:min(len(rest), 12)] { // "(C) and (D)", "C is wrong"
		if w := strings.ToLower(t.Text); t.Kind == reading.TWord && (reading.ClassOf(w) == reading.Denial || w == "or" || w == "and") || t.Kind == reading.TLetter && len(t.Text) == 1 && t.Text >= "A" && t.Text <= "J" && t.Text != letter {
			return "", false
		}
	}
	shut := len(rest) > 0 && (rest[0].Op(")") || rest[0].Op("}") && bracket)
	if shut {
		rest = rest[1:]
	}
	for i, t := range rest[:min(len(rest), 12)] { // "(C) or more", "C. plus one"
		if t.Kind == reading.TPost || i < 2 && (t.Kind == reading.TRel || t.Kind == reading.TOp && strings.Contains("+-*/^!%", t.Text)) {
			return "", false
		}
	}
	switch {
	case len(rest) == 0 || len(rest) == 1 && rest[0].Op("."):
		return letter, true
	case bracket && shut, rest[0].Op(".") && rest[1].Spaced, rest[0].Op(":") && rest[1].Spaced, shut && rest[0].Spaced:
		return letter, false
	case rest[0].Kind == reading.TWord && rest[0].Spaced: // "B Berlin"
		for _, t := range rest[:min(len(rest), 12)] {
			if t.Kind != reading.TWord {
				return "", false
			}
		}
		return letter, false
	}
	return "", false
}

// sameChoice says whether both answers choose the same letter, one of them at
// least without more.
func sameChoice(gt, pt []reading.Token) bool {
	a, aloneA := choiceOf(gt)
	b, aloneB := choiceOf(pt)
	return a != "" && a == b && (aloneA || aloneB)
}
