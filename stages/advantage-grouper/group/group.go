package group

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
)

// Reasons of a closing, as GroupClosed carries them.
const (
	// ReasonComplete: every place was taken.
	ReasonComplete = "complete"
	// ReasonMembersLost: every place was taken, but too few were graded.
	ReasonMembersLost = "members_lost"
	// ReasonDeadline: the deadline passed first.
	ReasonDeadline = "deadline"
	// ReasonPromptTooLong: the prompt alone was over the budget.
	ReasonPromptTooLong = "prompt_too_long"
	// ReasonOperator: somebody closed it by hand; the detail says why.
	ReasonOperator = "operator"
)

var (
	// ErrConflict: a record says of its group something other than the first one did.
	ErrConflict = errors.New("group: conflicting record")
	// ErrClosed: the group is closed; nothing can join or close it again.
	ErrClosed = errors.New("group: already closed")
	// ErrState: bytes are not the state of a group.
	ErrState = errors.New("group: unreadable state")
)

// Group is one group, open or closed.
type Group struct {
	// s is the closing in the making: fates are UNSPECIFIED for places not taken,
	// USED for graded members and UNGRADED for others, until the group is closed.
	s *sluicev1.GroupClosed
}

// Open begins a group as a prompt describes it.
func Open(p *sluicev1.Prompt, now time.Time) *Group {
	g := &Group{&sluicev1.GroupClosed{
		Group:        p.GetGroup(),
		QuestionId:   p.GetProblem().GetQuestionId(),
		DataSource:   p.GetProblem().GetDataSource(),
		Mode:         p.GetMode(),
		GroupSize:    p.GetGroupSize(),
		GroupsInStep: p.GetGroupsInStep(),
		Attempt:      p.GetAttempt(),
		OpenedAt:     timestamppb.New(now),
	}}
	g.s.Members = make([]*sluicev1.MemberClosing, p.GetGroupSize())
	for i := range g.s.Members {
		g.s.Members[i] = &sluicev1.MemberClosing{SampleIndex: uint32(i)}
	}
	return g
}

// Place is the group's identity.
func (g *Group) Place() identity.Group { return identity.GroupOf(g.s.GetGroup()) }

// Closed says whether the group has been closed.
func (g *Group) Closed() bool { return g.s.GetClosing() != 0 }

// Check refuses a prompt that does not describe this group: the sizes, the question or
// the mode differ from those of the record that opened it.
func (g *Group) Check(p *sluicev1.Prompt) error {
	for _, f := range []struct {
		name      string
		got, want any
	}{
		{"question_id", p.GetProblem().GetQuestionId(), g.s.GetQuestionId()},
		{"group_size", p.GetGroupSize(), g.s.GetGroupSize()},
		{"groups_in_step", p.GetGroupsInStep(), g.s.GetGroupsInStep()},
		{"mode", p.GetMode(), g.s.GetMode()},
	} {
		if f.got != f.want {
			return fmt.Errorf("%w: group %s: %s is %q, but the record that opened the group said %q",
				ErrConflict, g.Place(), f.name, fmt.Sprint(f.got), fmt.Sprint(f.want))
		}
	}
	return nil
}

// Prompted notes a prompt of an open group: a refill counts its attempts up. It says
// whether that changed the group.
func (g *Group) Prompted(p *sluicev1.Prompt) (bool, error) {
	if g.Closed() {
		return false, ErrClosed
	}
	if err := g.Check(p); err != nil {
		return false, err
	}
	if p.GetAttempt() <= g.s.GetAttempt() {
		return false, nil
	}
	g.s.Attempt = p.GetAttempt()
	return true, nil
}

// Join lets a scored trajectory take its place. It says whether this copy counts; if
// not, it is a duplicate and the group is unchanged, as it is after an error.
func (g *Group) Join(s *sluicev1.Scored) (counts bool, err error) {
	if g.Closed() {
		return false, ErrClosed
	}
	t := s.GetTrajectory()
	if err := g.Check(t.GetPrompt()); err != nil {
		return false, err
	}
	if i, n := t.GetSampleIndex(), g.s.GetGroupSize(); i >= n {
		return false, fmt.Errorf("%w: group %s: sample index %d of %d", ErrConflict, g.Place(), i, n)
	}
	m := g.s.GetMembers()[t.GetSampleIndex()]
	graded := s.GetGraded() && advantage.Usable(s.GetReward())
	if !takes(m, t, graded) {
		return false, nil
	}
	m.Copy, m.Attempt, m.EndReason = t.GetCopy(), t.GetPrompt().GetAttempt(), t.GetEndReason()
	m.Fate, m.Reward, m.Correct = sluicev1.MemberFate_MEMBER_FATE_UNGRADED, 0, false
	if graded {
		m.Fate, m.Reward, m.Correct = sluicev1.MemberFate_MEMBER_FATE_USED, s.GetReward(), s.GetCorrect()
	}
	if t.GetEndReason() == sluicev1.EndReason_END_REASON_PROMPT_TOO_LONG {
		g.s.Reason = ReasonPromptTooLong
	}
	g.s.Attempt = max(g.s.GetAttempt(), t.GetPrompt().GetAttempt())
	return true, nil
}

// takes says whether a copy takes a place from what holds it. Of graded copies the one
// with the smaller number does: it was drawn before the copies' lengths were known, while
// the first to arrive tends to be the shorter.
func takes(m *sluicev1.MemberClosing, t *sluicev1.Trajectory, graded bool) bool {
	attempt := t.GetPrompt().GetAttempt()
	switch {
	case m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_USED:
		return graded && t.GetCopy() < m.GetCopy()
	case graded:
		return true
	case attempt > 0 && !m.GetRefilled():
		// A refill that was given up whole speaks for members it did not ask for.
		return false
	}
	return m.GetFate() == 0 || attempt > m.GetAttempt()
}

// Lost lists the members that infrastructure has lost and that were not asked for again.
// A member that has not arrived is not among them: to ask again for stragglers would
// select short answers; and a prompt that was too long would be too long again.
func (g *Group) Lost() []uint32 {
	if g.Closed() {
		return nil
	}
	var lost []uint32
	for _, m := range g.s.GetMembers() {
		if m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_UNGRADED && !m.GetRefilled() &&
			m.GetEndReason() == sluicev1.EndReason_END_REASON_INFRA_ERROR {
			lost = append(lost, m.GetSampleIndex())
		}
	}
	return lost
}

// Refill notes that all Lost members are asked for once more: the group waits for them.
func (g *Group) Refill() {
	for _, i := range g.Lost() {
		g.s.GetMembers()[i].Refilled = true
	}
}

// Complete says whether every place is taken, by a graded member or by one given up for
// good.
func (g *Group) Complete() bool { return !g.Closed() && len(g.Missing()) == 0 && !g.awaitsRefill() }

func (g *Group) awaitsRefill() bool {
	for _, m := range g.s.GetMembers() {
		if m.GetRefilled() && m.GetAttempt() == 0 && m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_UNGRADED {
			return true
		}
	}
	return false
}

// Missing lists the sample indices of which nothing has arrived; it is empty once the
// group has been restored as closed.
func (g *Group) Missing() []uint32 {
	var missing []uint32
	for _, m := range g.s.GetMembers() {
		if m.GetFate() == 0 || m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_MISSING {
			missing = append(missing, m.GetSampleIndex())
		}
	}
	return missing
}
