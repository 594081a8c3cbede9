package mathverify

import (
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/deciding"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/finding"
)

// Outcome is what a comparison came to.
type Outcome = deciding.Outcome

const (
	// Equal: the two readings mean the same.
	Equal = deciding.Equal
	// Different: they do not.
	Different = deciding.Different
	// Undecided: the texts could not be read, or the words, the limits or the methods
	// did not suffice. It never counts as equal.
	Undecided = deciding.Undecided
)

// Verdict is the outcome of one comparison and its grounds: Method names the tier
// that decided, Reason is a short sentence for people, GoldRead and PredRead are the
// two texts as understood, empty if a text could not be read.
type Verdict = deciding.Verdict

// The tiers that can decide, from cheap to dear.
const (
	MethodAbsent    = deciding.MethodAbsent    // there is no answer to compare
	MethodText      = deciding.MethodText      // normalised texts are the same
	MethodRational  = deciding.MethodRational  // exact rational arithmetic
	MethodStructure = deciding.MethodStructure // kind, shape or size of the two readings
	MethodIdentity  = deciding.MethodIdentity  // evaluation in two prime fields
	MethodInterval  = deciding.MethodInterval  // ball arithmetic at random points
	MethodTolerance = deciding.MethodTolerance // a decimal within the stated tolerance
	MethodWords     = deciding.MethodWords     // words, letters of choices, symbols
	MethodLimit     = deciding.MethodLimit     // a limit was hit
	MethodUnread    = deciding.MethodUnread    // a text could not be read
	MethodFault     = deciding.MethodFault     // a bug of this package, caught
)

// Targets is a set of the signs by which Extract finds an answer.
type Targets = finding.Targets

const (
	Box     = finding.Box     // \boxed{…}
	Tag     = finding.Tag     // <answer>…</answer>, #### …
	Said    = finding.Said    // "the answer is …", the end of a sentence
	Choice  = finding.Choice  // the letter of a multiple choice
	Formula = finding.Formula // the last $…$, \(…\) or \[…\]
	Whole   = finding.Whole   // the text itself, if it is nothing but an answer
)
