package mathverify

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/deciding"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/finding"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/reading"
)

// Compare says whether pred means the same as gold. Both may be a bare answer
// or a whole response; Extract says what of a response counts. Compare never
// fails and never panics: what it cannot read or settle is Undecided.
func Compare(gold, pred string, o Options) Verdict {
	if o.quick() {
		if v, ok := compareIntegers(gold, pred); ok {
			return v
		}
		if v, ok := comparePlain(gold, pred); ok {
			return v
		}
	}
	k := o.conventions()
	return deciding.Texts(gold, pred, finding.Answer(gold, k.Compat, o.Gold, false), finding.Answer(pred, k.Compat, o.Pred, o.ThoughtMustEnd), k)
}

// CompareAnswer does the same for a prediction that is known to be an answer
// and nothing else, such as the content of a box. It is not searched for an
// answer, so a policy gains nothing by boxing a sentence full of guesses.
func CompareAnswer(gold, answer string, o Options) Verdict {
	if o.quick() {
		if v, ok := compareIntegers(gold, answer); ok {
			return v
		}
		if v, ok := comparePlain(gold, answer); ok {
			return v
		}
	}
	k := o.conventions()
	return deciding.Texts(gold, answer, finding.Answer(gold, k.Compat, o.Gold, false), strings.TrimSpace(answer), k)
}

func (o Options) conventions() deciding.Conventions {
	k := deciding.Conventions{Compat: o.Profile == Compat, SetRelation: o.SetAgainstInequality, Strict: o.Strict, Decimals: o.Decimals}
	if k.Decimals == 0 {
		k.Decimals = DefaultDecimals
	}
	return k
}

// quick says whether plain numbers need no extraction.
func (o Options) quick() bool {
	return o.Gold.Has(Whole) && o.Pred.Has(Whole) && o.Pred.Has(Box)
}

// Any compares with several references, any of which is right: it is the verdict
// of the first that is equal; else an undecided one, if there is one; else the
// first.
func Any(golds []string, pred string, o Options) Verdict {
	if len(golds) == 0 {
		return Verdict{Outcome: Undecided, Method: MethodAbsent, Reason: "there is no reference"}
	}
	var v Verdict
	for i, gold := range golds {
		w := Compare(gold, pred, o)
		if i == 0 || w.Outcome == Equal || w.Outcome == Undecided && v.Outcome == Different {
			v = w
		}
		if v.Outcome == Equal {
			break
		}
	}
	return v
}

// CheckReference says why a reference cannot be compared with anything: it is
// empty, or cannot be read. Words alone can be read.
func (o Options) CheckReference(gold string) error {
	if _, ok := plainInteger(gold); ok {
		return nil
	}
	answer := strings.TrimSpace(finding.Answer(gold, o.Profile == Compat, o.Gold, false))
	if answer == "" {
		return errors.New("the reference is empty")
	}
	if err := reading.Readable(deciding.Collapse(answer)); err != nil {
		return fmt.Errorf("the reference %q cannot be read: %w", expr.ClipText(answer, 80), err)
	}
	return nil
}

// Extract returns the answer that a text gives: the content of its last box,
// or of its <answer> tag, or what follows "the answer is", or its last formula,
// or its last number. A text that is nothing but an answer is returned whole.
func Extract(text string) string { return finding.Answer(text, false, 0, false) }
