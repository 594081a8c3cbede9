package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
)

// On a broker, killed again and again at any moment: one closing per group, each member
// once, and every used or degenerate member written before its group's closing.
func TestKilledAtAnyMoment(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) { killedAtAnyMoment(w, seed) })
		})
	}
}

func killedAtAnyMoment(w *kafkatest.World, seed uint64) {
	const groups, size = 40, 4
	rng := rand.New(rand.NewPCG(seed, 1))
	var records []kafka.Output
	for slot := range uint32(groups) {
		p := prompt(1, slot, size)
		p.GroupsInStep = groups
		p.Budgets = &sluicev1.Budgets{CodeCalls: 1, Turns: 1, TrajectoryTokens: 9, TurnTokens: 9, ObservationTokens: 9, ExecutionTimeoutMs: 9}
		p.Sampling = &sluicev1.SamplingParameters{Temperature: 1, TopP: 1}
		records = append(records, kafka.Output{Topic: "prompts", Body: p})
		for i := range uint32(size) {
			if slot%10 == 9 && i == 3 {
				continue // lost on its way: the deadline closes this group
			}
			for copy := range uint64(1 + rng.IntN(2)) {
				s := scored(1, slot, size, i, 1+copy, float64(rng.IntN(2)))
				s.Trajectory.Turns = []*sluicev1.Turn{{Tokens: tokens.IDs(uint32(copy)), Logprobs: tokens.Floats(-1), Versions: tokens.Versions(3)}}
				s.Trajectory.Prompt = proto.Clone(p).(*sluicev1.Prompt)
				records = append(records, kafka.Output{Topic: "scored", Body: s})
			}
		}
	}
	rng.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })

	cfg := testConfig()
	running := w.Ordeal(rng, "advantage-grouper", cfg.run, records)
	defer running.Stop()
	time.Sleep(2 * deadline)

	seen, closings := map[string]bool{}, map[uint32]int{}
	for _, m := range w.Settle("grouped") {
		if err := codec.Validate(m); err != nil {
			w.T.Error(err)
		}
		switch m := m.(type) {
		case *sluicev1.GroupMember:
			id := identity.TrajectoryID(m.GetScored().GetTrajectory())
			if seen[id] {
				w.T.Errorf("member %s was written twice", id)
			}
			seen[id] = true
			if turns := m.GetScored().GetTrajectory().GetTurns(); len(turns) != 1 || tokens.Count(turns[0].GetTokens()) != 1 || tokens.Count(turns[0].GetLogprobs()) != 1 {
				w.T.Errorf("member %s was written with turns %v", id, turns)
			}
		case *sluicev1.GroupClosed:
			slot := m.GetGroup().GetSlot()
			closings[slot]++
			missing := 0
			for i, member := range m.GetMembers() {
				if member.GetFate() == sluicev1.MemberFate_MEMBER_FATE_MISSING {
					missing++
				} else if id := fmt.Sprintf("%s/%d~%016x", identity.GroupOf(m.GetGroup()), i, member.GetCopy()); !seen[id] {
					w.T.Errorf("member %s stands in a closing and was not written before", id)
				}
			}
			if want := number(slot%10 == 9); missing != want {
				w.T.Errorf("group %d closed with %d missing, want %d (%s)", slot, missing, want, m.GetReason())
			}
		}
	}
	for slot := range uint32(groups) {
		if closings[slot] != 1 {
			w.T.Errorf("group %d was closed %d times", slot, closings[slot])
		}
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
