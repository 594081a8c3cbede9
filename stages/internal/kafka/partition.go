package kafka

import "time"

// tickPause is the least time between two ticks of a machine whose deadline does not
// move.
const tickPause = 100 * time.Millisecond

// partition is one restored machine and where it stands in its inputs.
type partition struct {
	number  int32
	machine Machine
	// at is the next offset of each input, end the end of what is committed in it,
	// as far as we have seen. By short name.
	at, end map[string]int64
	// started is set by the first Tick, ticked by every one.
	started    bool
	ticked     time.Time
	followedTo int
}

// caughtUp says whether everything known to be in the inputs has been handled.
func (p *partition) caughtUp() bool {
	for topic, end := range p.end {
		if p.at[topic] < end {
			return false
		}
	}
	return true
}

// deadline is when the machine is to be told the time; one that waits for records is
// told after them.
func (p *partition) deadline() (time.Time, bool) {
	if !p.caughtUp() {
		return time.Time{}, false
	}
	if !p.started {
		return time.Time{}, true
	}
	d, ok := p.machine.Deadline()
	if earliest := p.ticked.Add(tickPause); d.Before(earliest) {
		d = earliest
	}
	return d, ok
}

// nextDeadline is when the first machine wants the time.
func (s *session) nextDeadline() (next time.Time, ok bool) {
	for _, p := range s.parts {
		if d, wants := p.deadline(); wants && (!ok || d.Before(next)) {
			next, ok = d, true
		}
	}
	return next, ok
}

// followedTo is up to where all machines know what was broadcast.
func (s *session) followedTo() int {
	seen, first := 0, true
	for _, p := range s.parts {
		if first || p.followedTo < seen {
			seen, first = p.followedTo, false
		}
	}
	return seen
}
