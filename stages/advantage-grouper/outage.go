package main

import (
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// outages knows, from what the stages before the grouper say of themselves, whether their
// backends are away. A process is live from the moment at which it was heard, by our own
// clock, for three of the intervals that it names.
//
// A sampler has partitions of its own, so one whose inference server is away holds members
// up whatever the others do. Executors take calls from one another, so sandboxes are away
// when no live executor has any.
type outages struct {
	processes map[string]peer
}

type peer struct {
	stage string
	// away says why its backend is away, "" if it is not.
	away string
	// until is when it counts as gone unless it is heard again.
	until time.Time
}

func newOutages() *outages { return &outages{processes: map[string]peer{}} }

// hear takes in what a process says of itself.
func (o *outages) hear(s *sluicev1.StageStatus, now time.Time) {
	if s.GetStage() != "sampler" && s.GetStage() != "code-executor" {
		return
	}
	key := s.GetStage() + "/" + s.GetInstance()
	if s.GetStopped() {
		delete(o.processes, key)
		return
	}
	p := peer{stage: s.GetStage(), until: now.Add(3 * time.Duration(s.GetIntervalMs()) * time.Millisecond)}
	for _, n := range s.GetNotes() {
		if n.GetBackendAway() {
			p.away = fmt.Sprintf("%s: %s %s: %s", key, n.GetName(), n.GetEndpoint(), n.GetText())
		}
	}
	o.processes[key] = p
}

// away says why the work of the stages before cannot go on at a time, "" if it can, and
// until when that holds if nothing more is heard; zero: for good.
func (o *outages) away(at time.Time) (why string, until time.Time) {
	var sampler, executor string
	works := false
	for _, p := range o.processes {
		if !p.until.After(at) {
			continue
		}
		if until.IsZero() || p.until.Before(until) {
			until = p.until
		}
		switch {
		case p.away == "":
			works = works || p.stage == "code-executor"
		case p.stage == "sampler":
			sampler = max(sampler, p.away)
		default:
			executor = max(executor, p.away)
		}
	}
	switch {
	case sampler != "":
		return sampler, until
	case executor != "" && !works:
		return executor, until
	}
	return "", until
}

// clock is the time that counts against deadlines: it stands still during outages.
type clock struct {
	outages *outages
	// counted is the time that has counted up to at.
	counted time.Duration
	at      time.Time
}

// to moves the clock on and says why it stands still now, "" if it runs.
func (c *clock) to(now time.Time) (why string) {
	if c.at.IsZero() {
		c.at = now
	}
	for {
		why, until := c.outages.away(c.at)
		end := now
		if !until.IsZero() && until.Before(now) {
			end = until
		}
		if end.After(c.at) {
			if why == "" {
				c.counted += end.Sub(c.at)
			}
			c.at = end
		}
		if !c.at.Before(now) {
			why, _ = c.outages.away(c.at)
			return why
		}
	}
}

// when says at what time the counted time will be due, if nothing more is heard; before
// that comes, the state of an outage may end, which is then the time to look again.
func (c *clock) when(due time.Duration) (t time.Time, ok bool) {
	why, until := c.outages.away(c.at)
	if why != "" {
		return until, !until.IsZero()
	}
	t = c.at.Add(due - c.counted)
	if !until.IsZero() && until.Before(t) {
		t = until
	}
	return t, true
}
