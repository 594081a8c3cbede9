package reward

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/reward-scorer/boxed"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
)

func mustLogic(t *testing.T) func(Logic, error) Logic {
	return func(l Logic, err error) Logic {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func TestWhatEachKindPays(t *testing.T) {
	must := mustLogic(t)
	right := Input{FinalText: `so \boxed{\frac12}`, Reference: "0.5", EndReason: sluicev1.EndReason_END_REASON_ANSWER, Turns: 3}
	wrong := Input{FinalText: `so \boxed{7}`, Reference: "0.5", EndReason: sluicev1.EndReason_END_REASON_ANSWER, Turns: 3}
	none := Input{FinalText: `I do not know`, Reference: "0.5", EndReason: sluicev1.EndReason_END_REASON_TURN_BUDGET, Turns: 9}
	for _, tc := range []struct {
		name               string
		logic              Logic
		right, wrong, none float64
	}{
		{"outcome", Outcome(), 1, -1, -1},
		{"zero_one", ZeroOne(), 1, 0, 0},
		{"format_bonus", must(FormatBonus(0.25)), 1.25, -0.75, -1},
		{"retool_shaped", must(RetoolShaped(0.1, -0.6)), 1, -0.8, -0.6},
	} {
		s := Scorer{Name: tc.name, Version: "1", Logic: tc.logic}
		for _, c := range []struct {
			in   Input
			want float64
		}{{right, tc.right}, {wrong, tc.wrong}, {none, tc.none}} {
			got, err := s.Score(context.Background(), c.in)
			if err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			if math.Abs(got.Reward-c.want) > 1e-12 {
				t.Errorf("%s of %q: got %v, want %v", tc.name, c.in.FinalText, got.Reward, c.want)
			}
		}
	}
}

func TestRetoolShapedAgainstTheRecipesOwnCount(t *testing.T) {
	logic := mustLogic(t)(RetoolShaped(0.1, -0.6))
	for calls := range 12 {
		messages := 2 + 2*calls // problem, then two per call, then the answer
		want := min(-0.6, -1+float64(messages-2)/2*0.1)
		got := logic.Pay(context.Background(), []Judged{{Input: Input{Turns: calls + 1}}})[0]
		if math.Abs(got.Reward-want) > 1e-12 {
			t.Errorf("%d calls: got %v, want %v", calls, got.Reward, want)
		}
	}
}

func TestParametersThatWouldPayWrongAnswersLikeRightOnes(t *testing.T) {
	for name, build := range map[string]func() (Logic, error){
		"bonus of 2":        func() (Logic, error) { return FormatBonus(2) },
		"negative bonus":    func() (Logic, error) { return FormatBonus(-0.1) },
		"bonus NaN":         func() (Logic, error) { return FormatBonus(math.NaN()) },
		"limit of 1":        func() (Logic, error) { return RetoolShaped(0.1, 1) },
		"negative per turn": func() (Logic, error) { return RetoolShaped(-1, -0.6) },
	} {
		if _, err := build(); !errors.Is(err, ErrParameter) {
			t.Errorf("%s: got %v, want ErrParameter", name, err)
		}
	}
}

func TestAnInvalidCallIsNotReadUnlessAsked(t *testing.T) {
	in := Input{FinalText: `<tool_call> \boxed{5}`, Reference: "5", EndReason: sluicev1.EndReason_END_REASON_INVALID_TOOL_CALL}
	s := Scorer{Name: "outcome", Version: "1", Logic: Outcome()}
	got, err := s.Score(context.Background(), in)
	if err != nil || got.Reward != -1 || got.ValidFormat || got.Answer != "" || got.Verdict.Method != MethodNoRead {
		t.Errorf("got %+v, %v; want -1, unread", got, err)
	}
	s.Rules.ReadInvalidCalls = true
	got, err = s.Score(context.Background(), in)
	if err != nil || got.Reward != 1 || got.Answer != "5" {
		t.Errorf("got %+v, %v; want +1, read", got, err)
	}
}

func TestEndsThatSayNothingOfThePolicyAreNotScored(t *testing.T) {
	s := Scorer{Name: "outcome", Version: "1", Logic: Outcome()}
	for _, end := range []sluicev1.EndReason{
		sluicev1.EndReason_END_REASON_PROTOCOL_FAULT, sluicev1.EndReason_END_REASON_INFRA_ERROR,
		sluicev1.EndReason_END_REASON_PROMPT_TOO_LONG, 999,
	} {
		if _, err := s.Score(context.Background(), Input{FinalText: `\boxed{5}`, Reference: "5", EndReason: end}); !errors.Is(err, ErrUngraded) {
			t.Errorf("%s: got %v, want ErrUngraded", end, err)
		}
	}
	if _, err := s.Score(context.Background(), Input{FinalText: `\boxed{5}`, Reference: "5"}); !errors.Is(err, ErrInput) {
		t.Errorf("got %v, want ErrInput", err)
	}
}

func TestAFailingScorerLeavesTheTrajectoryUngraded(t *testing.T) {
	boom := errors.New("boom")
	graded := Input{FinalText: `\boxed{5}`, Reference: "5", EndReason: sluicev1.EndReason_END_REASON_ANSWER}
	for name, logic := range map[string]Logic{
		"error":    LogicFunc(func(Judged) (float64, error) { return 1, boom }),
		"NaN":      LogicFunc(func(Judged) (float64, error) { return math.NaN(), nil }),
		"infinite": LogicFunc(func(Judged) (float64, error) { return math.Inf(1), nil }),
		"short":    payNobody{},
	} {
		s := Scorer{Name: "x", Version: "1", Logic: logic}
		r := s.ScoreAll(context.Background(), []Input{graded})[0]
		if r.Err == nil || r.Reward != 0 || r.Correct {
			t.Errorf("%s: got %+v, want an error and no reward", name, r)
		}
	}
	s := Scorer{Name: "x", Version: "1", Logic: LogicFunc(func(Judged) (float64, error) { return 0, boom })}
	if _, err := s.Score(context.Background(), graded); !errors.Is(err, boom) {
		t.Errorf("got %v, want the scorer's own error", err)
	}
}

type payNobody struct{}

func (payNobody) Pay(context.Context, []Judged) []Payment { return nil }

func TestOneFailureDoesNotTouchTheOthers(t *testing.T) {
	s := Scorer{Name: "outcome", Version: "1", Logic: Outcome()}
	in := []Input{
		{FinalText: `\boxed{5}`, Reference: "5", EndReason: sluicev1.EndReason_END_REASON_ANSWER},
		{EndReason: sluicev1.EndReason_END_REASON_INFRA_ERROR},
		{FinalText: `\boxed{6}`, Reference: "5", EndReason: sluicev1.EndReason_END_REASON_ANSWER},
	}
	got := s.ScoreAll(context.Background(), in)
	if got[0].Reward != 1 || got[0].Err != nil || !errors.Is(got[1].Err, ErrUngraded) || got[2].Reward != -1 || got[2].Err != nil {
		t.Errorf("got %+v", got)
	}
}

func TestASetScoresWithAllAndTheNamedOneComesFirst(t *testing.T) {
	judged := 0
	count := LogicFunc(func(Judged) (float64, error) { judged++; return 3, nil })
	set, err := NewSet("b", Scorer{Name: "a", Version: "1", Logic: Outcome()}, Scorer{Name: "b", Version: "7", Logic: count})
	if err != nil {
		t.Fatal(err)
	}
	got := set.Score(context.Background(), Input{FinalText: `\boxed{5}`, Reference: "5", EndReason: sluicev1.EndReason_END_REASON_ANSWER})
	type row struct {
		Scorer, Version string
		Reward          float64
	}
	var rows []row
	for _, r := range got {
		rows = append(rows, row{r.Scorer, r.Version, r.Reward})
	}
	if diff := cmp.Diff([]row{{"b", "7", 3}, {"a", "1", 1}}, rows); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
	if judged != 1 {
		t.Errorf("the logic ran %d times, want once", judged)
	}
}

func TestSetsThatCannotStand(t *testing.T) {
	ok := Scorer{Name: "a", Version: "1", Logic: Outcome()}
	for name, build := range map[string]func() (*Set, error){
		"nobody decides": func() (*Set, error) { return NewSet("b", ok) },
		"same names":     func() (*Set, error) { return NewSet("a", ok, ok) },
		"no version":     func() (*Set, error) { return NewSet("a", Scorer{Name: "a", Logic: Outcome()}) },
		"no logic":       func() (*Set, error) { return NewSet("a", Scorer{Name: "a", Version: "1"}) },
		"bad rules": func() (*Set, error) {
			return NewSet("a", Scorer{Name: "a", Version: "1", Logic: Outcome(), Rules: Rules{Box: boxed.Config{Window: -9}}})
		},
	} {
		if _, err := build(); !errors.Is(err, ErrSet) {
			t.Errorf("%s: got %v, want ErrSet", name, err)
		}
	}
}

func TestUndecidedIsNotCorrect(t *testing.T) {
	in := Input{FinalText: `\boxed{)(}`, Reference: "5", EndReason: sluicev1.EndReason_END_REASON_ANSWER}
	got, err := Scorer{Name: "outcome", Version: "1", Logic: Outcome()}.Score(context.Background(), in)
	if err != nil || got.Reward != -1 || got.Correct || got.Verdict.Outcome != mathverify.Undecided {
		t.Errorf("got %+v, %v; want -1 and an undecided verdict", got, err)
	}
}

func TestAReferenceThatCannotBeUsedLeavesUngraded(t *testing.T) {
	for _, reference := range []string{"", "  ", `\boxed{}`, ")(", `\frac{1}`} {
		for _, text := range []string{`\boxed{5}`, "no box", `\boxed{` + reference + "}"} {
			in := Input{FinalText: text, Reference: reference, EndReason: sluicev1.EndReason_END_REASON_ANSWER}
			got, err := Scorer{Name: "outcome", Version: "1", Logic: Outcome()}.Score(context.Background(), in)
			if !errors.Is(err, ErrUngraded) || !errors.Is(err, ErrReference) || got.Reward != 0 {
				t.Errorf("%q for the reference %q: %+v, %v; want it ungraded", text, reference, got, err)
			}
		}
	}
	for _, reference := range []string{"5", "Evelyn", `\text{no solution}`, `$4$ or $5$`, "07"} {
		in := Input{FinalText: `\boxed{6}`, Reference: reference, EndReason: sluicev1.EndReason_END_REASON_ANSWER}
		if _, err := (Scorer{Name: "outcome", Version: "1", Logic: Outcome()}).Score(context.Background(), in); err != nil {
			t.Errorf("the reference %q: %v", reference, err)
		}
	}
}

func TestRewardsBeyondFloat32AreNone(t *testing.T) {
	in := Input{FinalText: `\boxed{5}`, Reference: "5", EndReason: sluicev1.EndReason_END_REASON_ANSWER}
	for _, pays := range []float64{1e39, -1e39} {
		s := Scorer{Name: "x", Version: "1", Logic: LogicFunc(func(Judged) (float64, error) { return pays, nil })}
		if got, err := s.Score(context.Background(), in); err == nil || got.Reward != 0 || !strings.Contains(err.Error(), "want a number from") {
			t.Errorf("%g: %+v, %v", pays, got, err)
		}
	}
}
