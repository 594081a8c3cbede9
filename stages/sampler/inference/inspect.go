package inference

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

const (
	// mostVocabulary bounds token ids where the size of the vocabulary is not known: no
	// model has as many.
	mostVocabulary = 1 << 24
	// leastLogprob, and what is less, stands for minus infinity: vLLM writes -9999 for
	// it, llama-server the least float.
	leastLogprob = -9999
	// positiveByRounding is how far above 0 arithmetic alone takes a logprob.
	positiveByRounding = 1e-4
)

// inspect reads what only the whole answer shows: each choice that cannot be used gets
// its Err, so that the others still can.
func inspect(r Request, a *Response, vocabulary int) error {
	if len(a.Choices) != r.N {
		return fmt.Errorf("%w: %d choices, asked for %d", ErrAnswer, len(a.Choices), r.N)
	}
	total := 0
	for i := range a.Choices {
		c := &a.Choices[i]
		switch {
		case c.Err != nil:
		case c.cut != nil:
			c.Err = c.inspectCut(r, vocabulary)
		default:
			c.Err = c.inspect(r, vocabulary)
		}
		total += len(c.Tokens)
		if c.prompt != nil {
			a.Prompt = c.prompt
		}
	}
	if a.completionTokens >= 0 && a.completionTokens != total {
		err := fmt.Errorf("%w: %d token ids, but the server counts %d sampled: a tool or reasoning parser keeps some back, start the server without one (vllm: --tool-call-parser, --reasoning-parser)",
			ErrAnswer, total, a.completionTokens)
		for i := range a.Choices {
			if a.Choices[i].Err == nil {
				a.Choices[i].Err = err
			}
		}
	}
	return nil
}

// inspect says why a completion cannot be used, and reads its finish.
func (c *Choice) inspect(r Request, vocabulary int) (err error) {
	if len(c.Tokens) == 0 && (c.Text != "" || len(c.Logprobs) > 0 || c.usage > 0) {
		return fmt.Errorf("%w: %d characters of text, %d logprobs, %d tokens by its own count: does it know return_token_ids?",
			ErrNoTokenIDs, len(c.Text), len(c.Logprobs), max(0, c.usage))
	}
	if c.Finish, err = finishOf(c.finish); err != nil {
		return err
	}
	n := len(c.Tokens)
	switch {
	case len(c.Logprobs) != n || c.usage >= 0 && c.usage != n:
		return fmt.Errorf("%w: %d token ids, %d logprobs%s: must be equal", ErrAnswer, n, len(c.Logprobs), counted(c.usage))
	case n > r.MaxTokens:
		return fmt.Errorf("%w: %d tokens sampled where at most %d were asked for", ErrAnswer, n, r.MaxTokens)
	case n == 0 && c.Finish != rollout.Aborted:
		// A policy that stops at once has sampled an end token, which would be here.
		return fmt.Errorf("%w: finish reason %q without a token", ErrAnswer, c.finish)
	case c.Finish == rollout.Length && n < r.MaxTokens:
		return fmt.Errorf("%w: finish reason %q after %d tokens of %d asked for: the server's own limit ended it", ErrAnswer, c.finish, n, r.MaxTokens)
	case c.ids != nil && !slices.Equal(c.ids, c.Tokens):
		i := firstDifference(c.ids, c.Tokens)
		return fmt.Errorf("%w: the logprobs are of other tokens: the first difference is at token %d", ErrAnswer, i)
	}
	most := uint32(mostVocabulary)
	if vocabulary > 0 {
		most = uint32(vocabulary)
	}
	for i, id := range c.Tokens {
		if id >= most {
			return fmt.Errorf("%w: token %d has id %d, beyond the vocabulary of %d", ErrAnswer, i, id, most)
		}
	}
	for i, l := range c.Logprobs {
		if math.IsNaN(float64(l)) || l <= leastLogprob || l > positiveByRounding {
			return fmt.Errorf("%w: the logprob of token %d is %v", ErrAnswer, i, l)
		}
		c.Logprobs[i] = min(l, 0)
	}
	covered := 0
	for _, s := range c.Versions {
		covered += s.Count
	}
	if len(c.Versions) > 0 && covered != n {
		return fmt.Errorf("%w: versions of %d tokens where %d were sampled", ErrAnswer, covered, n)
	}
	return nil
}

func counted(usage int) string {
	if usage < 0 {
		return ""
	}
	return fmt.Sprintf(", %d by the server's count", usage)
}

// firstDifference is the first index at which the two differ, as far as both go.
func firstDifference(a, b []uint32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// spans makes counts of the half-open ranges in which servers state versions. They must
// follow one another from 0.
func spans(words []string, starts, ends []int) ([]Span, error) {
	var out []Span
	at := 0
	for i, w := range words {
		if starts[i] != at || ends[i] < starts[i] {
			return nil, fmt.Errorf("%w: version span %d is of tokens %d to %d, want it to begin at %d", ErrAnswer, i, starts[i], ends[i], at)
		}
		at = ends[i]
		if n := ends[i] - starts[i]; n > 0 {
			out = append(out, Span{w, n})
		}
	}
	return out, nil
}
