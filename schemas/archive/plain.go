package archive

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/archive/wirejson"
	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// What stands here does to the ordinary row what readable and parseLine do to any, and
// many times faster: it says no to whatever it is not sure of.

// shapes are those of the records that archives hold most of.
var shapes = sync.OnceValue(func() map[string]*wirejson.Shape {
	all := map[string]*wirejson.Shape{}
	for _, name := range []string{"Trajectory", "Scored", "GroupMember", "GroupClosed", "StepBatch", "MicroBatch", "Prompt"} {
		all[name] = wirejson.Of(codec.New(name).ProtoReflect().Descriptor())
	}
	return all
})

// appendPlain appends a record's JSON message, if that says all of it.
func appendPlain(dst []byte, r codec.Record, name string, schema int) (_ []byte, ok bool) {
	shape := shapes()[name]
	if shape == nil || schema < 1 {
		return dst, false
	}
	again, ok := frame(name, schema, r.Value)
	if again.Value = r.Value; !ok || !sameRecord(r, again) {
		return dst, false
	}
	return shape.AppendJSON(dst, r.Value)
}

// frame makes the key and the headers of an encoded message, whose fields stand in
// order.
func frame(name string, schema int, value []byte) (codec.Record, bool) {
	m, ok := named(name, value)
	if !ok {
		return codec.Record{}, false
	}
	rec, err := codec.Rebuild(m, schema)
	return rec, err == nil
}

// named decodes of a message what decides its key and its headers.
func named(name string, value []byte) (proto.Message, bool) {
	switch name {
	case "Trajectory":
		// Prompt, sample index, copy.
		t := &sluicev1.Trajectory{}
		return t, proto.Unmarshal(upTo(3, value), t) == nil
	case "Scored":
		inner, ok := first(value)
		t, good := named("Trajectory", inner)
		if !ok || !good {
			return nil, false
		}
		return &sluicev1.Scored{Trajectory: t.(*sluicev1.Trajectory)}, true
	case "GroupMember":
		inner, ok := first(value)
		s, good := named("Scored", inner)
		if !ok || !good {
			return nil, false
		}
		return &sluicev1.GroupMember{Scored: s.(*sluicev1.Scored)}, true
	case "MicroBatch", "StepBatch":
		// Run, incarnation, step.
		value = upTo(3, value)
	}
	m := codec.New(name)
	return m, proto.Unmarshal(value, m) == nil
}

// upTo cuts an encoded message behind its fields up to a number.
func upTo(last protowire.Number, value []byte) []byte {
	rest := value
	for len(rest) > 0 {
		number, _, n := protowire.ConsumeField(rest)
		if n < 0 || number > last {
			break
		}
		rest = rest[n:]
	}
	return value[:len(value)-len(rest)]
}

// first is the content of field 1, a message with which the value begins.
func first(value []byte) ([]byte, bool) {
	number, kind, n := protowire.ConsumeTag(value)
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return nil, false
	}
	b, n := protowire.ConsumeBytes(value[n:])
	return b, n >= 0
}

// envelope is a row of JSON lines as AppendJSON writes it, without raw, whose message
// was not read yet.
type envelope struct {
	topic, kind string
	partition   int32
	offset      int64
	time        time.Time
	schema      int
	message     []byte
}

// open reads what stands around the message; ok is false where the row is another.
func (e *envelope) open(row []byte) (ok bool) {
	cut := func(before, end string) (part []byte) {
		if !ok || !bytes.HasPrefix(row, []byte(before)) {
			ok = false
			return nil
		}
		row = row[len(before):]
		n := bytes.Index(row[:min(len(row), 300)], []byte(end))
		if n < 0 {
			ok = false
			return nil
		}
		part, row = row[:n], row[n:]
		return part
	}
	ok = true
	topic, partition, offset := cut(`{"topic":"`, `"`), cut(`","partition":`, `,`), cut(`,"offset":`, `,`)
	at, kind, schema := cut(`,"time":"`, `"`), cut(`","type":"`, `"`), cut(`","schema":`, `,`)
	const before = `,"message":`
	if !ok || !bytes.HasPrefix(row, []byte(before)) || !bytes.HasSuffix(row, []byte("}}")) {
		return false
	}
	p, err1 := strconv.ParseInt(string(partition), 10, 32)
	o, err2 := strconv.ParseInt(string(offset), 10, 64)
	s, err3 := strconv.Atoi(string(schema))
	t, err4 := time.Parse(time.RFC3339Nano, string(at))
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || bytes.ContainsRune(topic, '\\') || len(topic) == 0 {
		return false
	}
	*e = envelope{string(topic), string(kind), int32(p), o, t.UTC(), s, row[len(before) : len(row)-1]}
	return true
}

// record reads the message.
func (e *envelope) record() (r Record, ok bool) {
	shape := shapes()[e.kind]
	if shape == nil || e.schema < 1 {
		return r, false
	}
	value, rest, ok := shape.AppendWire(make([]byte, 0, len(e.message)*5/8+64), e.message)
	if !ok || len(rest) > 0 {
		return r, false
	}
	r = Record{Topic: e.topic, Partition: e.partition, Offset: e.offset, Time: e.time}
	if r.Record, ok = frame(e.kind, e.schema, value); !ok {
		return r, false
	}
	r.Value = value
	return r, true
}
