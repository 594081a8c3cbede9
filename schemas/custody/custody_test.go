package custody_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

func trajectory() *sluicev1.Trajectory {
	return &sluicev1.Trajectory{PromptTokens: tokens.IDs(1, 2, 3), Turns: []*sluicev1.Turn{
		{Tokens: tokens.IDs(10, 11), Logprobs: tokens.Floats(-0.5, -0.25), Versions: tokens.Versions(3, 4), GlueTokens: tokens.IDs(20, 21), Text: "a"},
		{Tokens: tokens.IDs(12), Logprobs: tokens.Floats(-1), Versions: tokens.Versions(4)},
	}}
}

// The digests were made by hashlib from what Turn.digest in trajectory.proto says: whoever
// reads that can check them in any language.
func TestDigestsAreWhatTheContractSays(t *testing.T) {
	tr := trajectory()
	custody.SealAll(tr)
	for i, want := range []string{
		"bb6f9ebbbd5069b0ae6bd847c873a4cd8d01eebaeb9ee91f337775898eb2063a",
		"fcb8cc4e7498a22f2a056c0ebdd2f0e5aca68a15bdacb8bd0eb92ae1965a744c",
	} {
		if got := hex.EncodeToString(tr.Turns[i].GetDigest()); got != want {
			t.Errorf("digest of turn %d is %s, want %s", i, got, want)
		}
	}
}

// Sealed turn by turn as it grows, a trajectory bears the same digests.
func TestSealIsSealAll(t *testing.T) {
	want := trajectory()
	custody.SealAll(want)
	got := trajectory()
	last := got.Turns[1]
	glue := got.Turns[0].GetGlueTokens()
	got.Turns, got.Turns[0].GlueTokens = got.Turns[:1], nil
	custody.Seal(got)
	if err := custody.Check(got); err != nil {
		t.Errorf("before the observation: %v", err)
	}
	got.Turns[0].GlueTokens = glue
	custody.Seal(got)
	got.Turns = append(got.Turns, last)
	custody.Seal(got)
	if !proto.Equal(want, got) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := custody.Check(got); err != nil {
		t.Error(err)
	}
	custody.Seal(&sluicev1.Trajectory{})
	if err := custody.Check(&sluicev1.Trajectory{PromptTokens: tokens.IDs(1)}); err != nil {
		t.Errorf("without turns: %v", err)
	}
}

func TestEveryChangeIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*sluicev1.Trajectory)
		says   string
	}{
		"another prompt token":  {func(t *sluicev1.Trajectory) { t.PromptTokens[0]++ }, "turn 0"},
		"one prompt token less": {func(t *sluicev1.Trajectory) { t.PromptTokens = t.PromptTokens[4:] }, "turn 0"},
		"another token":         {func(t *sluicev1.Trajectory) { t.Turns[1].Tokens[0]++ }, "turn 1"},
		"a bit of a logprob":    {func(t *sluicev1.Trajectory) { t.Turns[0].Logprobs[0] ^= 1 }, "turn 0"},
		"-0 for 0":              {func(t *sluicev1.Trajectory) { t.Turns[1].Logprobs[3] ^= 0x80 }, "turn 1"},
		"another version":       {func(t *sluicev1.Trajectory) { t.Turns[0].Versions[1].Version = 9 }, "turn 0"},
		"another glue token":    {func(t *sluicev1.Trajectory) { t.Turns[0].GlueTokens[0]++ }, "turn 0"},
		"glue taken for sampled": {func(t *sluicev1.Trajectory) {
			a := t.Turns[0]
			a.Tokens, a.GlueTokens = append(a.Tokens, a.GlueTokens...), nil
		}, "turn 0"},
		"a token moved to a turn": {func(t *sluicev1.Trajectory) {
			a := t.Turns[0]
			a.Tokens, a.GlueTokens = a.Tokens[:4], append(a.Tokens[4:8:8], a.GlueTokens...)
		}, "turn 0"},
		"turns exchanged":         {func(t *sluicev1.Trajectory) { t.Turns[0], t.Turns[1] = t.Turns[1], t.Turns[0] }, "turn 0"},
		"the first turn left out": {func(t *sluicev1.Trajectory) { t.Turns = t.Turns[1:] }, "turn 0"},
		"no digest":               {func(t *sluicev1.Trajectory) { t.Turns[1].Digest = nil }, "turn 1 bears no digest"},
	} {
		tr := trajectory()
		custody.SealAll(tr)
		c.change(tr)
		if err := custody.Check(tr); !errors.Is(err, custody.ErrBroken) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want ErrBroken of %s", name, err, c.says)
		}
	}
	tr := trajectory()
	custody.SealAll(tr)
	tr.Turns[0].Text = "another text"
	if err := custody.Check(tr); err != nil {
		t.Errorf("texts are not sealed: %v", err)
	}
}

// What 8,192 tokens take.
func BenchmarkCheck(b *testing.B) {
	tr := &sluicev1.Trajectory{PromptTokens: make([]byte, 4*512)}
	for range 6 {
		tr.Turns = append(tr.Turns, &sluicev1.Turn{Tokens: make([]byte, 4*1024), Logprobs: make([]byte, 4*1024), Versions: tokens.AppendVersion(nil, 1, 1024), GlueTokens: make([]byte, 4*256)})
	}
	custody.SealAll(tr)
	for b.Loop() {
		if err := custody.Check(tr); err != nil {
			b.Fatal(err)
		}
	}
}
