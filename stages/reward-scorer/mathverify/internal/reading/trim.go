package reading

import (
	"strings"
)

// Trim drops punctuation around an answer and redundant nesting.
func Trim(toks []Token) []Token {
	for len(toks) > 0 {
		last := toks[len(toks)-1]
		if last.Op("*") && len(toks) > 1 && toks[len(toks)-2].Op("^") { // x^*
			break
		}
		if last.Kind == TOp && strings.Contains(".,;:?&^*", last.Text) || last.Op(`\\`) || last.Op("\\") {
			toks = toks[:len(toks)-1]
			continue
		}
		if toks[0].Op("^") && choosesAt(toks, 0) { // ^{10}C_3
			break
		}
		if first := toks[0]; first.Kind == TOp && strings.Contains(".,;:&^*", first.Text) || first.Is(TRel, "=") || first.Is(TRel, "~") || first.Is(TRel, "to") || first.Op(`\\`) {
			toks = toks[1:]
			continue
		}
		break
	}
	return unnest(toks)
}

// outward reads the brackets of ]1,2[ and ]-∞,1] as (1,2) and (-∞,1].
func outward(toks []Token) []Token {
	if n := len(toks); n < 5 || !toks[0].Op("]") && !toks[n-1].Op("[") {
		return toks
	}
	out := append([]Token(nil), toks...)
	for i := range out {
		switch {
		case out[i].Op("]") && (i == 0 || out[i-1].Kind == tSetOp || out[i-1].Kind == TRel):
			out[i].Text = "("
		case out[i].Op("[") && (i == len(out)-1 || out[i+1].Kind == tSetOp):
			out[i].Text = ")"
		}
	}
	return out
}

var Closers = map[string]string{"(": ")", "{": "}", "[": "]", `\{`: `\}`}

// unnest drops the outer one of two brackets that enclose the same, so that
// very deep nesting costs nothing.
func unnest(toks []Token) []Token {
	if len(toks) < 8 {
		return toks
	}
	depth := 0
	for depth*2+2 < len(toks) && toks[depth].Kind == TOp {
		shut := Closers[toks[depth].Text]
		if shut == "" || !toks[len(toks)-1-depth].Op(shut) {
			break
		}
		depth++
	}
	if depth < 3 {
		return toks
	}
	// The innermost of these pairs must really belong together.
	level := 0
	for i := depth - 1; i < len(toks)-depth; i++ {
		if toks[i].Kind != TOp {
			continue
		}
		if Closers[toks[i].Text] != "" {
			level++
		} else if strings.Contains(`)]}\}`, toks[i].Text) {
			if level--; level <= 0 {
				return toks
			}
		}
	}
	return toks[depth-1 : len(toks)-depth+1]
}
