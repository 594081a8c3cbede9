package deciding

// Outcome is what a comparison came to.
type Outcome string

const (
	// Equal: the two readings mean the same.
	Equal Outcome = "equal"
	// Different: they do not.
	Different Outcome = "different"
	// Undecided: the texts could not be read, or the limits or methods did not
	// suffice. It never counts as equal.
	Undecided Outcome = "undecided"
)

// Verdict is the outcome of one comparison and its grounds.
type Verdict struct {
	Outcome Outcome
	// Method names the tier that decided: see the Method constants.
	Method string
	// Reason is a short sentence for people.
	Reason string
	// GoldRead and PredRead are the two texts as understood, in a notation of
	// our own; empty if a text could not be read.
	GoldRead, PredRead string
}

// The tiers that can decide, from cheap to dear.
const (
	MethodText      = "text"      // normalised texts are the same
	MethodRational  = "rational"  // exact rational arithmetic
	MethodStructure = "structure" // kind, shape or size of the two readings
	MethodIdentity  = "identity"  // evaluation in two prime fields
	MethodInterval  = "interval"  // ball arithmetic at random points
	MethodTolerance = "tolerance" // a decimal within the stated tolerance
	MethodWords     = "words"     // words, letters of choices, symbols
	MethodLimit     = "limit"     // a limit was hit
	MethodUnread    = "unread"    // a text could not be read
	MethodFault     = "fault"     // a bug of this package, caught
	MethodAbsent    = "absent"    // there is no answer to compare
)
