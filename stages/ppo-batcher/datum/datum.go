package datum

import (
	"errors"
	"fmt"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

var (
	// ErrNoPolicyTokens: the policy sampled nothing that could be trained on.
	ErrNoPolicyTokens = errors.New("datum: no policy tokens")
	// ErrUnequal: a turn has not one logprob and one version per token.
	ErrUnequal = errors.New("datum: unequal lengths")
)

// Shape is what packing needs to know of a trajectory.
type Shape struct {
	// Tokens is the length of the datum's arrays: one less than the tokens up
	// to the end of the last turn, 0 if there are none.
	Tokens int
	// LossTokens is how many of them are trained on.
	LossTokens int
	// MinVersion and MaxVersion are the oldest and the newest policy version that
	// sampled a token; 0 without LossTokens.
	MinVersion, MaxVersion uint32
}

// ShapeOf measures a trajectory. Its error is ErrUnequal or ErrNoPolicyTokens; the
// Shape is right in the second case too.
func ShapeOf(t *sluicev1.Trajectory) (Shape, error) {
	var s Shape
	total := len(t.GetPromptTokens())
	for i, turn := range t.GetTurns() {
		n, l, v := len(turn.GetTokens()), len(turn.GetLogprobs()), len(turn.GetPolicyVersions())
		if n != l || n != v {
			return Shape{}, fmt.Errorf("%w: turn %d has %d tokens, %d logprobs, %d policy versions", ErrUnequal, i, n, l, v)
		}
		for _, version := range turn.GetPolicyVersions() {
			if s.LossTokens == 0 {
				s.MinVersion, s.MaxVersion = version, version
			}
			s.LossTokens++
			s.MinVersion, s.MaxVersion = min(s.MinVersion, version), max(s.MaxVersion, version)
		}
		if total == 0 && n > 0 {
			// The very first token follows none: nothing predicts it.
			s.LossTokens--
		}
		total += n + len(glue(t, i))
	}
	s.Tokens = max(0, total-1)
	if s.LossTokens == 0 {
		return Shape{Tokens: s.Tokens}, fmt.Errorf("%w: %d tokens, none of them sampled", ErrNoPolicyTokens, total)
	}
	return s, nil
}

// Of builds the datum with one advantage on every policy token.
func Of(t *sluicev1.Trajectory, advantage float64) (*sluicev1.Datum, error) {
	shape, err := ShapeOf(t)
	if err != nil {
		return nil, err
	}
	b := builder{
		tokens:   make([]uint32, 0, shape.Tokens+1),
		logprobs: make([]float32, shape.Tokens+1),
		mask:     make([]bool, shape.Tokens+1),
	}
	b.tokens = append(b.tokens, t.GetPromptTokens()...)
	for i, turn := range t.GetTurns() {
		b.sampled(turn.GetTokens(), turn.GetLogprobs())
		b.tokens = append(b.tokens, glue(t, i)...)
	}
	advantages := make([]float32, shape.Tokens)
	for i := range advantages {
		if b.mask[i+1] {
			advantages[i] = float32(advantage)
		}
	}
	return &sluicev1.Datum{
		Slot:              t.GetPrompt().GetGroup().GetSlot(),
		SampleIndex:       t.GetSampleIndex(),
		Copy:              t.GetCopy(),
		InputTokens:       b.tokens[:shape.Tokens],
		TargetTokens:      b.tokens[1:],
		BehaviourLogprobs: b.logprobs[1:],
		Advantages:        advantages,
		LossMask:          b.mask[1:],
		PolicyVersionMin:  shape.MinVersion,
		PolicyVersionMax:  shape.MaxVersion,
	}, nil
}

// glue is what leads from turn i to the next; after the last turn it leads nowhere.
func glue(t *sluicev1.Trajectory, i int) []uint32 {
	if i == len(t.GetTurns())-1 {
		return nil
	}
	return t.GetTurns()[i].GetGlueTokens()
}

// builder holds the arrays before the shift: value i speaks of token i.
type builder struct {
	tokens   []uint32
	logprobs []float32
	mask     []bool
}

func (b *builder) sampled(tokens []uint32, logprobs []float32) {
	at := len(b.tokens)
	b.tokens = append(b.tokens, tokens...)
	copy(b.logprobs[at:], logprobs)
	for i := range tokens {
		b.mask[at+i] = true
	}
}
