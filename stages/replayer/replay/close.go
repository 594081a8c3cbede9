package replay

import (
	"errors"
	"fmt"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/group"
)

// ErrIncomplete: the record of a member that the closing names is not in the input.
var ErrIncomplete = errors.New("replay: a member's record is not in the input")

// Outcome is what a new score says of a member.
type Outcome struct {
	Graded  bool
	Reward  float64
	Correct bool
	// TooLong: the prompt was over the budget, which is why it is ungraded.
	TooLong bool
}

// OutcomeOf is what a score comes to for its group.
func OutcomeOf(s *sluicev1.Scored) Outcome {
	return Outcome{
		Graded: s.GetGraded(), Reward: s.GetReward(), Correct: s.GetCorrect(),
		TooLong: s.GetTrajectory().GetEndReason() == sluicev1.EndReason_END_REASON_PROMPT_TOO_LONG,
	}
}

// Close closes a recorded group again. outcomes finds a member's new score; a member it
// does not know is ErrIncomplete.
func Close(rule advantage.Rule, recorded *sluicev1.GroupClosed, outcomes func(Member) (Outcome, bool)) (*sluicev1.GroupClosed, error) {
	prompt := &sluicev1.Prompt{
		Group:     recorded.GetGroup(),
		Problem:   &sluicev1.Problem{QuestionId: recorded.GetQuestionId(), DataSource: recorded.GetDataSource()},
		GroupSize: recorded.GetGroupSize(), GroupsInStep: recorded.GetGroupsInStep(),
		Mode: recorded.GetMode(),
	}
	at := identity.GroupOf(recorded.GetGroup())
	g := group.Open(prompt, recorded.GetOpenedAt().AsTime())
	for _, m := range recorded.GetMembers() {
		if m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_MISSING {
			continue
		}
		member := Member{identity.Place{Group: at, SampleIndex: m.GetSampleIndex()}, m.GetCopy()}
		o, known := outcomes(member)
		if !known {
			return nil, fmt.Errorf("%w: %s, copy %016x", ErrIncomplete, member.Place, m.GetCopy())
		}
		s := &sluicev1.Scored{
			Trajectory: &sluicev1.Trajectory{Prompt: prompt, SampleIndex: m.GetSampleIndex(), Copy: m.GetCopy(), EndReason: m.GetEndReason()},
			Graded:     o.Graded && wasGraded(m), Reward: o.Reward, Correct: o.Correct,
		}
		if o.TooLong {
			s.Trajectory.EndReason = sluicev1.EndReason_END_REASON_PROMPT_TOO_LONG
		}
		if _, err := g.Join(s); err != nil {
			return nil, fmt.Errorf("%w: group %s: %w", ErrInput, at, err)
		}
	}
	closed, err := g.Close(rule, recorded.GetClosedAt().AsTime())
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", at, err)
	}
	closed.Attempt = recorded.GetAttempt()
	for i, m := range recorded.GetMembers() {
		closed.Members[i].Attempt, closed.Members[i].Refilled = m.GetAttempt(), m.GetRefilled()
	}
	if r := recorded.GetReason(); r == group.ReasonDeadline || r == group.ReasonOperator {
		// What it waited for then, a refill perhaps, is not in the input.
		closed.Reason, closed.Detail = r, recorded.GetDetail()
	}
	// A message without a time gets none.
	if recorded.GetOpenedAt() == nil {
		closed.OpenedAt = nil
	}
	if recorded.GetClosedAt() == nil {
		closed.ClosedAt = nil
	}
	return closed, nil
}
