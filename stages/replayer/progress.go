package main

import (
	"fmt"
	"io"
	"time"

	"github.com/sluice-rl/sluice/stages/replayer/perform"
)

// progress says on a terminal or in a log how far a replay is.
type progress struct {
	w     io.Writer
	phase string
	// since and from are when and where the phase was first seen.
	since time.Time
	from  int64
	now   func() time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, now: time.Now} }

var counted = map[string]string{"scoring": "trajectories", "grouping": "steps", "batching": "steps", "writing": "records"}

func (p *progress) show(at perform.Progress) {
	if at.Phase != p.phase {
		p.phase, p.since, p.from = at.Phase, p.now(), at.Done
	}
	line := fmt.Sprintf("%s: %d %s", at.Phase, at.Done, counted[at.Phase])
	if at.Ended {
		line += ", done"
	} else {
		line += fmt.Sprintf(" (%d %%)", int(100*at.Share))
	}
	// Of less than a second a rate says nothing.
	if d := p.now().Sub(p.since); d >= time.Second {
		line += fmt.Sprintf(", %.0f/s", float64(at.Done-p.from)/d.Seconds())
	}
	fmt.Fprintln(p.w, line)
}
