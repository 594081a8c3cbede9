package finding

// Targets is a set of the signs by which Extract finds an answer.
type Targets uint8

const (
	Box     Targets = 1 << iota // \boxed{…}
	Tag                         // <answer>…</answer>, #### …
	Said                        // "the answer is …", the end of a sentence
	Choice                      // the letter of a multiple choice
	Formula                     // the last $…$, \(…\) or \[…\]
	Whole                       // the text itself, if it is nothing but an answer

	AnyTarget = Box | Tag | Said | Choice | Formula | Whole
)

func (t Targets) Has(one Targets) bool { return t == 0 || t&one != 0 }
