package archive

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// Format is the version of the files written by this build.
const Format = 1

var (
	// ErrNewerFormat: a newer version of Sluice wrote the archive.
	ErrNewerFormat = errors.New("archive of a newer format")
	// ErrUnreadable: a file is no archive, or a row of it is broken.
	ErrUnreadable = errors.New("unreadable archive")
	// ErrNotFound: there is no archive, or it has no such topic.
	ErrNotFound = errors.New("no such archive")
	// ErrUnfinished: whatever writes the archive has not finished it.
	ErrUnfinished = errors.New("unfinished archive")
)

// Record is a Kafka record and where it lay.
type Record struct {
	// Topic is the name without the namespace.
	Topic     string
	Partition int32
	Offset    int64
	// Time has milliseconds, as Kafka's has.
	Time time.Time
	codec.Record
}

// Type is what the record's header says it is, "" if nothing.
func (r Record) Type() string {
	for _, h := range r.Headers {
		if h.Key == codec.HeaderType {
			return string(h.Value)
		}
	}
	return ""
}

// Decode is codec.Decode. A trajectory whose turns are not what was sampled is refused
// too: custody.ErrBroken.
func (r Record) Decode() (proto.Message, error) {
	m, err := codec.Decode(r.Record)
	if err != nil {
		return nil, err
	}
	if t := codec.TrajectoryOf(m); t != nil {
		if err := custody.Check(t); err != nil {
			return nil, fmt.Errorf("%s %s: %w", codec.TypeName(m), identity.TrajectoryID(t), err)
		}
	}
	return m, nil
}

// Facts are what a record says of itself without being decoded.
type Facts struct {
	*sluicev1.Origin
	// HasStep is false for records that belong to no step.
	HasStep bool
}

// Facts reads the origin header, or of a record about a whole step its run,
// incarnation and step.
func (r Record) Facts() Facts {
	if o, ok := codec.Origin(r.Headers); ok {
		return Facts{o, true}
	}
	switch r.Type() {
	case "StepBatch", "MicroBatch", "PolicyUpdate", "TrainerReport", "TrainerAnnotation":
		if g, ok := stepOf(r.Value); ok {
			return Facts{&sluicev1.Origin{Group: g}, true}
		}
	}
	return Facts{Origin: &sluicev1.Origin{}}
}

// stepOf reads the first three fields that all records about whole steps share.
func stepOf(value []byte) (*sluicev1.GroupPlace, bool) {
	g := &sluicev1.GroupPlace{}
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return nil, false
		}
		if number > 3 {
			break
		}
		value = value[n:]
		if number == 1 && kind == protowire.BytesType {
			b, n := protowire.ConsumeBytes(value)
			if n < 0 {
				return nil, false
			}
			g.RunId, value = string(b), value[n:]
			continue
		}
		v, n := protowire.ConsumeVarint(value)
		if kind != protowire.VarintType || n < 0 {
			return nil, false
		}
		value = value[n:]
		if number == 2 {
			g.Incarnation = uint32(v)
		} else {
			g.Step = v
		}
	}
	return g, g.GetRunId() != "" && g.GetStep() > 0
}
