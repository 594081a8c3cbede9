package ppo_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/ppo"
)

// Ratio and gradient against a naive reading: the loss is computed from Score alone
// at shifted parameters, its slope by finite differences, and one micro-batch of all
// data must give the same step as many small ones.
func TestGradientIsThatOfTheLoss(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(5, 5))
	var groups [][]trajectory
	for range 3 {
		s := w.lib.All()[rng.IntN(w.lib.Len())]
		var g []trajectory
		for range 8 {
			g = append(g, w.rollout(t, policy.Initial(), s, rng.Uint64()>>8))
		}
		groups = append(groups, g)
	}
	for _, reduction := range []sluicev1.TokenReduction{sluicev1.TokenReduction_TOKEN_REDUCTION_MEAN, sluicev1.TokenReduction_TOKEN_REDUCTION_SUM} {
		for _, perMicro := range []int{32, 3} {
			sb, micro := batch(1, groups, reduction, perMicro)
			shifted := policy.Initial()
			for s := range shifted {
				for i := range shifted[s] {
					shifted[s][i] += 0.2 * rng.NormFloat64()
				}
			}
			cfg := ppo.Config{LearningRate: 1e-3, Epochs: 1, Temperature: 1}
			_, opt, r, err := ppo.Step(cfg, w.pol, shifted, ppo.NewOptimizer(), sb, micro)
			if err != nil {
				t.Fatal(err)
			}
			if want := w.naiveLoss(t, shifted, micro); math.Abs(r.Loss-want) > 1e-6 {
				t.Errorf("%v, %d data a micro-batch: loss %v, want %v", reduction, perMicro, r.Loss, want)
			}
			for s := range shifted {
				for i := range shifted[s] {
					const h = 1e-4
					up, down := shifted.Clone(), shifted.Clone()
					up[s][i] += h
					down[s][i] -= h
					want := (w.naiveLoss(t, up, micro) - w.naiveLoss(t, down, micro)) / (2 * h)
					got := opt.First[s][i] / 0.1 // the first moment after one step is 0.1 of the gradient
					if math.Abs(got-want) > 2e-3*(1+math.Abs(want)) {
						t.Errorf("%v, %d data a micro-batch: gradient of %s %d is %v, want %v", reduction, perMicro, policy.Site(s).Name(), i, got, want)
					}
				}
			}
		}
	}
}

func (w world) naiveLoss(t *testing.T, params policy.Parameters, micro []*sluicev1.MicroBatch) float64 {
	t.Helper()
	var total float64
	for _, m := range micro {
		var sum float64
		for _, d := range m.Data {
			sum += w.naiveDatum(t, params, d, m.TokenReduction)
		}
		total += sum / float64(len(m.Data))
	}
	return total
}

func (w world) naiveDatum(t *testing.T, params policy.Parameters, d *sluicev1.Datum, reduction sluicev1.TokenReduction) float64 {
	t.Helper()
	var loss, n float64
	for i := 0; i < len(d.LossMask); i++ {
		if d.LossMask[i] == 0 {
			continue
		}
		j := i
		for j < len(d.LossMask) && d.LossMask[j] == 1 {
			j++
		}
		scored, err := w.pol.Score(params, 1, tokens.ReadIDs(d.InputTokens)[:i+1], tokens.ReadIDs(d.TargetTokens)[i:j])
		if err != nil {
			t.Fatal(err)
		}
		for k, tok := range scored {
			r := math.Exp(tok.Logprob - float64(tokens.Float(d.BehaviourLogprobs, i+k)))
			a := float64(tokens.Float(d.Advantages, i+k))
			loss -= math.Min(r*a, math.Max(0.8, math.Min(1.28, r))*a)
			n++
		}
		i = j
	}
	if reduction == sluicev1.TokenReduction_TOKEN_REDUCTION_MEAN {
		return loss / n
	}
	return loss
}

func TestStepRefusesWhatDoesNotFit(t *testing.T) {
	w := newWorld(t)
	s := w.lib.All()[0]
	groups := [][]trajectory{{w.rollout(t, policy.Initial(), s, 1), w.rollout(t, policy.Initial(), s, 2)}}
	groups[0][0].reward, groups[0][1].reward = 1, -1
	for name, spoil := range map[string]func(*sluicev1.StepBatch, []*sluicev1.MicroBatch) []*sluicev1.MicroBatch{
		"one is missing": func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) []*sluicev1.MicroBatch { return m[1:] },
		"out of order": func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) []*sluicev1.MicroBatch {
			return []*sluicev1.MicroBatch{m[1], m[0]}
		},
		"of another step": func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) []*sluicev1.MicroBatch { m[0].Step = 9; return m },
		"no reduction": func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) []*sluicev1.MicroBatch {
			m[0].TokenReduction = 0
			return m
		},
		"of another tokenizer": func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) []*sluicev1.MicroBatch {
			copy(m[0].Data[0].TargetTokens[tokens.Size:], tokens.IDs(1<<30))
			return m
		},
	} {
		sb, micro := batch(1, groups, sluicev1.TokenReduction_TOKEN_REDUCTION_SUM, 1)
		for _, m := range micro {
			for _, d := range m.Data {
				d.TargetTokens = slices.Clone(d.TargetTokens)
			}
		}
		before := policy.Initial()
		_, _, _, err := ppo.Step(ppo.Defaults(), w.pol, before, ppo.NewOptimizer(), sb, spoil(sb, micro))
		if err == nil {
			t.Errorf("%s: want an error", name)
		}
		if d := cmp.Diff(policy.Initial(), before); d != "" {
			t.Errorf("%s: the parameters given were changed:\n%s", name, d)
		}
	}
}

func TestForeignTokensAreCountedAndLeftOut(t *testing.T) {
	w := newWorld(t)
	s := w.lib.All()[0]
	groups := [][]trajectory{{w.rollout(t, policy.Initial(), s, 1), w.rollout(t, policy.Initial(), s, 2)}}
	groups[0][0].reward, groups[0][1].reward = 1, -1
	sb, micro := batch(1, groups, sluicev1.TokenReduction_TOKEN_REDUCTION_SUM, 2)
	d := micro[0].Data[0]
	first := slices.Index(d.LossMask, 1)
	d.TargetTokens = slices.Clone(d.TargetTokens)
	copy(d.TargetTokens[tokens.Size*first:], tokens.IDs('Z'))
	_, _, r, err := ppo.Step(ppo.Defaults(), w.pol, policy.Initial(), ppo.NewOptimizer(), sb, micro)
	if err != nil {
		t.Fatal(err)
	}
	if r.ForeignTokens == 0 || math.IsNaN(r.Loss) || r.FirstRatioMax != 0 {
		t.Errorf("report %+v: want foreign tokens counted, the others at ratio 1", r)
	}
}

func BenchmarkStep(b *testing.B) {
	w := newWorld(b)
	var groups [][]trajectory
	for slot := range 4 {
		var g []trajectory
		for i := range 8 {
			g = append(g, w.rollout(b, policy.Initial(), w.lib.All()[slot], uint64(i)))
			g[i].reward = float64(1 - 2*(i%2))
		}
		groups = append(groups, g)
	}
	sb, micro := batch(1, groups, sluicev1.TokenReduction_TOKEN_REDUCTION_SUM, 32)
	for b.Loop() {
		if _, _, _, err := ppo.Step(ppo.Defaults(), w.pol, policy.Initial(), ppo.NewOptimizer(), sb, micro); err != nil {
			b.Fatal(err)
		}
	}
}
