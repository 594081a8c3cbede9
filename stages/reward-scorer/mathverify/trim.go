package mathverify

import (
	"strings"
)

// trim drops punctuation around an answer and redundant nesting.
func trim(toks []token) []token {
	for len(toks) > 0 {
		last := toks[len(toks)-1]
		if last.op("*") && len(toks) > 1 && toks[len(toks)-2].op("^") { // x^*
			break
		}
		if last.kind == tOp && strings.Contains(".,;:?&^*", last.text) || last.op(`\\`) || last.op("\\") {
			toks = toks[:len(toks)-1]
			continue
		}
		if toks[0].op("^") && choosesAt(toks, 0) { // ^{10}C_3
			break
		}
		if first := toks[0]; first.kind == tOp && strings.Contains(".,;:&^*", first.text) || first.is(tRel, "=") || first.is(tRel, "~") || first.is(tRel, "to") || first.op(`\\`) {
			toks = toks[1:]
			continue
		}
		break
	}
	return unnest(toks)
}

// outward reads the brackets of ]1,2[ and ]-∞,1] as (1,2) and (-∞,1].
func outward(toks []token) []token {
	if n := len(toks); n < 5 || !toks[0].op("]") && !toks[n-1].op("[") {
		return toks
	}
	out := append([]token(nil), toks...)
	for i := range out {
		switch {
		case out[i].op("]") && (i == 0 || out[i-1].kind == tSetOp || out[i-1].kind == tRel):
			out[i].text = "("
		case out[i].op("[") && (i == len(out)-1 || out[i+1].kind == tSetOp):
			out[i].text = ")"
		}
	}
	return out
}

var closers = map[string]string{"(": ")", "{": "}", "[": "]", `\{`: `\}`}

// unnest drops the outer one of two brackets that enclose the same, so that
// very deep nesting costs nothing.
func unnest(toks []token) []token {
	if len(toks) < 8 {
		return toks
	}
	depth := 0
	for depth*2+2 < len(toks) && toks[depth].kind == tOp {
		shut := closers[toks[depth].text]
		if shut == "" || !toks[len(toks)-1-depth].op(shut) {
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
		if toks[i].kind != tOp {
			continue
		}
		if closers[toks[i].text] != "" {
			level++
		} else if strings.Contains(`)]}\}`, toks[i].text) {
			if level--; level <= 0 {
				return toks
			}
		}
	}
	return toks[depth-1 : len(toks)-depth+1]
}
