package deadletters

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// HeaderRequeued names, in a record that was put back, the letter that it came of.
const HeaderRequeued = "sluice-requeued"

// ErrLeftOut: the letter does not hold the record, only where it lies.
var ErrLeftOut = errors.New("the letter does not hold its record")

// Requeue is the record that a letter holds, as it goes back to the topic that it came
// from, by its name without the namespace. draw gives random numbers.
//
// A record of a trajectory becomes a new copy of it: the copy that was given up has been
// counted as such, and would be taken for the one that comes back. One that cannot be
// decoded goes back as it is, for stages that have been upgraded since.
func (l Letter) Requeue(draw func() uint64) (*kgo.Record, error) {
	if l.Broken != nil {
		return nil, fmt.Errorf("letter %s: %w", l.ID(), l.Broken)
	}
	b := l.Body
	if len(b.GetValue()) == 0 {
		return nil, fmt.Errorf("%w: letter %s: it lies in topic %s, partition %d, offset %d", ErrLeftOut, l.ID(), b.GetSourceTopic(), b.GetSourcePartition(), b.GetSourceOffset())
	}
	rec := codec.Record{Key: b.GetKey(), Value: b.GetValue()}
	for _, h := range b.GetHeaders() {
		if h.GetKey() != HeaderRequeued {
			rec.Headers = append(rec.Headers, codec.Header{Key: h.GetKey(), Value: h.GetValue()})
		}
	}
	if m, err := codec.Decode(rec); err == nil {
		if t := trajectoryOf(m); t != nil {
			for t.Copy = draw(); t.GetCopy() == 0; {
				t.Copy = draw()
			}
			if rec, err = codec.Encode(m); err != nil {
				return nil, fmt.Errorf("letter %s: %w", l.ID(), err)
			}
		}
	}
	r := &kgo.Record{Topic: b.GetSourceTopic(), Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: HeaderRequeued, Value: []byte(l.ID())})
	return r, nil
}

// trajectoryOf is the trajectory that a message of before grouping holds.
func trajectoryOf(m proto.Message) *sluicev1.Trajectory {
	switch m := m.(type) {
	case *sluicev1.CodeCall:
		return m.GetTrajectory()
	case *sluicev1.CodeResult:
		return m.GetTrajectory()
	case *sluicev1.Trajectory:
		return m
	case *sluicev1.Scored:
		return m.GetTrajectory()
	}
	return nil
}
