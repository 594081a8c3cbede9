package group

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
)

// Needed is how many graded members a group of this size needs where not all of its
// members are graded: max(2, ceil(size/2)).
func Needed(size uint32) uint32 { return max(2, size/2+size%2) }

// Close closes the group: because it is complete, or else because its deadline has
// passed. The message belongs to the caller and must not be changed.
func (g *Group) Close(rule advantage.Rule, now time.Time) (*sluicev1.GroupClosed, error) {
	return g.close(rule, now, ReasonDeadline, "")
}

// CloseByHand closes the group with the members it has, as its deadline would, because
// an operator said so.
func (g *Group) CloseByHand(rule advantage.Rule, now time.Time, why string) (*sluicev1.GroupClosed, error) {
	return g.close(rule, now, ReasonOperator, why)
}

// close closes the group; early is the reason, and detail, of one that is not complete.
func (g *Group) close(rule advantage.Rule, now time.Time, early, detail string) (*sluicev1.GroupClosed, error) {
	if g.Closed() {
		return nil, ErrClosed
	}
	complete := g.Complete()
	var graded []*sluicev1.MemberClosing
	for _, m := range g.s.GetMembers() {
		switch m.GetFate() {
		case sluicev1.MemberFate_MEMBER_FATE_USED:
			graded = append(graded, m)
		case sluicev1.MemberFate_MEMBER_FATE_UNSPECIFIED:
			m.Fate = sluicev1.MemberFate_MEMBER_FATE_MISSING
		}
	}
	members := make([]advantage.Member, len(graded))
	for i, m := range graded {
		members[i] = advantage.Member{Reward: m.GetReward(), Correct: m.GetCorrect()}
		m.Correct = false
	}
	made := rule.Of(members)
	g.s.Graded, g.s.RewardMean = uint32(len(graded)), made.Mean
	g.s.ClosedAt = timestamppb.New(now)

	enough := g.s.GetGraded() == g.s.GetGroupSize() || g.s.GetGraded() >= Needed(g.s.GetGroupSize())
	fate := sluicev1.MemberFate_MEMBER_FATE_USED
	switch {
	case !enough:
		g.s.Closing, fate = sluicev1.Closing_CLOSING_DROPPED, sluicev1.MemberFate_MEMBER_FATE_SHORT_GROUP
	case made.Degenerate:
		g.s.Closing, fate = sluicev1.Closing_CLOSING_DEGENERATE, sluicev1.MemberFate_MEMBER_FATE_DEGENERATE
	default:
		g.s.Closing = sluicev1.Closing_CLOSING_USED
	}
	for i, m := range graded {
		m.Fate = fate
		if g.s.GetClosing() == sluicev1.Closing_CLOSING_USED {
			m.Advantage = made.Advantages[i]
		}
	}
	g.s.Reason = reason(complete, enough, early, g.s.GetReason())
	if !complete {
		g.s.Detail = detail
	} else if made.ByCorrectness && enough {
		g.s.Detail = DetailByCorrectness
	}
	return g.s, nil
}

// DetailByCorrectness is the detail of a group that is degenerate though its rewards
// differ.
const DetailByCorrectness = "the rewards differ, but all answers are equally right or wrong"

// reason names a closing; said is ReasonPromptTooLong where a member said so.
func reason(complete, enough bool, early, said string) string {
	switch {
	case !complete:
		return early
	case enough:
		return ReasonComplete
	case said != "":
		return said
	}
	return ReasonMembersLost
}
