package ppo_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/ppo"
)

// figures of one step.
type figures struct{ reward, calls, corrected float64 }

func (w world) run(t testing.TB, seed uint64, steps int, cfg ppo.Config, freeze bool, reduction sluicev1.TokenReduction) []figures {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	params, opt := policy.Initial(), ppo.NewOptimizer()
	var all []figures
	for step := range steps {
		var groups [][]trajectory
		var f figures
		var failed, corrected float64
		for range 4 {
			s := w.lib.All()[rng.IntN(w.lib.Len())]
			var g []trajectory
			for range 8 {
				tr := w.rollout(t, params, s, rng.Uint64()>>8)
				g = append(g, tr)
				f.reward += tr.reward / 32
				if tr.calls > 0 {
					f.calls += 1.0 / 32
				}
				if tr.failed {
					failed++
				}
				if tr.corrected {
					corrected++
				}
			}
			groups = append(groups, g)
		}
		if failed > 0 {
			f.corrected = corrected / failed
		}
		all = append(all, f)
		sb, micro := batch(uint64(step+1), groups, reduction, 32)
		if len(micro) == 0 {
			continue
		}
		p, o, r, err := ppo.Step(cfg, w.pol, params, opt, sb, micro)
		if err != nil {
			t.Fatal(err)
		}
		if r.FirstRatioMax != 0 || r.ForeignTokens != 0 {
			t.Fatalf("step %d: ratio off 1 by %v before the first update, %d foreign tokens; want 0 and 0", step+1, r.FirstRatioMax, r.ForeignTokens)
		}
		if !freeze {
			params, opt = p, o
		}
	}
	return all
}

func mean(fs []figures) figures {
	var m figures
	for _, f := range fs {
		m.reward += f.reward / float64(len(fs))
		m.calls += f.calls / float64(len(fs))
		m.corrected += f.corrected / float64(len(fs))
	}
	return m
}

// The run of the demo: 20 steps of 4 problems x 8 samples, default settings.
func TestLearnsOverSeveralSeeds(t *testing.T) {
	w := newWorld(t)
	for _, reduction := range []sluicev1.TokenReduction{sluicev1.TokenReduction_TOKEN_REDUCTION_MEAN, sluicev1.TokenReduction_TOKEN_REDUCTION_SUM} {
		for seed := uint64(1); seed <= 4; seed++ {
			all := w.run(t, seed, 20, ppo.Defaults(), false, reduction)
			first, last := mean(all[:3]), mean(all[15:])
			t.Logf("%v, seed %d: first step %+.2f; steps 1-3 %+.2f, calls %.2f, corrected %.2f; steps 16-20 %+.2f, calls %.2f, corrected %.2f",
				reduction, seed, all[0].reward, first.reward, first.calls, first.corrected, last.reward, last.calls, last.corrected)
			if first.reward > -0.3 || last.reward < 0.3 || last.reward-first.reward < 0.8 {
				t.Errorf("%v, seed %d: mean reward goes from %+.2f to %+.2f; want it bad at first, above +0.3 at last", reduction, seed, first.reward, last.reward)
			}
			if last.calls < first.calls+0.2 || last.corrected < first.corrected+0.2 {
				t.Errorf("%v, seed %d: code-call rate %.2f to %.2f, self-correction %.2f to %.2f; want both to rise by 0.2", reduction, seed, first.calls, last.calls, first.corrected, last.corrected)
			}
		}
	}
}

func TestFrozenStaysFlat(t *testing.T) {
	w := newWorld(t)
	for seed := uint64(1); seed <= 3; seed++ {
		all := w.run(t, seed, 20, ppo.Defaults(), true, sluicev1.TokenReduction_TOKEN_REDUCTION_MEAN)
		first, last := mean(all[:10]), mean(all[10:])
		t.Logf("seed %d: %+.2f, then %+.2f", seed, first.reward, last.reward)
		if first.reward > -0.6 || last.reward > -0.6 || math.Abs(first.reward-last.reward) > 0.25 {
			t.Errorf("seed %d: mean reward %+.2f, then %+.2f; want both below -0.6 and alike", seed, first.reward, last.reward)
		}
	}
}
