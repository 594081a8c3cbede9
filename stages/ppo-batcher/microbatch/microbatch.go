package microbatch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Limits bound one micro-batch.
type Limits struct {
	// Data is how many data it may hold.
	Data int
	// PaddedTokens is how many tokens it may hold, padding included.
	PaddedTokens int
}

// DefaultLimits are the recipe's.
var DefaultLimits = Limits{Data: 32, PaddedTokens: 64_000}

var (
	// ErrLimits: a limit is below 1.
	ErrLimits = errors.New("microbatch: bad limits")
	// ErrDoesNotFit: a datum is empty, or alone longer than a micro-batch.
	ErrDoesNotFit = errors.New("microbatch: datum does not fit")
)

// Validate says which limit cannot be used.
func (l Limits) Validate() error {
	if l.Data < 1 || l.PaddedTokens < 1 {
		return fmt.Errorf("%w: %d data, %d padded tokens: want at least 1 of each", ErrLimits, l.Data, l.PaddedTokens)
	}
	return nil
}

// Pack returns the micro-batches as indices into lengths, the longest datum of each
// first. Ties go by index: give the data in order of slot and sample index.
func (l Limits) Pack(lengths []int) ([][]int, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	order := make([]int, len(lengths))
	for i, n := range lengths {
		if n < 1 || n > l.PaddedTokens {
			return nil, fmt.Errorf("%w: datum %d has %d tokens, want 1 to %d", ErrDoesNotFit, i, n, l.PaddedTokens)
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lengths[b], lengths[a]) })

	var batches [][]int
	// full counts the leading micro-batches that hold as many as they can: lengths
	// only fall, so what is full stays full and is not looked at again.
	full := 0
	for _, i := range order {
		at := full
		for at < len(batches) && len(batches[at]) >= l.room(lengths[batches[at][0]]) {
			at++
		}
		if at == len(batches) {
			batches = append(batches, nil)
		}
		batches[at] = append(batches[at], i)
		for full < len(batches) && len(batches[full]) >= l.room(lengths[batches[full][0]]) {
			full++
		}
	}
	return batches, nil
}

// room is how many data a micro-batch holds whose longest has n tokens.
func (l Limits) room(n int) int { return min(l.Data, l.PaddedTokens/n) }

// PaddedTokens is the size of the rectangle around the data at these indices.
func PaddedTokens(lengths, batch []int) int {
	longest := 0
	for _, i := range batch {
		longest = max(longest, lengths[i])
	}
	return longest * len(batch)
}

// Scale is the factor on the advantages of a micro-batch of data out of n graded
// members: with it the sum over micro-batches of each one's mean over data is the sum
// over all data divided by n.
func Scale(data, n int) float64 { return float64(data) / float64(n) }
