package advantage_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
)

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
			if diff := cmp.Diff(c.want, c.rule.Of(c.rewards)); diff != "" {
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
		res := advantage.Rule{}.Of(rewards)

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
		for i, a := range rule.Of(rewards).Advantages {
			if f := float64(float32(a)); math.IsInf(f, 0) || math.IsNaN(f) {
				t.Errorf("%+v: advantage %d of %v is %v", rule, i, rewards[i], f)
			}
		}
	}
}

func BenchmarkOf(b *testing.B) {
	rewards := []float64{1, -1, -1, 1, -1, -1, -1, 1}
	b.ReportAllocs()
	for b.Loop() {
		advantage.Rule{}.Of(rewards)
	}
}
