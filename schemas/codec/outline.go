package codec

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// Numbers of the fields that an outline leaves out.
const (
	trajectoryPromptTokens = 4
	trajectoryTurns        = 5
	turnTokens             = 1
	turnLogprobs           = 2
	turnVersions           = 3
	turnGlueTokens         = 11
)

// DecodeOutline is Decode of a Trajectory or Scored record whose token ids, logprobs and
// versions, most of its bytes, are checked and counted and left out. tokens is how many
// tokens there are in all: of the prompt, sampled and glue.
func DecodeOutline(rec Record) (m proto.Message, tokens int, err error) {
	name, _ := header(rec.Headers, HeaderType)
	if o, ok := outlineOf(string(name), rec.Value); ok {
		m, err := Decode(Record{Key: rec.Key, Value: o.value, Headers: rec.Headers})
		return m, o.tokens, err
	}
	// Something is unusual in it: let Decode say what, or read it.
	if m, err = Decode(rec); err != nil {
		return nil, 0, err
	}
	t, _ := m.(*sluicev1.Trajectory)
	if s, ok := m.(*sluicev1.Scored); ok {
		t = s.GetTrajectory()
	}
	tokens = len(t.GetPromptTokens())
	for _, turn := range t.GetTurns() {
		tokens += len(turn.GetTokens()) + len(turn.GetGlueTokens())
	}
	return m, tokens, nil
}

// outline is an encoded message in the making.
type outline struct {
	value  []byte
	tokens int
}

func outlineOf(name string, value []byte) (o outline, ok bool) {
	o.value = make([]byte, 0, len(value)/2+64)
	switch name {
	case "Trajectory":
		return o, o.trajectory(value)
	case "Scored":
		return o, o.fields(value, func(number protowire.Number, kind protowire.Type, body []byte) (handled, ok bool) {
			if number != scoredTrajectory {
				return false, true
			}
			return true, kind == protowire.BytesType && o.nested(number, body, o.trajectory)
		})
	}
	return o, false
}

// fields walks over a message's fields. f handles one, by its number, kind and, where
// the kind is bytes, its content; what it does not handle is copied.
func (o *outline) fields(value []byte, f func(protowire.Number, protowire.Type, []byte) (handled, ok bool)) bool {
	for len(value) > 0 {
		number, kind, tag := protowire.ConsumeTag(value)
		if tag < 0 {
			return false
		}
		n := protowire.ConsumeFieldValue(number, kind, value[tag:])
		if n < 0 {
			return false
		}
		var body []byte
		if kind == protowire.BytesType {
			body, _ = protowire.ConsumeBytes(value[tag:])
		}
		handled, ok := f(number, kind, body)
		if !ok {
			return false
		}
		if !handled {
			o.value = append(o.value, value[:tag+n]...)
		}
		value = value[tag+n:]
	}
	return true
}

// lengthBytes is how many bytes the length of a nested message takes here: a varint may
// be longer than it needs to be, and then the message can be written where it belongs
// before its length is known.
const lengthBytes = 5

// nested writes a message field whose content f outlines.
func (o *outline) nested(number protowire.Number, body []byte, f func([]byte) bool) bool {
	o.value = protowire.AppendTag(o.value, number, protowire.BytesType)
	at := len(o.value)
	o.value = append(o.value, make([]byte, lengthBytes)...)
	ok := f(body)
	n := len(o.value) - at - lengthBytes
	for i := range lengthBytes {
		o.value[at+i] = byte(n>>(7*i))&0x7f | 0x80
	}
	o.value[at+lengthBytes-1] &= 0x7f
	return ok
}

func (o *outline) trajectory(value []byte) bool {
	return o.fields(value, func(number protowire.Number, kind protowire.Type, body []byte) (handled, ok bool) {
		switch number {
		case trajectoryPromptTokens:
			n, ok := packedVarints(kind, body)
			o.tokens += n
			return true, ok
		case trajectoryTurns:
			return true, kind == protowire.BytesType && o.nested(number, body, o.turn)
		}
		return false, true
	})
}

func (o *outline) turn(value []byte) bool {
	var sampled, logprobs, versions, glue int
	walked := o.fields(value, func(number protowire.Number, kind protowire.Type, body []byte) (handled, ok bool) {
		n := 0
		switch number {
		case turnTokens:
			n, ok = packedVarints(kind, body)
			sampled += n
		case turnVersions:
			n, ok = packedVarints(kind, body)
			versions += n
		case turnGlueTokens:
			n, ok = packedVarints(kind, body)
			glue += n
		case turnLogprobs:
			n, ok = packedFinite(kind, body)
			logprobs += n
		default:
			return false, true
		}
		return true, ok
	})
	o.tokens += sampled + glue
	return walked && sampled == logprobs && sampled == versions
}

// packedVarints counts the numbers of a packed field of uint32; ok is false where it is
// not packed, or a number is longer than any 32 bits need.
func packedVarints(kind protowire.Type, body []byte) (n int, ok bool) {
	if kind != protowire.BytesType {
		return 0, false
	}
	length := 0
	for _, b := range body {
		if length++; b < 0x80 {
			n, length = n+1, 0
		} else if length == 5 {
			return 0, false
		}
	}
	return n, length == 0
}

// packedFinite counts the numbers of a packed field of float; ok is false where one is
// not finite.
func packedFinite(kind protowire.Type, body []byte) (n int, ok bool) {
	if kind != protowire.BytesType || len(body)%4 != 0 {
		return 0, false
	}
	for ; len(body) > 0; body = body[4:] {
		const exponent = 0x7f800000
		if binary.LittleEndian.Uint32(body)&exponent == exponent {
			return 0, false
		}
		n++
	}
	return n, true
}
