package rollout

import (
	"errors"
	"slices"
	"time"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// ErrOutOfTurn occurs when an answer comes that was not asked for.
var ErrOutOfTurn = errors.New("not what the rollout asked for")

// Step is what a rollout needs next: a Sample, a Call, an Observe or an End.
type Step interface{ step() }

// Sample asks the policy to go on from a prompt. Answer with Sampled.
type Sample struct {
	// Prompt is all tokens so far.
	Prompt []uint32
	// MaxTokens is how many may be sampled: at least 1.
	MaxTokens int
	// Turn counts from 0.
	Turn int
	// Resumed counts the times this turn was aborted, cut off or taken over before.
	Resumed int
}

// Call asks for one run of a program. Answer with Executed.
type Call struct {
	CallID string
	Code   string
}

// Observe asks for the tokens that the chat template makes of an observation: all that
// follows the assistant's own text up to where the next turn begins. Answer with
// Observed. It is asked again with a shorter text where that is over a budget.
type Observe struct {
	Text string
}

// End says that the trajectory is complete.
type End struct{}

func (Sample) step()  {}
func (Call) step()    {}
func (Observe) step() {}
func (End) step()     {}

// Finish is why a generation stopped.
type Finish int

// The reasons to stop.
const (
	// Stopped by the policy itself.
	Stopped Finish = iota
	// Length: MaxTokens were sampled.
	Length
	// Aborted by the server, for a weight update: there is more to come.
	Aborted
	// Cut: the connection broke off after these tokens. There is more to come.
	Cut
)

// More says whether the turn goes on.
func (f Finish) More() bool { return f == Aborted || f == Cut }

// Completion is what the policy sampled in answer to one Sample.
type Completion struct {
	Tokens   []uint32
	Logprobs []float32
	// Text is the tokens' text without special tokens.
	Text   string
	Finish Finish
	// Versions sampled these tokens, in their order; the counts add up to their number.
	Versions []Versions
	// Source is how that is known.
	Source sluicev1.VersionSource
	// Prompt is what the server says it sampled on; nil where it does not say.
	Prompt []uint32
	// PromptTokens is how many tokens the server says that was; 0 where it does not say.
	PromptTokens int
	// Attempts is how many requests servers have taken on for the turn so far.
	Attempts       int
	Started, Ended time.Time
}

// Versions is a policy version and how many tokens in a row it sampled.
type Versions struct {
	Version uint32
	Count   int
}

// Glue is what the chat template puts after an assistant's text.
type Glue struct {
	// Closing tokens end the assistant's message. They are the first of what answers
	// an Observe.
	Closing []uint32
	// Overhead counts the tokens that answer an Observe apart from the observation's
	// own.
	Overhead int
}

// Overlap is how many of the closing tokens the policy has sampled itself: the length
// of the longest suffix of sampled that is a prefix of closing.
func Overlap(sampled, closing []uint32) int {
	for n := min(len(sampled), len(closing)); n > 0; n-- {
		if slices.Equal(sampled[len(sampled)-n:], closing[:n]) {
			return n
		}
	}
	return 0
}
