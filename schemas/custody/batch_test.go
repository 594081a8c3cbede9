package custody_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

func batch() (*sluicev1.StepBatch, []*sluicev1.MicroBatch) {
	const sum = sluicev1.TokenReduction_TOKEN_REDUCTION_SUM
	b := &sluicev1.StepBatch{
		RunId: "lauf-ü", Incarnation: 2, Step: 1 << 40, MicroBatches: 2, N: 4, ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: sum,
		PolicyVersionMin: 6, PolicyVersionMax: 7, Data: 2, LossTokens: 3,
		Correction: &sluicev1.Correction{Kind: sluicev1.CorrectionKind_CORRECTION_KIND_MASK, BySequence: true, Low: 0.5, High: 2},
	}
	micro := func(i uint32, d *sluicev1.Datum) *sluicev1.MicroBatch {
		return &sluicev1.MicroBatch{
			RunId: b.RunId, Incarnation: b.Incarnation, Step: b.Step, Index: i, Scale: 0.25, ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: sum,
			Data: []*sluicev1.Datum{d},
		}
	}
	return b, []*sluicev1.MicroBatch{
		micro(0, &sluicev1.Datum{
			Slot: 3, SampleIndex: 1, Copy: 1 << 63, InputTokens: tokens.IDs(5, 6, 7), TargetTokens: tokens.IDs(6, 7, 8),
			BehaviourLogprobs: tokens.Floats(0, -0.5, -0.25), Advantages: tokens.Floats(0, 0.5, 0.5), LossMask: []byte{0, 1, 1}, PolicyVersionMin: 6, PolicyVersionMax: 7,
		}),
		micro(1, &sluicev1.Datum{
			Slot: 3, SampleIndex: 2, Copy: 9, InputTokens: tokens.IDs(5, 6), TargetTokens: tokens.IDs(6, 9),
			BehaviourLogprobs: tokens.Floats(0, -1), Advantages: tokens.Floats(0, -0.5), LossMask: []byte{0, 1}, PolicyVersionMin: 7, PolicyVersionMax: 7,
		}),
	}
}

// golden is testdata/step.json: the records, and the digests that hashlib makes of them.
type golden struct {
	StepBatch    []byte   `json:"step_batch"`
	MicroBatches [][]byte `json:"micro_batches"`
	StepDigest   string   `json:"step_digest"`
	MicroDigests []string `json:"micro_digests"`
}

// The trainer's package reads the same file and reckons the digests by itself.
func TestStepDigestsAreThoseThatTheTrainerReckons(t *testing.T) {
	b, micro := batch()
	custody.SealStep(b, micro)
	raw, err := os.ReadFile("testdata/step.json")
	if err != nil && os.Getenv("SLUICE_REWRITE") == "" {
		t.Fatal(err)
	}
	now := golden{StepDigest: hex.EncodeToString(b.Digest)}
	now.StepBatch, _ = proto.MarshalOptions{Deterministic: true}.Marshal(b)
	for _, m := range micro {
		encoded, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		now.MicroBatches = append(now.MicroBatches, encoded)
		now.MicroDigests = append(now.MicroDigests, hex.EncodeToString(m.Digest))
	}
	want, err := json.MarshalIndent(now, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if os.Getenv("SLUICE_REWRITE") != "" {
		if err := os.WriteFile("testdata/step.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(raw, want) {
		t.Errorf("testdata/step.json is\n%s\nwant\n%s", raw, want)
	}
}

func TestEveryChangeOfABatchIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*sluicev1.StepBatch, []*sluicev1.MicroBatch)
		says   string
	}{
		"another run":           {func(b *sluicev1.StepBatch, _ []*sluicev1.MicroBatch) { b.RunId = "b" }, "step"},
		"another incarnation":   {func(b *sluicev1.StepBatch, _ []*sluicev1.MicroBatch) { b.Incarnation++ }, "step"},
		"another step":          {func(b *sluicev1.StepBatch, _ []*sluicev1.MicroBatch) { b.Step++ }, "step"},
		"another n":             {func(b *sluicev1.StepBatch, _ []*sluicev1.MicroBatch) { b.N++ }, "step"},
		"a bit of a bound":      {func(b *sluicev1.StepBatch, _ []*sluicev1.MicroBatch) { b.ClipLow = math.Nextafter(b.ClipLow, 1) }, "step"},
		"another reduction":     {func(b *sluicev1.StepBatch, _ []*sluicev1.MicroBatch) { b.TokenReduction = 2 }, "step"},
		"another version":       {func(b *sluicev1.StepBatch, _ []*sluicev1.MicroBatch) { b.PolicyVersionMax++ }, "step"},
		"no correction":         {func(b *sluicev1.StepBatch, _ []*sluicev1.MicroBatch) { b.Correction = nil }, "step"},
		"another correction":    {func(b *sluicev1.StepBatch, _ []*sluicev1.MicroBatch) { b.Correction.BySequence = false }, "step"},
		"a digest of another":   {func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) { m[0].Digest = m[1].Digest }, "micro-batch 0"},
		"another scale":         {func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) { m[1].Scale = 0.5 }, "micro-batch 1"},
		"another slot":          {func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) { m[0].Data[0].Slot++ }, "micro-batch 0"},
		"another copy":          {func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) { m[0].Data[0].Copy++ }, "micro-batch 0"},
		"another token":         {func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) { m[0].Data[0].InputTokens[0]++ }, "micro-batch 0"},
		"another target":        {func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) { m[0].Data[0].TargetTokens[0]++ }, "micro-batch 0"},
		"a bit of a logprob":    {func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) { m[1].Data[0].BehaviourLogprobs[4] ^= 1 }, "micro-batch 1"},
		"a bit of an advantage": {func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) { m[1].Data[0].Advantages[4] ^= 1 }, "micro-batch 1"},
		"another mask":          {func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) { m[0].Data[0].LossMask[0] = 1 }, "micro-batch 0"},
		"an older version":      {func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) { m[0].Data[0].PolicyVersionMin-- }, "micro-batch 0"},
		"a datum less":          {func(_ *sluicev1.StepBatch, m []*sluicev1.MicroBatch) { m[0].Data = nil }, "micro-batch 0"},
	} {
		b, micro := batch()
		custody.SealStep(b, micro)
		if err := custody.CheckStep(b, micro); err != nil {
			t.Fatal(err)
		}
		c.change(b, micro)
		if err := custody.CheckStep(b, micro); !errors.Is(err, custody.ErrBroken) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want ErrBroken of %s", name, err, c.says)
		}
	}
	b, micro := batch()
	custody.SealStep(b, micro)
	if err := custody.CheckStep(b, micro[:1]); !errors.Is(err, custody.ErrBroken) {
		t.Errorf("a micro-batch less: %v", err)
	}
}
