package reward

import (
	"errors"
	"fmt"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/reward-scorer/boxed"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
)

var (
	// ErrInput is wrapped when an Input cannot be judged at all.
	ErrInput = errors.New("reward: bad input")
	// ErrUngraded is wrapped when the trajectory's end says nothing of the
	// policy, so that no reward exists.
	ErrUngraded = errors.New("reward: not graded")
	// ErrReference is wrapped beside ErrUngraded when the reference is empty or
	// cannot be read: that is the data set's fault, whatever the answer is.
	ErrReference = errors.New("the reference cannot be used")
)

// Rules say how a final text is read. They are comparable, so that scorers with
// equal rules share one judgement. The zero value is the reference rule.
type Rules struct {
	// Box is the rule of extraction.
	Box boxed.Config
	// Equivalence are the conventions of comparison.
	Equivalence mathverify.Options
	// ReadInvalidCalls also reads the answer in the final text of a trajectory
	// that ended with a malformed call, as the reference implementation does.
	// Without it such a trajectory has no answer.
	ReadInvalidCalls bool
}

// Validate says which rule cannot be used.
func (r Rules) Validate() error {
	return errors.Join(r.Box.Validate(), r.Equivalence.Validate())
}

// Judged is an Input and what its final text came to.
type Judged struct {
	Input
	// ValidFormat: a box was found (and the text was read).
	ValidFormat bool
	// Answer is the box's content; empty unless ValidFormat.
	Answer string
	// Correct: the answer is equivalent to the reference.
	Correct bool
	// Verdict is the comparison; its Outcome is empty if none took place.
	Verdict mathverify.Verdict
}

// Methods of verdicts that needed no comparison.
const (
	MethodNoBox  = "no_box" // nothing to compare
	MethodNoRead = "unread_invalid_call"
)

// Judge reads the final text. The error wraps ErrInput or ErrUngraded.
func (r Rules) Judge(in Input) (Judged, error) {
	if in.EndReason == 0 {
		return Judged{}, fmt.Errorf("%w: the end reason is missing", ErrInput)
	}
	if !Graded(in.EndReason) {
		return Judged{}, fmt.Errorf("%w: the trajectory ended as %s", ErrUngraded, schemas.EnumText(in.EndReason))
	}
	if err := r.Equivalence.CheckReference(in.Reference); err != nil {
		return Judged{}, fmt.Errorf("%w: %w: %w", ErrUngraded, ErrReference, err)
	}
	j := Judged{Input: in}
	if in.EndReason == sluicev1.EndReason_END_REASON_INVALID_TOOL_CALL && !r.ReadInvalidCalls {
		j.Verdict = mathverify.Verdict{
			Outcome: mathverify.Different, Method: MethodNoRead,
			Reason: "ended with an invalid tool call, which is not read", GoldRead: in.Reference,
		}
		return j, nil
	}
	box := r.Box.Find(in.FinalText)
	if !box.Found {
		j.Verdict = mathverify.Verdict{
			Outcome: mathverify.Different, Method: MethodNoBox,
			Reason: "no answer in a box: " + string(box.Reason), GoldRead: in.Reference,
		}
		return j, nil
	}
	j.ValidFormat, j.Answer = true, box.Answer
	j.Verdict = mathverify.CompareAnswer(in.Reference, box.Answer, r.Equivalence)
	j.Correct = j.Verdict.Outcome == mathverify.Equal
	return j, nil
}
