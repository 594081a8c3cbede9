package datum

import (
	"errors"
	"fmt"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
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
	total := tokens.Count(t.GetPromptTokens())
	for i, turn := range t.GetTurns() {
		n, l, v := tokens.Count(turn.GetTokens()), tokens.Count(turn.GetLogprobs()), tokens.CountVersions(turn.GetVersions())
		if n != l || n != v {
			return Shape{}, fmt.Errorf("%w: turn %d has %d tokens, %d logprobs, %d policy versions", ErrUnequal, i, n, l, v)
		}
		if oldest, newest, ok := tokens.VersionRange(turn.GetVersions()); ok {
			if s.LossTokens == 0 {
				s.MinVersion, s.MaxVersion = oldest, newest
			}
			s.MinVersion, s.MaxVersion = min(s.MinVersion, oldest), max(s.MaxVersion, newest)
		}
		s.LossTokens += n
		if total == 0 && n > 0 {
			// The very first token follows none: nothing predicts it.
			s.LossTokens--
		}
		total += n + tokens.Count(glue(t, i))
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
		tokens:   make([]byte, 0, tokens.Size*(shape.Tokens+1)),
		logprobs: make([]byte, tokens.Size*(shape.Tokens+1)),
		mask:     make([]byte, shape.Tokens+1),
	}
	b.tokens = append(b.tokens, t.GetPromptTokens()...)
	for i, turn := range t.GetTurns() {
		b.sampled(turn.GetTokens(), turn.GetLogprobs())
		b.tokens = append(b.tokens, glue(t, i)...)
	}
	mask := b.mask[1:]
	one := tokens.Floats(float32(advantage))
	advantages := make([]byte, tokens.Size*shape.Tokens)
	for i, own := range mask {
		if own == 1 {
			copy(advantages[tokens.Size*i:], one)
		}
	}
	return &sluicev1.Datum{
		Slot:              t.GetPrompt().GetGroup().GetSlot(),
		SampleIndex:       t.GetSampleIndex(),
		Copy:              t.GetCopy(),
		InputTokens:       b.tokens[:tokens.Size*shape.Tokens],
		TargetTokens:      b.tokens[tokens.Size:],
		BehaviourLogprobs: b.logprobs[tokens.Size:],
		Advantages:        advantages,
		LossMask:          mask,
		PolicyVersionMin:  shape.MinVersion,
		PolicyVersionMax:  shape.MaxVersion,
	}, nil
}

// glue is what leads from turn i to the next; after the last turn it leads nowhere.
func glue(t *sluicev1.Trajectory, i int) []byte {
	if i == len(t.GetTurns())-1 {
		return nil
	}
	return t.GetTurns()[i].GetGlueTokens()
}

// builder holds the arrays before the shift: value i speaks of token i.
type builder struct{ tokens, logprobs, mask []byte }

func (b *builder) sampled(ids, logprobs []byte) {
	at := len(b.tokens)
	b.tokens = append(b.tokens, ids...)
	copy(b.logprobs[at:], logprobs)
	for i := range tokens.Count(ids) {
		b.mask[at/tokens.Size+i] = 1
	}
}
