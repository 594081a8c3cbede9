package datum_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/datum"
)

func turn(version uint32, sampled []uint32, glue ...uint32) *sluicev1.Turn {
	t := &sluicev1.Turn{Tokens: tokens.IDs(sampled...), GlueTokens: tokens.IDs(glue...), Versions: tokens.AppendVersion(nil, version, len(sampled))}
	for i := range sampled {
		t.Logprobs = tokens.AppendFloats(t.Logprobs, -0.5*float32(i+1))
	}
	return t
}

func trajectory(prompt []uint32, turns ...*sluicev1.Turn) *sluicev1.Trajectory {
	return &sluicev1.Trajectory{
		Prompt:      &sluicev1.Prompt{Group: &sluicev1.GroupPlace{RunId: "r", Step: 1, Slot: 3}},
		SampleIndex: 5, Copy: 7, PromptTokens: tokens.IDs(prompt...), Turns: turns,
	}
}

// A tool turn, its observation and an answer: the mask is on the policy's tokens alone.
func TestOf(t *testing.T) {
	got, err := datum.Of(trajectory([]uint32{1, 2}, turn(4, []uint32{10, 11}, 20, 21, 22), turn(5, []uint32{12})), 0.25)
	if err != nil {
		t.Fatal(err)
	}
	want := &sluicev1.Datum{
		Slot: 3, SampleIndex: 5, Copy: 7,
		InputTokens:       tokens.IDs(1, 2, 10, 11, 20, 21, 22),
		TargetTokens:      tokens.IDs(2, 10, 11, 20, 21, 22, 12),
		LossMask:          []byte{0, 1, 1, 0, 0, 0, 1},
		BehaviourLogprobs: tokens.Floats(0, -0.5, -1, 0, 0, 0, -0.5),
		Advantages:        tokens.Floats(0, 0.25, 0.25, 0, 0, 0, 0.25),
		PolicyVersionMin:  4, PolicyVersionMax: 5,
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The token budget struck after an observation: it led to no turn and is left out.
func TestOfEndsWithTheLastTurn(t *testing.T) {
	got, err := datum.Of(trajectory([]uint32{1}, turn(1, []uint32{10, 11}, 20, 21)), 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint32{10, 11}, tokens.ReadIDs(got.GetTargetTokens())); diff != "" {
		t.Errorf("targets -want +got:\n%s", diff)
	}
}

func TestOfRefuses(t *testing.T) {
	short := turn(1, []uint32{1, 2, 3})
	short.Logprobs = short.Logprobs[:2*tokens.Size]
	cases := []struct {
		name string
		t    *sluicev1.Trajectory
		want error
	}{
		{"given up without its content", trajectory(nil), datum.ErrNoPolicyTokens},
		{"an empty completion", trajectory([]uint32{1, 2}, turn(1, nil)), datum.ErrNoPolicyTokens},
		{"one token with nothing before it", trajectory(nil, turn(1, []uint32{9})), datum.ErrNoPolicyTokens},
		{"fewer logprobs than tokens", trajectory([]uint32{1}, short), datum.ErrUnequal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := datum.Of(c.t, 1); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// Whatever the turns: the arrays have equal lengths, un-shifting them gives the
// trajectory back, and the shape says what the datum has.
func TestOfAgainstTheTokensOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := func(label string) []uint32 { return rapid.SliceOfN(rapid.Uint32Range(0, 9), 0, 5).Draw(t, label) }
		traj := trajectory(ids("prompt"))
		for range rapid.IntRange(0, 4).Draw(t, "turns") {
			traj.Turns = append(traj.Turns, turn(rapid.Uint32Range(0, 3).Draw(t, "version"), ids("tokens"), ids("glue")...))
		}
		type one struct {
			id      uint32
			sampled bool
			logprob float32
		}
		var all []one
		for _, id := range tokens.ReadIDs(traj.GetPromptTokens()) {
			all = append(all, one{id: id})
		}
		for i, turn := range traj.GetTurns() {
			for j, id := range tokens.ReadIDs(turn.GetTokens()) {
				all = append(all, one{id, true, tokens.Float(turn.GetLogprobs(), j)})
			}
			if i == len(traj.GetTurns())-1 {
				break // nothing is trained on behind the last turn
			}
			for _, id := range tokens.ReadIDs(turn.GetGlueTokens()) {
				all = append(all, one{id: id})
			}
		}
		loss := 0
		for i, x := range all {
			if i > 0 && x.sampled {
				loss++
			}
		}
		got, err := datum.Of(traj, -0.5)
		shape, shapeErr := datum.ShapeOf(traj)
		if loss == 0 {
			if !errors.Is(err, datum.ErrNoPolicyTokens) || !errors.Is(shapeErr, datum.ErrNoPolicyTokens) {
				t.Fatalf("errors %v and %v, want ErrNoPolicyTokens", err, shapeErr)
			}
			return
		}
		if err != nil || shapeErr != nil {
			t.Fatal(err, shapeErr)
		}
		if shape.LossTokens != loss || shape.Tokens != len(all)-1 {
			t.Fatalf("shape %+v, want %d loss tokens of %d", shape, loss, len(all)-1)
		}
		if err := codec.Validate(&sluicev1.MicroBatch{RunId: "r", Step: 1, TokenReduction: 1, Data: []*sluicev1.Datum{got}}); err != nil {
			t.Fatal(err)
		}
		for i := range shape.Tokens {
			next := all[i+1]
			var adv float32
			if next.sampled {
				adv = -0.5
			}
			if tokens.ID(got.InputTokens, i) != all[i].id || tokens.ID(got.TargetTokens, i) != next.id || (got.LossMask[i] == 1) != next.sampled ||
				tokens.Float(got.BehaviourLogprobs, i) != next.logprob || tokens.Float(got.Advantages, i) != adv {
				t.Fatalf("value %d is wrong in %v", i, got)
			}
		}
	})
}

func BenchmarkOf(b *testing.B) {
	ids := make([]uint32, 1000)
	glue := make([]uint32, 500)
	traj := trajectory(ids[:300], turn(1, ids, glue...), turn(1, ids, glue...), turn(1, ids))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := datum.Of(traj, 0.5); err != nil {
			b.Fatal(err)
		}
	}
}
