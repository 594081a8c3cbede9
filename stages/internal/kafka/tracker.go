package kafka

import "github.com/twmb/franz-go/pkg/kgo"

// tracker knows which records of one partition are finished and how far its offset
// may be committed: up to the oldest unfinished record.
type tracker struct {
	// open holds records in offset order, from the oldest unfinished one on.
	open []*tracked
}

type tracked struct {
	at   kgo.EpochOffset
	done bool
}

// add notes that a record was taken up. Offsets must rise.
func (t *tracker) add(r *kgo.Record) *tracked {
	e := &tracked{at: kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset}}
	t.open = append(t.open, e)
	return e
}

// finish notes that a record is done and returns the offset to commit; ok is false
// where it has not moved.
func (t *tracker) finish(e *tracked) (commit kgo.EpochOffset, ok bool) {
	e.done = true
	n := 0
	for n < len(t.open) && t.open[n].done {
		commit, ok = t.open[n].at, true
		n++
	}
	t.open = t.open[n:]
	commit.Offset++
	return commit, ok
}
