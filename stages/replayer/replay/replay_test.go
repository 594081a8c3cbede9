package replay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/stages/replayer/replay"
	"github.com/sluice-rl/sluice/stages/replayer/replay/replaytest"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

// result is everything that a replay gives.
type result struct {
	scored []*sluicev1.Scored
	closed []*sluicev1.GroupClosed
	batch  []*sluicev1.StepBatch
	micro  []*sluicev1.MicroBatch
}

// play replays messages of a run through a set of rewards.
func play(t interface{ Fatal(...any) }, set *reward.Set, run *replaytest.Run, from string) result {
	var recorded []replay.Recorded
	seen := map[replay.Member]bool{}
	for _, m := range run.Messages(from) {
		traj, ok := m.(*sluicev1.Trajectory)
		if s, is := m.(*sluicev1.Scored); is {
			traj, ok = s.GetTrajectory(), true
		}
		if member := replay.MemberOf(traj); ok && !seen[member] {
			seen[member] = true
			recorded = append(recorded, replay.Recorded{Body: m, Time: replaytest.Begin})
		}
	}
	var out result
	var err error
	if out.scored, err = replay.Score(context.Background(), set, recorded); err != nil {
		t.Fatal(err)
	}
	scores := map[replay.Member]*sluicev1.Scored{}
	for _, s := range out.scored {
		scores[replay.MemberOf(s.GetTrajectory())] = s
	}
	plan := replay.NewPlan()
	for _, m := range slices.Concat(run.Messages("grouped"), run.Messages("ppo-batches")) {
		switch m.(type) {
		case *sluicev1.GroupClosed, *sluicev1.StepBatch:
			if err := plan.Add(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range plan.Steps() {
		var closed []*sluicev1.GroupClosed
		for _, g := range s.Groups {
			c, err := replay.Close(advantage.Rule{}, g, func(m replay.Member) (replay.Outcome, bool) {
				s, ok := scores[m]
				return replay.OutcomeOf(s), ok
			})
			if err != nil {
				t.Fatal(err)
			}
			closed = append(closed, c)
		}
		out.closed = append(out.closed, closed...)
		batch, micro, err := replay.Batch(step.DefaultRules, s, closed, func(m replay.Member) (*sluicev1.Trajectory, error) {
			return scores[m].GetTrajectory(), nil
		})
		if errors.Is(err, replay.ErrNoBatch) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out.batch, out.micro = append(out.batch, batch), append(out.micro, micro...)
	}
	for _, m := range slices.Concat(messages(out.scored), messages(out.closed), messages(out.batch), messages(out.micro)) {
		if err := codec.Validate(m); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func messages[M proto.Message](ms []M) []proto.Message {
	out := make([]proto.Message, len(ms))
	for i, m := range ms {
		out[i] = m
	}
	return out
}

// With the reward that was used at first, everything comes out as it was recorded.
func TestTheSameRewardGivesWhatWasRecorded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := replaytest.Record(replaytest.Shape{
			Seed: rapid.Uint64().Draw(t, "seed"), Steps: rapid.IntRange(1, 4).Draw(t, "steps"),
			Groups: rapid.IntRange(1, 6).Draw(t, "groups"), Size: rapid.IntRange(1, 8).Draw(t, "size"),
		})
		got := play(t, reward.Default(), run, "scored")
		same(t, "scores", run.Scored, got.scored)
		same(t, "closings", run.Closed, got.closed)
		same(t, "batches", run.Batches, got.batch)
		same(t, "micro-batches", run.Micro, got.micro)
	})
}

// same compares lists of messages; only what differs is worth the time of a diff.
func same[M proto.Message](t interface{ Fatalf(string, ...any) }, what string, want, got []M) {
	if !slices.EqualFunc(want, got, func(a, b M) bool { return proto.Equal(a, b) }) {
		t.Fatalf("%s (-recorded +replayed):\n%s", what, cmp.Diff(want, got, protocmp.Transform()))
	}
}

// Bare trajectories give the same rewards, closings and batches; only the scores' dates
// differ, since a trajectory knows its end and not its scoring.
func TestTrajectoriesReplayAsTheirScoresDo(t *testing.T) {
	run := replaytest.Record(replaytest.Shape{Seed: 7, Steps: 3, Groups: 5, Size: 8})
	a, b := play(t, reward.Default(), run, "scored"), play(t, reward.Default(), run, "trajectories")
	ignore := protocmp.IgnoreFields(&sluicev1.Scored{}, "scored_at")
	if diff := cmp.Diff(a.scored, b.scored, protocmp.Transform(), ignore); diff != "" {
		t.Errorf("scores (-scored +trajectories):\n%s", diff)
	}
	for _, s := range b.scored {
		if !proto.Equal(s.GetScoredAt(), s.GetTrajectory().GetEndedAt()) {
			t.Fatalf("dated %v, want the trajectory's end %v", s.GetScoredAt().AsTime(), s.GetTrajectory().GetEndedAt().AsTime())
		}
	}
	if diff := cmp.Diff(a.closed, b.closed, protocmp.Transform()); diff != "" {
		t.Errorf("closings:\n%s", diff)
	}
	if diff := cmp.Diff(a.micro, b.micro, protocmp.Transform()); diff != "" {
		t.Errorf("micro-batches:\n%s", diff)
	}
}

// fixed pays by sample index, so that a table can say who gets what; NaN stands for a
// reward that fails.
func fixed(t *testing.T, pays map[string]float64) *reward.Set {
	t.Helper()
	set, err := reward.NewSet("fixed", reward.Scorer{Name: "fixed", Version: "1", Logic: reward.LogicFunc(func(j reward.Judged) (float64, error) {
		p, ok := pays[j.Answer]
		if !ok {
			return 0, errors.New("no reward for this one")
		}
		return p, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A recorded group of four under new rewards, one rule per row.
func TestClosings(t *testing.T) {
	const (
		used       = sluicev1.MemberFate_MEMBER_FATE_USED
		degenerate = sluicev1.MemberFate_MEMBER_FATE_DEGENERATE
		short      = sluicev1.MemberFate_MEMBER_FATE_SHORT_GROUP
		ungraded   = sluicev1.MemberFate_MEMBER_FATE_UNGRADED
		missing    = sluicev1.MemberFate_MEMBER_FATE_MISSING
	)
	type fates = []sluicev1.MemberFate
	all := map[string]float64{"0": 1, "1": 1, "2": -1, "3": -1}
	for _, c := range []struct {
		rule     string
		recorded fates
		pays     map[string]float64
		want     string
	}{
		{"advantages follow from the new rewards", fates{used, used, used, used}, map[string]float64{"0": 3, "1": 1, "2": 0, "3": 0},
			"used complete mean 1: used 2, used 0, used -1, used -1"},
		{"a used group may become degenerate", fates{used, used, used, used}, map[string]float64{"0": 1, "1": 1, "2": 1, "3": 1},
			"degenerate complete mean 1: degenerate 0, degenerate 0, degenerate 0, degenerate 0"},
		{"a degenerate group may become used", fates{degenerate, degenerate, degenerate, degenerate}, all,
			"used complete mean 0: used 1, used 1, used -1, used -1"},
		{"who was missing stays missing", fates{used, missing, used, used}, all, "used deadline mean -0.333: used 1.333, missing 0, used -0.667, used -0.667"},
		{"who was ungraded stays ungraded", fates{used, ungraded, used, used}, all, "used complete mean -0.333: used 1.333, ungraded 0, used -0.667, used -0.667"},
		{"a dropped group stays dropped", fates{short, ungraded, ungraded, missing}, all, "dropped deadline mean 1: short_group 0, ungraded 0, ungraded 0, missing 0"},
		{"a failing reward makes a member ungraded", fates{used, used, used, used}, map[string]float64{"0": 1, "1": 1, "2": -1},
			"used complete mean 0.333: used 0.667, used 0.667, used -1.333, ungraded 0"},
		{"and may drop its group", fates{used, used, used, used}, map[string]float64{"0": 1},
			"dropped members_lost mean 1: short_group 0, ungraded 0, ungraded 0, ungraded 0"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			recorded := &sluicev1.GroupClosed{
				Group: &sluicev1.GroupPlace{RunId: "run", Step: 1}, QuestionId: "q", Mode: sluicev1.Mode_MODE_TRAIN,
				GroupSize: 4, GroupsInStep: 1, Closing: sluicev1.Closing_CLOSING_USED,
			}
			scores := map[replay.Member]*sluicev1.Scored{}
			for i, fate := range c.recorded {
				m := &sluicev1.MemberClosing{SampleIndex: uint32(i), Fate: fate}
				recorded.Members = append(recorded.Members, m)
				if fate == missing {
					continue
				}
				m.Copy = uint64(i + 1)
				traj := &sluicev1.Trajectory{
					Prompt:      &sluicev1.Prompt{Group: recorded.GetGroup(), Problem: &sluicev1.Problem{QuestionId: "q", Answer: "0"}, GroupSize: 4, GroupsInStep: 1, Mode: recorded.GetMode()},
					SampleIndex: uint32(i), Copy: m.GetCopy(), EndReason: sluicev1.EndReason_END_REASON_ANSWER, FinalText: fmt.Sprintf(`\boxed{%d}`, i),
				}
				s, err := replay.Score(t.Context(), fixed(t, c.pays), []replay.Recorded{{Body: traj}})
				if err != nil {
					t.Fatal(err)
				}
				scores[replay.MemberOf(traj)] = s[0]
			}
			got, err := replay.Close(advantage.Rule{}, recorded, func(m replay.Member) (replay.Outcome, bool) {
				s, ok := scores[m]
				return replay.OutcomeOf(s), ok
			})
			if err != nil {
				t.Fatal(err)
			}
			if text := describe(got); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

func describe(g *sluicev1.GroupClosed) string {
	var members []string
	for _, m := range g.GetMembers() {
		members = append(members, fmt.Sprintf("%s %.4g", schemas.EnumText(m.GetFate()), round(m.GetAdvantage())))
	}
	return fmt.Sprintf("%s %s mean %.4g: %s", schemas.EnumText(g.GetClosing()), g.GetReason(), round(g.GetRewardMean()), strings.Join(members, ", "))
}

func round(x float64) float64 {
	var r float64
	fmt.Sscanf(fmt.Sprintf("%.3f", x), "%g", &r)
	return r
}

// A group of which a record is gone is not replayed in part.
func TestAMemberWhoseRecordIsGone(t *testing.T) {
	run := replaytest.Record(replaytest.Shape{Seed: 3, Steps: 1, Groups: 1, Size: 4, Calm: true})
	_, err := replay.Close(advantage.Rule{}, run.Closed[0], func(m replay.Member) (replay.Outcome, bool) {
		return replay.Outcome{Graded: true}, m.SampleIndex != 2
	})
	if !errors.Is(err, replay.ErrIncomplete) || !strings.Contains(err.Error(), "run.0/1/0/2") {
		t.Errorf("%v, want ErrIncomplete that names run.0/1/0/2", err)
	}
	_, _, err = replay.Batch(step.DefaultRules, replay.Step{}, nil, nil)
	if !errors.Is(err, replay.ErrIncomplete) {
		t.Errorf("a step without groups: %v, want ErrIncomplete", err)
	}
}

func TestWhatIsNoPartOfAReplay(t *testing.T) {
	if _, err := replay.Score(t.Context(), reward.Default(), []replay.Recorded{{Body: &sluicev1.Prompt{}}}); !errors.Is(err, replay.ErrInput) {
		t.Errorf("a Prompt as trajectory: %v, want ErrInput", err)
	}
	if err := replay.NewPlan().Add(&sluicev1.MicroBatch{}); !errors.Is(err, replay.ErrInput) {
		t.Errorf("a MicroBatch as closing: %v, want ErrInput", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := replay.Score(ctx, reward.Default(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended: %v", err)
	}
}

// In whatever order closings are read, and however often, the plan is the same.
func TestThePlanDoesNotDependOnOrder(t *testing.T) {
	run := replaytest.Record(replaytest.Shape{Seed: 5, Steps: 4, Groups: 4, Size: 2})
	plan := func(seed uint64) []replay.Step {
		ms := slices.Concat(messages(run.Closed), messages(run.Batches), messages(run.Closed))
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
		p := replay.NewPlan()
		for _, m := range ms {
			if err := p.Add(m); err != nil {
				t.Fatal(err)
			}
		}
		return p.Steps()
	}
	for seed := range uint64(5) {
		if diff := cmp.Diff(plan(100), plan(seed), protocmp.Transform()); diff != "" {
			t.Fatalf("order %d:\n%s", seed, diff)
		}
	}
}

// A trainer that was ahead of everything that was used is still ahead in the replay:
// what was refused as stale stays refused.
func TestStalenessIsThatOfTheRecordedBatch(t *testing.T) {
	run := replaytest.Record(replaytest.Shape{Seed: 11, Steps: 3, Groups: 6, Size: 4, Calm: true, Rules: step.DefaultRules})
	for _, b := range run.Batches {
		for _, m := range b.GetMembers() {
			m.Staleness += 3 // as if the trainer had been three versions further
		}
	}
	for _, b := range play(t, reward.Default(), run, "scored").batch {
		for _, m := range b.GetMembers() {
			if m.GetFate() != sluicev1.BatchFate_BATCH_FATE_STALE {
				t.Fatalf("step %d: member %d/%d is %s, want stale", b.GetStep(), m.GetSlot(), m.GetSampleIndex(), m.GetFate())
			}
		}
	}
}
