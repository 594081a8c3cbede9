package mathverify

import (
	"math/big"
	"strings"
)

// Compare says whether pred means the same as gold.
func Compare(gold, pred string, _ Options) Verdict {
	g, p := strings.TrimSpace(gold), strings.TrimSpace(pred)
	v := Verdict{GoldRead: g, PredRead: p}
	if g == p && g != "" {
		v.Outcome, v.Method, v.Reason = Equal, MethodText, "the texts are the same"
		return v
	}
	if len(g) < 1000 && len(p) < 1000 && !strings.ContainsAny(g+p, "eE") {
		x, okx := new(big.Rat).SetString(g)
		y, oky := new(big.Rat).SetString(p)
		if okx && oky {
			v.Outcome, v.Method, v.Reason = Different, MethodRational, "the numbers differ"
			if x.Cmp(y) == 0 {
				v.Outcome, v.Reason = Equal, "the numbers are the same"
			}
			return v
		}
	}
	v.Outcome, v.Method, v.Reason = Undecided, MethodUnread, "not read as numbers"
	return v
}
