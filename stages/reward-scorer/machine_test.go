package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/machinetest"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward/expression"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward/rewardfile"
	"github.com/sluice-rl/sluice/stages/reward-scorer/scoring"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func trajectory(step uint64, index uint32, copy uint64, end sluicev1.EndReason, final string) *sluicev1.Trajectory {
	return &sluicev1.Trajectory{
		Prompt: &sluicev1.Prompt{
			Group:     &sluicev1.GroupPlace{RunId: "run", Step: step},
			Problem:   &sluicev1.Problem{QuestionId: "q", Question: "3+4?", Answer: "7", DataSource: "gsm8k"},
			GroupSize: 8, GroupsInStep: 1, Mode: sluicev1.Mode_MODE_TRAIN,
		},
		SampleIndex: index, Copy: copy, EndReason: end, FinalText: final,
	}
}

const (
	answered = sluicev1.EndReason_END_REASON_ANSWER
	invalid  = sluicev1.EndReason_END_REASON_INVALID_TOOL_CALL
)

func scoreOne(t *testing.T, set *reward.Set, traj *sluicev1.Trajectory) *sluicev1.Scored {
	t.Helper()
	s := &scorer{set: set}
	m := kafka.Message{Topic: "trajectories", Body: traj}
	if err := s.prepare(t.Context(), []kafka.Message{m}); err != nil {
		t.Fatal(err)
	}
	got := scoring.Of(traj, s.of(m))
	if err := codec.Validate(got); err != nil {
		t.Error(err)
	}
	return got
}

// A reward is told how many tokens there are of all kinds.
func TestTokensAreCounted(t *testing.T) {
	traj := trajectory(1, 0, 1, answered, `\boxed{7}`)
	traj.PromptTokens = tokens.IDs(1, 2, 3)
	traj.Turns = []*sluicev1.Turn{{Tokens: tokens.IDs(4, 5), GlueTokens: tokens.IDs(6)}, {Tokens: tokens.IDs(7)}}
	logic, err := expression.New("double(tokens)", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	set, err := reward.NewSet("long", reward.Scorer{Name: "long", Version: "1", Logic: logic})
	if err != nil {
		t.Fatal(err)
	}
	s := &scorer{set: set}
	m := kafka.Message{Topic: "trajectories", Body: traj}
	if err := s.prepare(t.Context(), []kafka.Message{m}); err != nil {
		t.Fatal(err)
	}
	if got := s.of(m); len(got) != 1 || got[0].Reward != 7 {
		t.Errorf("reward %v, want the 7 tokens", got)
	}
}

// What a trajectory is worth, by how it ended and what its final text says.
func TestRewards(t *testing.T) {
	cases := []struct {
		rule  string
		end   sluicev1.EndReason
		final string
		read  bool // --read-invalid-calls
		want  string
	}{
		{"right answer", answered, `so \boxed{7}`, false, "reward 1 correct format answer=7"},
		{"equivalent answer", answered, `so \boxed{7.0}`, false, "reward 1 correct format answer=7.0"},
		{"wrong answer", answered, `so \boxed{8}`, false, "reward -1 format answer=8"},
		{"no box", answered, `seven`, false, "reward -1"},
		{"the last box counts", answered, `\boxed{7} \boxed{8}`, false, "reward -1 format answer=8"},
		{"a budget that ran out is graded", sluicev1.EndReason_END_REASON_TURN_BUDGET, `\boxed{7}`, false, "reward 1 correct format answer=7"},
		{"an empty final text", sluicev1.EndReason_END_REASON_TOKEN_BUDGET, "", false, "reward -1"},
		{"an invalid call is wrong unread", invalid, `\boxed{7}`, false, "reward -1"},
		{"unless it is to be read", invalid, `\boxed{7}`, true, "reward 1 correct format answer=7"},
		{"infrastructure failed", sluicev1.EndReason_END_REASON_INFRA_ERROR, `\boxed{7}`, false, "ungraded infra_error: why"},
		{"the protocol was broken", sluicev1.EndReason_END_REASON_PROTOCOL_FAULT, `\boxed{7}`, false, "ungraded protocol_fault: why"},
		{"the prompt was too long", sluicev1.EndReason_END_REASON_PROMPT_TOO_LONG, "", false, "ungraded prompt_too_long: why"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			set, err := (&rewardfile.Flags{ReadInvalidCalls: c.read}).Set()
			if err != nil {
				t.Fatal(err)
			}
			traj := trajectory(1, 0, 1, c.end, c.final)
			traj.EndDetail = "why"
			if got := describe(scoreOne(t, set, traj)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func describe(s *sluicev1.Scored) string {
	if !s.GetGraded() {
		return "ungraded " + s.GetUngradedReason()
	}
	out := fmt.Sprintf("reward %v", s.GetReward())
	if s.GetCorrect() {
		out += " correct"
	}
	if s.GetValidFormat() {
		out += " format answer=" + s.GetAnswer()
	}
	return out
}

func TestAFailingRewardLeavesItsTrajectoryUngraded(t *testing.T) {
	broken := reward.LogicFunc(func(reward.Judged) (float64, error) { return 0, errors.New("verifier is away") })
	huge := reward.LogicFunc(func(reward.Judged) (float64, error) { return math.MaxFloat64, nil })
	good := reward.Scorer{Name: "good", Version: "1", Logic: reward.Outcome()}
	for want, logic := range map[string]reward.Logic{"verifier is away": broken, "advantages are beyond float32": huge} {
		bad := reward.Scorer{Name: "bad", Version: "2", Logic: logic}
		set, err := reward.NewSet("bad", good, bad)
		if err != nil {
			t.Fatal(err)
		}
		s := scoreOne(t, set, trajectory(1, 0, 1, answered, `\boxed{7}`))
		if s.GetGraded() || !strings.Contains(s.GetUngradedReason(), want) || s.GetReward() != 0 {
			t.Errorf("graded %t, reason %q, want ungraded because %q", s.GetGraded(), s.GetUngradedReason(), want)
		}
		if len(s.GetScores()) != 2 || s.GetScores()[0].GetError() == "" || s.GetScores()[1].GetReward() != 1 {
			t.Errorf("scores %v, want the failure first and the other reward beside it", s.GetScores())
		}

		// Where it does not decide it is recorded and does no harm.
		set, err = reward.NewSet("good", bad, good)
		if err != nil {
			t.Fatal(err)
		}
		s = scoreOne(t, set, trajectory(1, 0, 1, answered, `\boxed{7}`))
		if !s.GetGraded() || s.GetReward() != 1 || s.GetScores()[1].GetError() == "" {
			t.Errorf("graded %t with reward %v, scores %v", s.GetGraded(), s.GetReward(), s.GetScores())
		}
	}
}

func TestARewardThatPanicsCostsOneTrajectory(t *testing.T) {
	set, err := reward.NewSet("picky", reward.Scorer{Name: "picky", Version: "1", Logic: reward.LogicFunc(func(j reward.Judged) (float64, error) {
		if j.Answer == "8" {
			panic("eight")
		}
		return 1, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	s := &scorer{set: set}
	var ms []kafka.Message
	for i, final := range []string{`\boxed{7}`, `\boxed{8}`, `\boxed{9}`} {
		ms = append(ms, kafka.Message{Offset: int64(i), Body: trajectory(1, uint32(i), 1, answered, final)})
	}
	if err := s.prepare(t.Context(), ms); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, true} {
		if got := scoring.Of(ms[i].Body.(*sluicev1.Trajectory), s.of(ms[i])); got.GetGraded() != want {
			t.Errorf("trajectory %d graded %t (%s), want %t", i, got.GetGraded(), got.GetUngradedReason(), want)
		}
	}
}

func TestARecordThatWasNotPreparedIsNoReward(t *testing.T) {
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s := &scorer{set: reward.Default()}
	e, err := newMachine(s.of, 1, slog.New(slog.DiscardHandler), m).Step(
		kafka.Message{Topic: "trajectories", Body: trajectory(1, 0, 1, answered, `\boxed{7}`)}, start)
	if err == nil || len(e.Outputs) > 0 {
		t.Errorf("error %v with outputs %v, want an error alone", err, e.Outputs)
	}
}

func TestPrepareStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &scorer{set: reward.Default()}
	err := s.prepare(ctx, []kafka.Message{{Body: trajectory(1, 0, 1, answered, `\boxed{7}`)}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

// Whatever comes twice and wherever the process dies: each copy is scored once, and
// the memory of copies is bounded.
func TestEveryCopyIsScoredOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := newMetrics(prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		s := &scorer{set: reward.Default()}
		const kept = 2
		p, err := machinetest.New(start, func() kafka.Machine {
			return newMachine(func(m kafka.Message) []reward.Result { return s.score(context.Background(), []kafka.Message{m})[0] },
				kept, slog.New(slog.DiscardHandler), m)
		})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{}
		step := uint64(1)
		for range rapid.IntRange(1, 30).Draw(t, "records") {
			step += uint64(rapid.IntRange(0, 9).Draw(t, "advance") / 9)
			// Nothing here is older than what is kept.
			of := step - uint64(rapid.IntRange(0, min(kept, int(step))-1).Draw(t, "back"))
			traj := trajectory(of, rapid.Uint32Range(0, 2).Draw(t, "index"), rapid.Uint64Range(1, 2).Draw(t, "copy"), answered, `\boxed{7}`)
			want[identity.TrajectoryID(traj)] = true
			p.Append("trajectories", traj)
		}
		for p.Lag("trajectories") > 0 {
			if err := p.Step("trajectories", rapid.IntRange(0, 3).Draw(t, "crash") == 0); err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]bool{}
		for _, s := range machinetest.Bodies[*sluicev1.Scored](p, "scored") {
			id := identity.TrajectoryID(s.GetTrajectory())
			if got[id] {
				t.Fatalf("%s was scored twice", id)
			}
			got[id] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("scored (-want +got):\n%s", diff)
		}
		if entries, _ := p.State(); entries > kept*6 {
			t.Fatalf("%d entries, want at most those of %d steps", entries, kept)
		}
	})
}

// One copy may end twice, given up and answered: the answer counts in either order, and
// neither is passed on twice, over restarts too.
func TestTheEndThatCanBeGradedCounts(t *testing.T) {
	given := trajectory(1, 0, 1, sluicev1.EndReason_END_REASON_INFRA_ERROR, "")
	good := trajectory(1, 0, 1, answered, `\boxed{7}`)
	for _, c := range []struct {
		name string
		in   []*sluicev1.Trajectory
		want []bool // graded
	}{
		{"answered first", []*sluicev1.Trajectory{good, given, good, given}, []bool{true}},
		{"given up first", []*sluicev1.Trajectory{given, given, good, good, given}, []bool{false, true}},
	} {
		for _, crash := range []bool{false, true} {
			m, err := newMetrics(prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			s := &scorer{set: reward.Default()}
			p, err := machinetest.New(start, func() kafka.Machine {
				return newMachine(func(m kafka.Message) []reward.Result { return s.score(context.Background(), []kafka.Message{m})[0] },
					10, slog.New(slog.DiscardHandler), m)
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, traj := range c.in {
				p.Append("trajectories", traj)
			}
			for p.Lag("trajectories") > 0 {
				// A process that dies leaves the record to its successor.
				if crash {
					if err := p.Step("trajectories", true); err != nil {
						t.Fatal(err)
					}
				}
				if err := p.Step("trajectories", false); err != nil {
					t.Fatal(err)
				}
			}
			var got []bool
			for _, s := range machinetest.Bodies[*sluicev1.Scored](p, "scored") {
				got = append(got, s.GetGraded())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s, crashing %t: graded (-want +got):\n%s", c.name, crash, diff)
			}
		}
	}
}

func BenchmarkPrepare500(b *testing.B) {
	s := &scorer{set: reward.Default()}
	ms := make([]kafka.Message, 500)
	for i := range ms {
		ms[i] = kafka.Message{Offset: int64(i), Body: trajectory(1, 0, 1, answered, strings.Repeat("thinking ", 200)+`\boxed{8}`)}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.prepare(b.Context(), ms); err != nil {
			b.Fatal(err)
		}
	}
}
