package group_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/group"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func prompt(size uint32) *sluicev1.Prompt {
	return &sluicev1.Prompt{
		Group:   &sluicev1.GroupPlace{RunId: "run", Incarnation: 1, Step: 3, Slot: 2},
		Problem: &sluicev1.Problem{QuestionId: "q7", DataSource: "gsm8k"}, GroupSize: size, GroupsInStep: 4,
		Mode: sluicev1.Mode_MODE_TRAIN,
	}
}

func graded(size, index uint32, copy uint64, reward float64) *sluicev1.Scored {
	return &sluicev1.Scored{
		Trajectory: &sluicev1.Trajectory{Prompt: prompt(size), SampleIndex: index, Copy: copy, EndReason: sluicev1.EndReason_END_REASON_ANSWER},
		Graded:     true, Reward: reward, Correct: reward > 0,
	}
}

func ungraded(size, index uint32, copy uint64, why sluicev1.EndReason) *sluicev1.Scored {
	return &sluicev1.Scored{
		Trajectory:     &sluicev1.Trajectory{Prompt: prompt(size), SampleIndex: index, Copy: copy, EndReason: why},
		UngradedReason: "lost",
	}
}

// play reads one character per sample index, in order: + right, - wrong, x given up,
// L prompt too long, . never arrives.
func play(t interface{ Fatal(...any) }, members string) *group.Group {
	size := uint32(len(members))
	g := group.Open(prompt(size), now)
	for i, c := range members {
		i := uint32(i)
		var s *sluicev1.Scored
		switch c {
		case '+':
			s = graded(size, i, uint64(i)+1, 1)
		case '-':
			s = graded(size, i, uint64(i)+1, -1)
		case 'x':
			s = ungraded(size, i, uint64(i)+1, sluicev1.EndReason_END_REASON_INFRA_ERROR)
		case 'L':
			s = ungraded(size, i, uint64(i)+1, sluicev1.EndReason_END_REASON_PROMPT_TOO_LONG)
		case '.':
			continue
		}
		if counts, err := g.Join(s); !counts || err != nil {
			t.Fatal("member", i, "does not join:", err)
		}
	}
	return g
}

func short(s fmt.Stringer) string {
	name := s.String()
	for _, prefix := range []string{"CLOSING_", "MEMBER_FATE_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return strings.ToLower(name)
}

func describe(c *sluicev1.GroupClosed) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s graded=%d mean=%v:", short(c.GetClosing()), c.GetReason(), c.GetGraded(), c.GetRewardMean())
	for _, m := range c.GetMembers() {
		fmt.Fprintf(&b, " %s", short(m.GetFate()))
		if m.GetAdvantage() != 0 {
			fmt.Fprintf(&b, "(%v)", m.GetAdvantage())
		}
	}
	return b.String()
}

// The rules of closing, one per row.
func TestClose(t *testing.T) {
	cases := []struct {
		rule, members string
		complete      bool
		want          string
	}{
		{"complete: used", "+---", true,
			"used complete graded=4 mean=-0.5: used(1.5) used(-0.5) used(-0.5) used(-0.5)"},
		{"complete, all right: degenerate", "++", true,
			"degenerate complete graded=2 mean=1: degenerate degenerate"},
		{"complete, all wrong: degenerate", "---", true,
			"degenerate complete graded=3 mean=-1: degenerate degenerate degenerate"},
		{"a group of one is complete and says nothing", "+", true,
			"degenerate complete graded=1 mean=1: degenerate"},
		{"an ungraded member is in no mean", "+-x-", true,
			"used complete graded=3 mean=-0.3333333333333333: used(1.3333333333333333) used(-0.6666666666666667) ungraded used(-0.6666666666666667)"},
		{"all there, half graded: enough", "+x-x", true,
			"used complete graded=2 mean=0: used(1) ungraded used(-1) ungraded"},
		{"all there, fewer than half graded: dropped", "x+x-x", true,
			"dropped members_lost graded=2 mean=0: ungraded short_group ungraded short_group ungraded"},
		{"all given up: dropped, no mean", "xx", true,
			"dropped members_lost graded=0 mean=0: ungraded ungraded"},
		{"a single survivor of two is too few", "+x", true,
			"dropped members_lost graded=1 mean=1: short_group ungraded"},
		{"prompt too long: n ungraded members", "LL", true,
			"dropped prompt_too_long graded=0 mean=0: ungraded ungraded"},
		{"deadline with half of eight: used", "+-+-....", false,
			"used deadline graded=4 mean=0: used(1) used(-1) used(1) used(-1) missing missing missing missing"},
		{"deadline with three of eight: dropped", "+-+.....", false,
			"dropped deadline graded=3 mean=0.3333333333333333: short_group short_group short_group missing missing missing missing missing"},
		{"deadline, three of five: half rounds up", "+-+..", false,
			"used deadline graded=3 mean=0.33333333333333337: used(0.6666666666666667) used(-1.3333333333333335) used(0.6666666666666667) missing missing"},
		{"deadline, two of five: dropped", "+-...", false,
			"dropped deadline graded=2 mean=0: short_group short_group missing missing missing"},
		{"deadline, two of three: at least two", ".+-", false,
			"used deadline graded=2 mean=0: missing used(1) used(-1)"},
		{"deadline, one of two: at least two", "+.", false,
			"dropped deadline graded=1 mean=1: short_group missing"},
		{"deadline, all equal: degenerate", "--.", false,
			"degenerate deadline graded=2 mean=-1: degenerate degenerate missing"},
		{"deadline, ungraded ones do not count", "+xx-....", false,
			"dropped deadline graded=2 mean=0: short_group ungraded ungraded short_group missing missing missing missing"},
		{"deadline with nothing", "...", false,
			"dropped deadline graded=0 mean=0: missing missing missing"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			g := play(t, c.members)
			if g.Complete() != c.complete {
				t.Errorf("Complete() = %t, want %t", g.Complete(), c.complete)
			}
			closed, err := g.Close(advantage.Rule{}, now.Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(closed); roughly(got) != roughly(c.want) {
				t.Errorf("%s:\n got %s\nwant %s", c.members, got, c.want)
			}
			if err := codec.Validate(closed); err != nil {
				t.Error(err)
			}
			if _, err := g.Close(advantage.Rule{}, now); !errors.Is(err, group.ErrClosed) {
				t.Errorf("closing twice: %v, want ErrClosed", err)
			}
			if _, err := g.Join(graded(uint32(len(c.members)), 0, 99, 1)); !errors.Is(err, group.ErrClosed) {
				t.Errorf("joining a closed group: %v, want ErrClosed", err)
			}
		})
	}
}

// roughly cuts the digits of means of thirds, which are rounded.
func roughly(s string) string {
	fields := strings.Fields(s)
	for i, f := range fields {
		if before, after, ok := strings.Cut(f, "."); ok && len(after) > 10 {
			fields[i] = before + "." + after[:10]
		}
	}
	return strings.Join(fields, " ")
}

func TestWhatAClosingSays(t *testing.T) {
	g := play(t, "+-")
	closed, err := g.Close(advantage.Rule{}, now.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	p := prompt(2)
	if closed.GetQuestionId() != "q7" || closed.GetDataSource() != "gsm8k" || closed.GetMode() != p.GetMode() ||
		closed.GetGroupSize() != 2 || closed.GetGroupsInStep() != 4 || g.Place().String() != "run.1/3/2" ||
		!closed.GetOpenedAt().AsTime().Equal(now) || !closed.GetClosedAt().AsTime().Equal(now.Add(time.Minute)) {
		t.Errorf("closing lost what the prompt said: %v", closed)
	}
	if m := closed.GetMembers()[1]; m.GetCopy() != 2 || m.GetReward() != -1 {
		t.Errorf("member 1 is %v, want copy 2 with reward -1", m)
	}
}

// Which copy of a place counts.
func TestCopies(t *testing.T) {
	infra := sluicev1.EndReason_END_REASON_INFRA_ERROR
	cases := []struct {
		rule        string
		first, then *sluicev1.Scored
		counts      bool
		copy        uint64
		reward      float64
	}{
		{"the first graded copy counts", graded(2, 0, 10, 1), graded(2, 0, 20, -1), false, 10, 1},
		{"of graded copies the smaller number counts", graded(2, 0, 20, 1), graded(2, 0, 10, -1), true, 10, -1},
		{"the same copy again is a duplicate", graded(2, 0, 10, 1), graded(2, 0, 10, 1), false, 10, 1},
		{"a copy given up does not unseat a graded one", graded(2, 0, 10, 1), ungraded(2, 0, 20, infra), false, 10, 1},
		{"a graded copy takes the place of one given up", ungraded(2, 0, 10, infra), graded(2, 0, 20, -1), true, 20, -1},
		{"a second copy given up is a duplicate", ungraded(2, 0, 10, infra), ungraded(2, 0, 20, infra), false, 10, 0},
		{"a reward no mean can hold is ungraded", graded(2, 0, 10, 1e200), graded(2, 0, 20, 1), true, 20, 1},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			g := group.Open(prompt(2), now)
			if counts, err := g.Join(c.first); !counts || err != nil {
				t.Fatalf("the first copy: %t, %v", counts, err)
			}
			if counts, err := g.Join(c.then); counts != c.counts || err != nil {
				t.Errorf("the second copy counts: %t, %v; want %t", counts, err, c.counts)
			}
			closed, err := g.Close(advantage.Rule{}, now)
			if err != nil {
				t.Fatal(err)
			}
			if m := closed.GetMembers()[0]; m.GetCopy() != c.copy || m.GetReward() != c.reward {
				t.Errorf("copy %d with reward %v counts, want %d with %v", m.GetCopy(), m.GetReward(), c.copy, c.reward)
			}
		})
	}
}

func TestConflictsAreRefused(t *testing.T) {
	g := group.Open(prompt(2), now)
	before := g.State()
	for name, change := range map[string]func(*sluicev1.Prompt){
		"question_id":    func(p *sluicev1.Prompt) { p.Problem.QuestionId = "other" },
		"group_size":     func(p *sluicev1.Prompt) { p.GroupSize = 3 },
		"groups_in_step": func(p *sluicev1.Prompt) { p.GroupsInStep = 5 },
		"mode":           func(p *sluicev1.Prompt) { p.Mode = sluicev1.Mode_MODE_EVAL },
	} {
		s := graded(2, 0, 1, 1)
		change(s.Trajectory.Prompt)
		if _, err := g.Join(s); !errors.Is(err, group.ErrConflict) || !strings.Contains(err.Error(), name) {
			t.Errorf("another %s: %v, want ErrConflict that names it", name, err)
		}
		if _, err := g.Prompted(s.Trajectory.Prompt); !errors.Is(err, group.ErrConflict) {
			t.Errorf("a prompt with another %s: %v, want ErrConflict", name, err)
		}
	}
	if _, err := g.Join(graded(2, 2, 1, 1)); !errors.Is(err, group.ErrConflict) {
		t.Errorf("sample index 2 of 2: %v, want ErrConflict", err)
	}
	if diff := cmp.Diff(before, g.State()); diff != "" {
		t.Errorf("a refused record changed the group:\n%s", diff)
	}
}

func TestRefillCountsAttempts(t *testing.T) {
	g := group.Open(prompt(2), now)
	refill := prompt(2)
	refill.Attempt = 1
	for i, want := range []bool{true, false} {
		if changed, err := g.Prompted(refill); changed != want || err != nil {
			t.Errorf("prompt %d: changed %t, %v; want %t", i, changed, err, want)
		}
	}
	closed, err := g.Close(advantage.Rule{}, now)
	if err != nil {
		t.Fatal(err)
	}
	if closed.GetAttempt() != 1 {
		t.Errorf("attempt %d, want 1", closed.GetAttempt())
	}
}

// Storing and loading the state between any two records changes nothing.
func TestStateSurvivesAtAnyPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint32Range(1, 9).Draw(t, "size")
		plain, stored := group.Open(prompt(size), now), group.Open(prompt(size), now)
		for range rapid.IntRange(0, 20).Draw(t, "records") {
			i := rapid.Uint32Range(0, size-1).Draw(t, "index")
			copy := rapid.Uint64Range(1, 3).Draw(t, "copy")
			s := graded(size, i, copy, rapid.SampledFrom([]float64{-1, 0, 1}).Draw(t, "reward"))
			if rapid.Bool().Draw(t, "lost") {
				s = ungraded(size, i, copy, sluicev1.EndReason_END_REASON_INFRA_ERROR)
			}
			a, errA := plain.Join(s)
			b, errB := stored.Join(s)
			if a != b || errA != nil || errB != nil {
				t.Fatalf("%t, %v and after a restart %t, %v", a, errA, b, errB)
			}
			var err error
			if stored, err = group.Load(stored.State()); err != nil {
				t.Fatal(err)
			}
		}
		a, errA := plain.Close(advantage.Rule{}, now)
		b, errB := stored.Close(advantage.Rule{}, now)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if diff := cmp.Diff(a, b, protocmp.Transform()); diff != "" {
			t.Fatalf("-plain +restarted:\n%s", diff)
		}
		again, err := group.Load(stored.State())
		if err != nil || !again.Closed() || again.Place() != plain.Place() {
			t.Fatalf("the closed group comes back as %v, %v", again, err)
		}
		if n := len(stored.State()); n > 64 {
			t.Fatalf("a closed group still takes %d bytes", n)
		}
	})
}

// However records come, doubled and reordered: advantages of a used group are those of
// its graded members, sum to 0, and each sample index has exactly one fate.
func TestCloseAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.StringOfN(rapid.SampledFrom([]rune("+-x.")), 1, 12, -1).Draw(t, "members")
		closed, err := play(t, members).Close(advantage.Rule{}, now)
		if err != nil {
			t.Fatal(err)
		}
		plus, minus := strings.Count(members, "+"), strings.Count(members, "-")
		n, size := plus+minus, len(members)
		want := sluicev1.Closing_CLOSING_USED
		switch {
		case n < size && (n < 2 || 2*n < size):
			want = sluicev1.Closing_CLOSING_DROPPED
		case plus == 0 || minus == 0:
			want = sluicev1.Closing_CLOSING_DEGENERATE
		}
		if closed.GetClosing() != want {
			t.Fatalf("%s: %s, want %s", members, closed.GetClosing(), want)
		}
		var sum float64
		for _, m := range closed.GetMembers() {
			sum += m.GetAdvantage()
			if want != sluicev1.Closing_CLOSING_USED && m.GetAdvantage() != 0 {
				t.Fatalf("%s: advantage %v in a group that is not used", members, m.GetAdvantage())
			}
		}
		if sum > 1e-9 || sum < -1e-9 {
			t.Fatalf("%s: advantages sum to %v", members, sum)
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add(group.Open(prompt(3), now).State())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := group.Load(b)
		if err != nil {
			if !errors.Is(err, group.ErrState) {
				t.Fatalf("%v is not ErrState", err)
			}
			return
		}
		if g.Closed() {
			return
		}
		if _, err := g.Close(advantage.Rule{}, now); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkGroupOfEight(b *testing.B) {
	members := make([]*sluicev1.Scored, 8)
	for i := range members {
		members[i] = graded(8, uint32(i), uint64(i)+1, float64(i%2))
	}
	b.ReportAllocs()
	for b.Loop() {
		g := group.Open(prompt(8), now)
		for _, m := range members {
			if _, err := g.Join(m); err != nil {
				b.Fatal(err)
			}
			g.State()
		}
		if _, err := g.Close(advantage.Rule{}, now); err != nil {
			b.Fatal(err)
		}
	}
}
