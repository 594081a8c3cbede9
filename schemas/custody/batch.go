package custody

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// What begins the digest of a micro-batch and of a step.
const (
	microBegins = "sluice micro-batch 1"
	stepBegins  = "sluice step 1"
)

// SealStep gives a step and its micro-batches, by index, their digests. What exactly they
// are over stands at StepBatch.digest and MicroBatch.digest in training.proto.
func SealStep(b *sluicev1.StepBatch, micro []*sluicev1.MicroBatch) {
	for _, m := range micro {
		m.Digest = ofMicro(m)
	}
	b.Digest = ofStep(b, micro)
}

// CheckStep says whether a step and its micro-batches, by index, are those that were
// sealed. Its error is ErrBroken and names the first that is not.
func CheckStep(b *sluicev1.StepBatch, micro []*sluicev1.MicroBatch) error {
	for i, m := range micro {
		if got, now := m.GetDigest(), ofMicro(m); string(got) != string(now) {
			return fmt.Errorf("%w: micro-batch %d of step %d bears digest %.8x, its content has %.8x", ErrBroken, i, b.GetStep(), got, now)
		}
	}
	if got, now := b.GetDigest(), ofStep(b, micro); string(got) != string(now) {
		return fmt.Errorf("%w: step %d bears digest %.8x, its content has %.8x", ErrBroken, b.GetStep(), got, now)
	}
	return nil
}

func ofMicro(m *sluicev1.MicroBatch) []byte {
	h := sha256.New()
	text(h, microBegins)
	text(h, m.GetRunId())
	number32(h, m.GetIncarnation())
	number64(h, m.GetStep())
	number32(h, m.GetIndex())
	floats(h, m.GetScale(), m.GetClipLow(), m.GetClipHigh())
	number32(h, uint32(m.GetTokenReduction()))
	count(h, len(m.GetData()))
	for _, d := range m.GetData() {
		number32(h, d.GetSlot(), d.GetSampleIndex())
		number64(h, d.GetCopy())
		array(h, d.GetInputTokens())
		array(h, d.GetTargetTokens())
		array(h, d.GetBehaviourLogprobs())
		array(h, d.GetAdvantages())
		count(h, len(d.GetLossMask()))
		h.Write(d.GetLossMask())
		number32(h, d.GetPolicyVersionMin(), d.GetPolicyVersionMax())
	}
	return h.Sum(nil)
}

func ofStep(b *sluicev1.StepBatch, micro []*sluicev1.MicroBatch) []byte {
	h := sha256.New()
	text(h, stepBegins)
	text(h, b.GetRunId())
	number32(h, b.GetIncarnation())
	number64(h, b.GetStep())
	number32(h, b.GetN())
	floats(h, b.GetClipLow(), b.GetClipHigh())
	number32(h, uint32(b.GetTokenReduction()), b.GetPolicyVersionMin(), b.GetPolicyVersionMax())
	c := b.GetCorrection()
	number32(h, uint32(c.GetKind()))
	bySequence := byte(0)
	if c.GetBySequence() {
		bySequence = 1
	}
	h.Write([]byte{bySequence})
	floats(h, c.GetLow(), c.GetHigh())
	count(h, len(micro))
	for _, m := range micro {
		h.Write(m.GetDigest())
	}
	return h.Sum(nil)
}

func text(h hash.Hash, s string) {
	count(h, len(s))
	h.Write([]byte(s))
}

func number32(h hash.Hash, values ...uint32) {
	for _, v := range values {
		h.Write(binary.LittleEndian.AppendUint32(nil, v))
	}
}

func number64(h hash.Hash, v uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, v)) }

func floats(h hash.Hash, values ...float64) {
	for _, v := range values {
		number64(h, math.Float64bits(v))
	}
}
