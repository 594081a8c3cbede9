package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

// On a broker, killed again and again at any moment: every copy is scored once, and
// none is left ungraded by it.
func TestKilledAtAnyMoment(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) { killedAtAnyMoment(w, seed) })
		})
	}
}

func killedAtAnyMoment(w *kafkatest.World, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var records []kafka.Output
	want := map[string]*sluicev1.Trajectory{}
	for range 200 {
		t := trajectory(1, uint32(rng.IntN(8)), 1+uint64(rng.IntN(8)), answered, `\boxed{7}`)
		t.Prompt.Problem.QuestionId = fmt.Sprintf("q%d", t.GetSampleIndex())
		id := identity.TrajectoryID(t)
		token := uint32(t.GetCopy())
		t.PromptTokens = tokens.IDs(token)
		t.Turns = []*sluicev1.Turn{{Tokens: tokens.IDs(token), Logprobs: tokens.Floats(-1), Versions: tokens.Versions(3), GlueTokens: tokens.IDs(7)}}
		want[id] = t
		records = append(records, kafka.Output{Topic: "trajectories", Body: t})
	}
	cfg := config{stepsKept: 10, set: reward.Default()}
	running := w.Ordeal(rng, "reward-scorer", cfg.run, records)
	defer running.Stop()

	got := map[string]int{}
	for _, m := range w.Settle("scored") {
		s := m.(*sluicev1.Scored)
		id := identity.TrajectoryID(s.GetTrajectory())
		if got[id]++; got[id] > 1 || want[id] == nil {
			w.T.Errorf("%s was scored %d times", id, got[id])
		}
		if !proto.Equal(s.GetTrajectory(), want[id]) {
			w.T.Errorf("%s was written as %v, want %v", id, s.GetTrajectory(), want[id])
		}
		if !s.GetGraded() || s.GetReward() != 1 {
			w.T.Errorf("%s: graded %t, reward %v", id, s.GetGraded(), s.GetReward())
		}
	}
	if len(got) != len(want) {
		w.T.Errorf("%d copies were scored, want %d", len(got), len(want))
	}
}
