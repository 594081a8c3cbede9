package advantage_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
)

// plain are members of whom the better half is right, so that the rewards decide alone.
func plain(rewards ...float64) []advantage.Member {
	members := make([]advantage.Member, len(rewards))
	for i, x := range rewards {
		members[i] = advantage.Member{Reward: x, Correct: x > slices.Min(rewards)}
	}
	return members
}

func TestOf(t *testing.T) {
	cases := []struct {
		name    string
		rule    advantage.Rule
		rewards []float64
		want    advantage.Result
	}{
		{"one right of four", advantage.Rule{}, []float64{1, -1, -1, -1},
			advantage.Result{Advantages: []float64{1.5, -0.5, -0.5, -0.5}, Mean: -0.5}},
		{"half right", advantage.Rule{}, []float64{1, -1},
			advantage.Result{Advantages: []float64{1, -1}}},
		{"all right: degenerate", advantage.Rule{}, []float64{1, 1, 1},
			advantage.Result{Advantages: []float64{0, 0, 0}, Mean: 1, Degenerate: true}},
		{"all wrong: degenerate", advantage.Rule{}, []float64{-1, -1},
			advantage.Result{Advantages: []float64{0, 0}, Mean: -1, Degenerate: true}},
		// 0.1+0.1+0.1 over 3 is not 0.1 in float64: no residue may remain.
		{"equal rewards whose mean rounds", advantage.Rule{}, []float64{0.1, 0.1, 0.1},
			advantage.Result{Advantages: []float64{0, 0, 0}, Mean: 0.1, Degenerate: true}},
		{"zero and minus zero are equal", advantage.Rule{}, []float64{0, math.Copysign(0, -1)},
			advantage.Result{Advantages: []float64{0, 0}, Degenerate: true}},
		{"one member alone", advantage.Rule{}, []float64{1},
			advantage.Result{Advantages: []float64{0}, Mean: 1, Degenerate: true}},
		{"none", advantage.Rule{}, nil,
			advantage.Result{Advantages: []float64{}, Degenerate: true}},
		{"a member at the mean of a used group", advantage.Rule{}, []float64{1, 0, -1},
			advantage.Result{Advantages: []float64{1, 0, -1}}},
		{"no division by the deviation unless asked for", advantage.Rule{}, []float64{3, -3},
			advantage.Result{Advantages: []float64{3, -3}}},
		{"divided by the deviation", advantage.Rule{DivideByDeviation: true}, []float64{3, -3},
			advantage.Result{Advantages: []float64{1, -1}}},
		{"a deviation that is noise counts as none", advantage.Rule{DivideByDeviation: true}, []float64{0.0001, -0.0001, 0},
			advantage.Result{Advantages: []float64{0, 0, 0}, Degenerate: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.rule.Of(plain(c.rewards...))); diff != "" {
				t.Errorf("Of(%v) (-want +got):\n%s", c.rewards, diff)
			}
		})
	}
}

// Against exact rationals: each advantage is within rounding of reward - mean, a
// degenerate result comes exactly if all rewards are equal, and its zeros are exact.
func TestOfAgainstExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rewards := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]float64{-1, 1, 0, 0.1, 0.35, -0.25}),
			rapid.Float64Range(-1e6, 1e6),
		), 1, 64).Draw(t, "rewards")
		res := advantage.Rule{}.Of(plain(rewards...))

		exact := new(big.Rat)
		var largest float64
		for _, x := range rewards {
			exact.Add(exact, new(big.Rat).SetFloat64(x))
			largest = max(largest, math.Abs(x))
		}
		exact.Quo(exact, new(big.Rat).SetInt64(int64(len(rewards))))
		mean, _ := exact.Float64()
		allEqual := slices.Max(rewards) == slices.Min(rewards)
		if res.Degenerate != allEqual {
			t.Fatalf("degenerate = %t for %v", res.Degenerate, rewards)
		}
		for i, a := range res.Advantages {
			if allEqual && (a != 0 || math.Signbit(a)) {
				t.Fatalf("advantage %v of equal rewards %v, want exactly 0", a, rewards)
			}
			if want := rewards[i] - mean; math.Abs(a-want) > 1e-12*largest {
				t.Fatalf("advantage[%d] = %v, want %v", i, a, want)
			}
		}
	})
}

// What a shaped reward tells apart among equally wrong answers is not learned, unless the
// reward is said to decide.
func TestDegenerateByCorrectnessOrReward(t *testing.T) {
	wrong := func(rewards ...float64) (ms []advantage.Member) {
		for _, x := range rewards {
			ms = append(ms, advantage.Member{Reward: x})
		}
		return ms
	}
	right := wrong(1, 0.9, 0.8)
	for i := range right {
		right[i].Correct = true
	}
	shaped := wrong(-1, -0.9, -0.8, -0.7)
	equalRewards := []advantage.Member{{Reward: 1, Correct: true}, {Reward: 1}}
	for _, c := range []struct {
		name                      string
		rule                      advantage.Rule
		members                   []advantage.Member
		degenerate, byCorrectness bool
	}{
		{"all wrong, shaped", advantage.Rule{}, shaped, true, true},
		{"all right, shaped", advantage.Rule{}, right, true, true},
		{"all wrong, shaped, divided", advantage.Rule{DivideByDeviation: true}, shaped, true, true},
		{"all wrong, the reward decides", advantage.Rule{ByReward: true}, shaped, false, false},
		{"one right", advantage.Rule{}, append(wrong(-1, -0.9), advantage.Member{Reward: 1, Correct: true}), false, false},
		{"right and wrong, but equal rewards", advantage.Rule{}, equalRewards, true, false},
		{"the same, the reward decides", advantage.Rule{ByReward: true}, equalRewards, true, false},
	} {
		res := c.rule.Of(c.members)
		if res.Degenerate != c.degenerate || res.ByCorrectness != c.byCorrectness {
			t.Errorf("%s: degenerate %t, by correctness %t; want %t, %t", c.name, res.Degenerate, res.ByCorrectness, c.degenerate, c.byCorrectness)
		}
		for _, a := range res.Advantages {
			if c.degenerate && a != 0 {
				t.Errorf("%s: advantage %v, want exactly 0", c.name, a)
			}
		}
	}
	var rule advantage.Rule
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	rule.Register(flags)
	if f := flags.Lookup("degenerate-by"); f.DefValue != "correctness" || f.Value.Set("reward") != nil || !rule.ByReward || f.Value.String() != "reward" || f.Value.Set("luck") == nil {
		t.Errorf("the flag is %s, rule %+v", f.Value, rule)
	}
}

// The advantages of every group sum to 0 within the tolerance, whatever the rule.
func TestAdvantagesAreBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := advantage.Rule{DivideByDeviation: rapid.Bool().Draw(t, "divide"), ByReward: rapid.Bool().Draw(t, "by reward")}
		members := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) advantage.Member {
			return advantage.Member{
				Reward: rapid.OneOf(rapid.SampledFrom([]float64{-1, 1, 0, 0.1, 0.35, -0.25}), rapid.Float64Range(-1e3, 1e3),
					rapid.Float64Range(-advantage.MaxReward, advantage.MaxReward)).Draw(t, "reward"),
				Correct: rapid.Bool().Draw(t, "correct"),
			}
		}), 1, 256).Draw(t, "members")
		if res := rule.Of(members); !advantage.Balanced(res.Advantages) {
			t.Fatalf("%+v of %v is not balanced: %v", rule, members, res.Advantages)
		}
	})
}

func TestUnbalancedAdvantagesAreSeen(t *testing.T) {
	for _, c := range []struct {
		advantages []float64
		want       bool
	}{
		{nil, true}, {[]float64{1, -1}, true}, {[]float64{0.1, 0.2, -0.3}, true}, {[]float64{1, -1 + 1e-7}, true},
		{[]float64{1, -1 + 2e-6}, false}, {[]float64{1.5, -0.5, -0.5}, false}, {[]float64{1e-5}, false},
		{[]float64{1e38, -1e38}, true}, {[]float64{1e38, -0.9e38}, false}, {[]float64{math.NaN(), 0}, false},
	} {
		if got := advantage.Balanced(c.advantages); got != c.want {
			t.Errorf("Balanced(%v) = %t, want %t", c.advantages, got, c.want)
		}
	}
}

func TestUsable(t *testing.T) {
	for x, want := range map[float64]bool{
		0: true, -1: true, advantage.MaxReward: true, -2 * advantage.MaxReward: false,
		math.Inf(1): false, math.NaN(): false,
	} {
		if got := advantage.Usable(x); got != want {
			t.Errorf("Usable(%v) = %t, want %t", x, got, want)
		}
	}
}

// Trainers get advantages as float32.
func TestTheLargestRewardsGiveAdvantagesThatTrainersCanHold(t *testing.T) {
	for _, rule := range []advantage.Rule{{}, {DivideByDeviation: true}} {
		rewards := make([]float64, 64)
		for i := range rewards {
			rewards[i] = -advantage.MaxReward
		}
		rewards[0] = advantage.MaxReward
		for i, a := range rule.Of(plain(rewards...)).Advantages {
			if f := float64(float32(a)); math.IsInf(f, 0) || math.IsNaN(f) {
				t.Errorf("%+v: advantage %d of %v is %v", rule, i, rewards[i], f)
			}
		}
	}
}

func BenchmarkOf(b *testing.B) {
	rewards := []float64{1, -1, -1, 1, -1, -1, -1, 1}
	members := plain(rewards...)
	b.ReportAllocs()
	for b.Loop() {
		advantage.Rule{}.Of(members)
	}
}
