package main

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

const (
	// tellEvery is how often a partition tells how far its steps are; one that is silent
	// for three times as long works elsewhere.
	tellEvery = 5 * time.Second
	// slotsTold bounds the open slots that are named of a step.
	slotsTold = 8
	// stepsTold bounds the steps that are told of: the ones that moved last.
	stepsTold = 50
)

// progress gathers from the partitions how far their steps are, for sluice status, and
// warns once of each that does not move.
type progress struct {
	log     *slog.Logger
	metrics *metrics
	// patience is after what time a step that does not move is warned of.
	patience time.Duration
	now      func() time.Time

	mu     sync.Mutex
	parts  map[int32]told
	warned map[string]bool
}

type told struct {
	steps []*sluicev1.StepProgress
	at    time.Time
}

func newProgress(log *slog.Logger, m *metrics, patience time.Duration) *progress {
	return &progress{log: log, metrics: m, patience: patience, now: time.Now, parts: map[int32]told{}, warned: map[string]bool{}}
}

// tell replaces what a partition said before.
func (p *progress) tell(partition int32, steps []*sluicev1.StepProgress, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts[partition] = told{steps, now}
	var idlest time.Duration
	for _, t := range p.parts {
		for _, s := range t.steps {
			idle := now.Sub(s.GetMovedAt().AsTime())
			if now.Sub(t.at) <= 3*tellEvery {
				idlest = max(idlest, idle)
			}
		}
	}
	p.metrics.idlest.Set(idlest.Seconds())
	for _, s := range steps {
		p.warn(s, now.Sub(s.GetMovedAt().AsTime()))
	}
}

// warn says once of a step that it does not move; mu is held.
func (p *progress) warn(s *sluicev1.StepProgress, idle time.Duration) {
	key := s.GetRunId() + s.GetMovedAt().String()
	if idle < p.patience || p.warned[key] {
		return
	}
	if len(p.warned) > 1000 {
		clear(p.warned)
	}
	p.warned[key] = true
	if s.GetBatched() {
		p.log.Warn("a step is batched and waits for the trainer", "run", s.GetRunId(), "incarnation", s.GetIncarnation(), "step", s.GetStep(), "for", idle)
		return
	}
	p.log.Warn("an open step does not move", "run", s.GetRunId(), "incarnation", s.GetIncarnation(), "step", s.GetStep(),
		"groups", s.GetGroups(), "closed", s.GetGroupsClosed(), "open_slots", s.GetOpenSlots(), "for", idle)
}

// steps lists what the partitions at work have told, the ones that moved last first.
func (p *progress) steps() []*sluicev1.StepProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*sluicev1.StepProgress
	for partition, t := range p.parts {
		if p.now().Sub(t.at) > 3*tellEvery {
			delete(p.parts, partition)
			continue
		}
		all = append(all, t.steps...)
	}
	slices.SortFunc(all, func(a, b *sluicev1.StepProgress) int {
		return cmp.Or(b.GetMovedAt().AsTime().Compare(a.GetMovedAt().AsTime()), cmp.Compare(a.GetRunId(), b.GetRunId()), cmp.Compare(a.GetStep(), b.GetStep()))
	})
	return all[:min(len(all), stepsTold)]
}
