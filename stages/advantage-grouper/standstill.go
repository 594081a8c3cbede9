package main

import (
	"log/slog"
	"sync"

	"github.com/sluice-rl/sluice/stages/internal/status"
)

// standstill tells people, once for all partitions, that group deadlines stand still and
// why.
type standstill struct {
	log   *slog.Logger
	board *status.Board

	mu  sync.Mutex
	why string
}

// say is told by every partition why its clock stands still, "" if it runs.
func (s *standstill) say(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why == s.why {
		return
	}
	if why == "" {
		s.log.Info("group deadlines run again")
		s.board.Clear(noteStill)
	} else {
		if s.why == "" {
			s.log.Warn("group deadlines stand still: what the stages before need is away", "reason", why)
		}
		s.board.Note(noteStill, status.Note{Text: "they stand still: " + why})
	}
	s.why = why
}

const noteStill = "group deadlines"
