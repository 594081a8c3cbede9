package kafka

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// How often work on a record was begun.
//
// The brokers count deliveries, which is not the same: what a killed process held goes
// first to the pending fetches of its own slots that were idle, whose deaths the brokers
// learn of one after the other, and each of them costs a delivery without any work. So
// the count is kept where a SIGKILL cannot reach it and no reader has to look for it: in
// the record. Whoever is handed a record for the second time or later knows that its
// first holder vanished. It waits until no fetch of the dead process can be pending any
// more, writes the record anew, with one attempt more in headerBegun, accepts the old one,
// and whoever gets the new one works on it. Thus
//
//   - deliveries in between cost nothing, however many they were;
//   - each rewriting starts at delivery 1: the brokers' limit, past which a record
//     vanishes without a word, is never near;
//   - nothing is looked up, there is no second topic, and the way is the same on all
//     brokers.
//
// What it costs: a record that comes back goes to the end of its topic, once per death
// of a process. Its first holder is taken to have begun, though it may have died before:
// what is written in the half second after a process was killed may go to a fetch that it
// left pending (one of a process; one of each slot where the topic has several
// partitions), and then has one attempt less. A process that dies between writing anew
// and accepting leaves two records, as one that dies between writing a result and
// accepting does: work may be done twice, and its outputs bear one identity.
const headerBegun = "sluice-begun"

// begunBefore is how often work on a record was begun before this delivery, and whether
// the one before this ended by its holder's vanishing.
func begunBefore(r *kgo.Record) (n int32, vanished bool) {
	for _, h := range r.Headers {
		if h.Key != headerBegun {
			continue
		}
		// What cannot be read was not written by us; the record starts anew.
		if v, err := strconv.ParseInt(string(h.Value), 10, 32); err == nil && v > 0 {
			n = int32(v)
		}
	}
	if r.DeliveryCount() > 1 {
		return n + 1, true
	}
	return n, false
}

// anew is a record as it goes back to its topic, for any member to take.
func anew(r *kgo.Record, begun int32) *kgo.Record {
	out := &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		if h.Key != headerBegun {
			out.Headers = append(out.Headers, h)
		}
	}
	if begun > 0 {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: headerBegun, Value: strconv.AppendInt(nil, int64(begun), 10)})
	}
	spread(out)
	return out
}

// requeue is an error that gives a record back.
type requeue struct {
	begun int
	err   error
}

func (r *requeue) Error() string { return "given back: " + r.err.Error() }
func (r *requeue) Unwrap() error { return r.err }

// Requeue marks an error as one that another process may not meet: the record goes back
// to the end of its topic, for anybody to take. begun is how often work on it was begun
// while it was held and came to no known end, each of which counts as an attempt; giving
// back what was never begun costs nothing. A nil err gives nil.
func Requeue(err error, begun int) error {
	if err == nil {
		return nil
	}
	return &requeue{begun: begun, err: err}
}

// tooManyAttempts is why a record is given up without work.
func tooManyAttempts(begun int32, last error) error {
	err := fmt.Errorf("work on it began %d times and never ended: whoever worked on it vanished", begun)
	if last != nil {
		err = fmt.Errorf("work on it began %d times and never ended: %w", begun, last)
	}
	return Reject(err, "too_many_attempts")
}

func asRequeue(err error) (*requeue, bool) {
	var r *requeue
	ok := errors.As(err, &r)
	return r, ok
}
