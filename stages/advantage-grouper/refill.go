package main

import (
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/group"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
)

// topicPrompts is where refills are asked for.
const topicPrompts = "prompts"

// promptSuffix ends the changelog key of an open group's prompt. It is kept apart from
// the group's state, which is written again with every member.
const promptSuffix = "#prompt"

// remember keeps the prompt of an open group, whole as the sampler needs it. A trajectory
// that was given up unread comes with the stub of one.
func (m *machine) remember(e *kafka.Effects, p *sluicev1.Prompt) {
	place := identity.GroupOf(p.GetGroup())
	if !m.cfg.refill || m.prompts[place] != nil || codec.Validate(p) != nil {
		return
	}
	p = proto.Clone(p).(*sluicev1.Prompt)
	p.Attempt, p.SampleIndices = 0, nil
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return // invalid UTF-8, which no decoded message holds
	}
	m.prompts[place] = p
	e.State = append(e.State, kafka.StateChange{Key: keyOf(place) + promptSuffix, Value: b})
}

// restorePrompt takes back what remember kept.
func (m *machine) restorePrompt(key string, value []byte) error {
	place, err := parseKey(strings.TrimSuffix(key, promptSuffix))
	if err != nil || value == nil {
		delete(m.prompts, place)
		return err
	}
	p := &sluicev1.Prompt{}
	if err := proto.Unmarshal(value, p); err != nil {
		return err
	}
	m.prompts[place] = p
	return nil
}

// forgetPrompt lets go of a closed group's prompt.
func (m *machine) forgetPrompt(e *kafka.Effects, place identity.Group) {
	if m.prompts[place] == nil {
		return
	}
	delete(m.prompts, place)
	e.State = append(e.State, kafka.StateChange{Key: keyOf(place) + promptSuffix})
}

// refill asks once more for the members that infrastructure has lost, and says whether it
// did.
func (m *machine) refill(e *kafka.Effects, g *group.Group, now time.Time) bool {
	lost, original := g.Lost(), m.prompts[g.Place()]
	if !m.cfg.refill || len(lost) == 0 || original == nil {
		return false
	}
	p := proto.Clone(original).(*sluicev1.Prompt)
	p.Attempt, p.SampleIndices, p.FedAt = 1, lost, timestamppb.New(now)
	g.Refill()
	m.metrics.refills.Add(float64(len(lost)))
	m.log.Info("lost members are asked for once more", "group", g.Place().String(), "sample_indices", lost)
	e.Outputs = append(e.Outputs, kafka.Output{Topic: topicPrompts, Body: p})
	return true
}
