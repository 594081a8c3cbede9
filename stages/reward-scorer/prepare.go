package main

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/scoring"
)

// scorer computes rewards before a batch's transaction begins, on all processors, and
// keeps them until the next batch.
type scorer struct {
	set *reward.Set

	mu      sync.Mutex
	results map[place][]reward.Result
}

// place is where a record lies in trajectories.
type place struct {
	partition int32
	offset    int64
}

func placeOf(m kafka.Message) place { return place{m.Partition, m.Offset} }

// maxScoring bounds how many chunks of a batch are scored at once, chunkSize how many
// trajectories one holds: more of both than there are processors, because verifiers
// behind HTTP are waited for, and take a chunk in one request.
const (
	maxScoring = 16
	chunkSize  = 64
)

// chunk is the size that keeps all processors busy.
func chunk(n int) int {
	procs := runtime.GOMAXPROCS(0)
	return min(chunkSize, max(1, (n+procs-1)/procs))
}

// prepare scores a batch. What was prepared before is forgotten, so that memory is
// bounded by one batch.
func (s *scorer) prepare(ctx context.Context, ms []kafka.Message) error {
	var gradable []kafka.Message
	for _, m := range ms {
		if t, ok := m.Body.(*sluicev1.Trajectory); ok && scoring.Ungraded(t) == "" {
			gradable = append(gradable, m)
		}
	}
	results := make([][]reward.Result, len(gradable))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxScoring)
	size := chunk(len(gradable))
	for from := 0; from < len(gradable); from += size {
		to := min(from+size, len(gradable))
		group.Go(func() error {
			copy(results[from:to], s.score(groupCtx, gradable[from:to]))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		// A verifier that was cut short must not leave its trajectories ungraded.
		return err
	}
	kept := make(map[place][]reward.Result, len(gradable))
	for i, m := range gradable {
		kept[placeOf(m)] = results[i]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = kept
	return nil
}

// score scores a chunk.
func (s *scorer) score(ctx context.Context, ms []kafka.Message) [][]reward.Result {
	in := make([]reward.Input, len(ms))
	for i, m := range ms {
		in[i] = scoring.InputOf(m.Body.(*sluicev1.Trajectory))
	}
	return scoring.Score(ctx, s.set, in)
}

// of returns what was prepared for a record; nil if it was not.
func (s *scorer) of(m kafka.Message) []reward.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.results[placeOf(m)]
}
