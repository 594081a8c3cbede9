package group

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
)

// State is the group as bytes for a changelog: an encoded GroupClosed in the making
// (about 25 bytes per member and 100 for the group), of which no more than the place
// and the closing remain once it is closed.
func (g *Group) State() []byte {
	s := g.s
	if g.Closed() {
		s = &sluicev1.GroupClosed{Group: s.GetGroup(), Closing: s.GetClosing()}
	}
	// Marshal fails for invalid UTF-8 only, which no decoded message holds.
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
	if err != nil {
		return nil
	}
	return b
}

// Load reads what State wrote.
func Load(b []byte) (*Group, error) {
	s := &sluicev1.GroupClosed{}
	if err := proto.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if err := identity.GroupOf(s.GetGroup()).Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if s.GetClosing() != 0 {
		return &Group{&sluicev1.GroupClosed{Group: s.GetGroup(), Closing: s.GetClosing()}}, nil
	}
	if n, m := s.GetGroupSize(), len(s.GetMembers()); n == 0 || int64(n) != int64(m) {
		return nil, fmt.Errorf("%w: group %s has %d members of size %d", ErrState, identity.GroupOf(s.GetGroup()), m, n)
	}
	for i, m := range s.GetMembers() {
		if m.GetSampleIndex() != uint32(i) {
			return nil, fmt.Errorf("%w: group %s: member %d says sample index %d", ErrState, identity.GroupOf(s.GetGroup()), i, m.GetSampleIndex())
		}
		if !advantage.Usable(m.GetReward()) {
			return nil, fmt.Errorf("%w: group %s: member %d has reward %v", ErrState, identity.GroupOf(s.GetGroup()), i, m.GetReward())
		}
		switch m.GetFate() {
		case sluicev1.MemberFate_MEMBER_FATE_UNSPECIFIED, sluicev1.MemberFate_MEMBER_FATE_USED, sluicev1.MemberFate_MEMBER_FATE_UNGRADED:
		default:
			return nil, fmt.Errorf("%w: group %s: member %d has fate %s while the group is open", ErrState, identity.GroupOf(s.GetGroup()), i, m.GetFate())
		}
	}
	return &Group{s}, nil
}
