package codec

import (
	"encoding/binary"
	"math/bits"
	"sync"

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

// DecodeOutline is Decode of a record whose token ids, logprobs and versions, most of
// its bytes, are checked and counted and left out, where it holds one trajectory
// (Trajectory, CodeCall, CodeResult, Scored). tokens is how many tokens there are in
// all: of the prompt, sampled and glue. A stage that passes a trajectory on unread needs
// no more of it: see EncodeHolding.
func DecodeOutline(rec Record) (m proto.Message, tokens int, err error) {
	name, _ := header(rec.Headers, HeaderType)
	o := outlines.Get().(*outline)
	defer outlines.Put(o)
	if o.of(string(name), rec.Value) {
		// What is decoded shares nothing with it.
		m, err := Decode(Record{Key: rec.Key, Value: o.value, Headers: rec.Headers})
		return m, o.tokens, err
	}
	// Something is unusual in it: let Decode say what, or read it.
	if m, err = Decode(rec); err != nil {
		return nil, 0, err
	}
	t := trajectoryOf(m)
	tokens = len(t.GetPromptTokens())
	for _, turn := range t.GetTurns() {
		tokens += len(turn.GetTokens()) + len(turn.GetGlueTokens())
	}
	return m, tokens, nil
}

// IsOutline says whether a message holds a trajectory with turns and without any token:
// writing it would lose them.
func IsOutline(m proto.Message) bool {
	if member, ok := m.(*sluicev1.GroupMember); ok {
		m = member.GetScored()
	}
	t := trajectoryOf(m)
	if len(t.GetTurns()) == 0 || len(t.GetPromptTokens()) > 0 {
		return false
	}
	for _, turn := range t.GetTurns() {
		if len(turn.GetTokens())+len(turn.GetGlueTokens()) > 0 {
			return false
		}
	}
	return true
}

func trajectoryOf(m proto.Message) *sluicev1.Trajectory {
	switch m := m.(type) {
	case *sluicev1.Trajectory:
		return m
	case interface{ GetTrajectory() *sluicev1.Trajectory }:
		return m.GetTrajectory()
	}
	return nil
}

// outline is an encoded message in the making.
type outline struct {
	value  []byte
	tokens int
}

// outlines are for use again.
var outlines = sync.Pool{New: func() any { return new(outline) }}

// of makes the outline of a record's value; false where it has none.
func (o *outline) of(name string, value []byte) bool {
	o.value, o.tokens = o.value[:0], 0
	switch name {
	case "Trajectory":
		return o.trajectory(value)
	case "CodeCall", "CodeResult", "Scored":
		return o.fields(value, func(number protowire.Number, kind protowire.Type, body []byte) (handled, ok bool) {
			if number != held {
				return false, true
			}
			return true, kind == protowire.BytesType && o.nested(number, body, o.trajectory)
		})
	}
	return false
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
	if len(body) > 0 && body[len(body)-1] >= 0x80 {
		return 0, false
	}
	const top = 0x8080808080808080
	// Eight bytes at a time, each half of them twice: a run of five bytes that do not
	// end a number lies whole in one of the windows.
	for ; len(body) >= 8; body = body[4:] {
		ends := ^binary.LittleEndian.Uint64(body) & top
		n += bits.OnesCount32(uint32(ends))
		if on := ends ^ top; on&(on>>8)&(on>>16)&(on>>24)&(on>>32) != 0 {
			return 0, false
		}
	}
	length := 0
	for _, b := range body {
		if length++; b < 0x80 {
			n, length = n+1, 0
		} else if length == 5 {
			return 0, false
		}
	}
	return n, true
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
