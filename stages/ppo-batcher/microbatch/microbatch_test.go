package microbatch_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/stages/ppo-batcher/microbatch"
)

func TestPack(t *testing.T) {
	cases := []struct {
		name    string
		limits  microbatch.Limits
		lengths []int
		want    [][]int
	}{
		{"nothing", microbatch.DefaultLimits, nil, nil},
		{"one", microbatch.DefaultLimits, []int{5}, [][]int{{0}}},
		{"longest first", microbatch.DefaultLimits, []int{5, 9, 7}, [][]int{{1, 2, 0}}},
		{"ties in the order given", microbatch.DefaultLimits, []int{5, 5, 9, 5}, [][]int{{2, 0, 1, 3}}},
		{"at most 32 data", microbatch.Limits{Data: 2, PaddedTokens: 100}, []int{3, 3, 3}, [][]int{{0, 1}, {2}}},
		{"padding counts: 3 x 40 is over 100", microbatch.Limits{Data: 9, PaddedTokens: 100}, []int{40, 1, 1}, [][]int{{0, 1}, {2}}},
		{"exactly full", microbatch.Limits{Data: 9, PaddedTokens: 80}, []int{40, 40}, [][]int{{0, 1}}},
		// 60 opens, 50 does not join it (2 x 60), 40 joins 50 (2 x 50), 1 joins neither.
		{"first fit, not last", microbatch.Limits{Data: 9, PaddedTokens: 100}, []int{60, 50, 40, 1}, [][]int{{0}, {1, 2}, {3}}},
		{"a datum as long as a micro-batch", microbatch.Limits{Data: 9, PaddedTokens: 7}, []int{7, 1}, [][]int{{0}, {1}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.limits.Pack(c.lengths)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Pack(%v) (-want +got):\n%s", c.lengths, diff)
			}
		})
	}
}

func TestPackRefuses(t *testing.T) {
	cases := []struct {
		name    string
		limits  microbatch.Limits
		lengths []int
		want    error
	}{
		{"no data allowed", microbatch.Limits{Data: 0, PaddedTokens: 5}, nil, microbatch.ErrLimits},
		{"no tokens allowed", microbatch.Limits{Data: 5, PaddedTokens: 0}, nil, microbatch.ErrLimits},
		{"longer than a micro-batch", microbatch.Limits{Data: 5, PaddedTokens: 5}, []int{6}, microbatch.ErrDoesNotFit},
		{"empty", microbatch.DefaultLimits, []int{3, 0}, microbatch.ErrDoesNotFit},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.limits.Pack(c.lengths); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// naive is first-fit decreasing as one would say it.
func naive(l microbatch.Limits, lengths []int) [][]int {
	left := map[int]bool{}
	for i := range lengths {
		left[i] = true
	}
	var batches [][]int
	for len(left) > 0 {
		longest := -1
		for i := range lengths {
			if left[i] && (longest < 0 || lengths[i] > lengths[longest]) {
				longest = i
			}
		}
		delete(left, longest)
		placed := false
		for b := range batches {
			with := append(slices.Clone(batches[b]), longest)
			if len(with) <= l.Data && microbatch.PaddedTokens(lengths, with) <= l.PaddedTokens {
				batches[b], placed = with, true
				break
			}
		}
		if !placed {
			batches = append(batches, []int{longest})
		}
	}
	return batches
}

func TestPackAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := microbatch.Limits{Data: rapid.IntRange(1, 8).Draw(t, "data"), PaddedTokens: rapid.IntRange(1, 100).Draw(t, "tokens")}
		lengths := rapid.SliceOfN(rapid.IntRange(1, l.PaddedTokens), 0, 60).Draw(t, "lengths")
		got, err := l.Pack(lengths)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(naive(l, lengths), got); diff != "" {
			t.Fatalf("-naive +got:\n%s", diff)
		}
	})
}

// The sum over micro-batches of each one's mean over scaled data is the global mean
// over n, whatever the packing.
func TestScaleGivesTheGlobalMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gradients := rapid.SliceOfN(rapid.Float64Range(-10, 10), 1, 40).Draw(t, "gradients")
		n := len(gradients) + rapid.IntRange(0, 20).Draw(t, "not packed")
		l := microbatch.Limits{Data: rapid.IntRange(1, 7).Draw(t, "data"), PaddedTokens: 1000}
		lengths := make([]int, len(gradients))
		var total float64
		for i := range lengths {
			lengths[i] = rapid.IntRange(1, 1000).Draw(t, "length")
			total += gradients[i]
		}
		batches, err := l.Pack(lengths)
		if err != nil {
			t.Fatal(err)
		}
		var summed float64
		for _, batch := range batches {
			var mean float64
			for _, i := range batch {
				mean += gradients[i] * microbatch.Scale(len(batch), n) / float64(len(batch))
			}
			summed += mean
		}
		if want := total / float64(n); math.Abs(summed-want) > 1e-9 {
			t.Fatalf("summed %v, want %v", summed, want)
		}
	})
}

func BenchmarkPack(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	lengths := make([]int, 4096)
	for i := range lengths {
		lengths[i] = 100 + rng.IntN(8000)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := microbatch.DefaultLimits.Pack(lengths); err != nil {
			b.Fatal(err)
		}
	}
}
