package codec

import (
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
// (Trajectory, CodeCall, CodeResult, Scored, GroupMember). tokens is how many tokens there
// are in all: of the prompt, sampled and glue. A stage that passes a trajectory on unread
// needs no more of it: see EncodeHolding.
func DecodeOutline(rec Record) (m proto.Message, tokens int, err error) {
	name, _ := header(rec.Headers, HeaderType)
	o := outlines.Get().(*outline)
	defer o.release()
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
	case *sluicev1.GroupMember:
		return m.GetScored().GetTrajectory()
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
	// What was left out.
	prompt packed
	turns  []turnArrays
}

type turnArrays struct{ tokens, logprobs, versions, glue packed }

// outlines are for use again.
var outlines = sync.Pool{New: func() any { return new(outline) }}

// of makes the outline of a record's value; false where it has none.
func (o *outline) of(name string, value []byte) bool {
	switch name {
	case "Trajectory":
		return o.trajectory(value)
	case "CodeCall", "CodeResult", "Scored":
		return o.holding(value, o.trajectory)
	case "GroupMember":
		return o.holding(value, func(scored []byte) bool { return o.holding(scored, o.trajectory) })
	}
	return false
}

// release gives it back for use again, with nothing that keeps a record in memory.
func (o *outline) release() {
	clear(o.turns)
	*o = outline{value: o.value[:0], turns: o.turns[:0]}
	outlines.Put(o)
}

// fill gives the trajectory that was decoded from the outline what was left out.
func (o *outline) fill(t *sluicev1.Trajectory) {
	if t == nil {
		return
	}
	t.PromptTokens = o.prompt.uint32s()
	for i, turn := range t.GetTurns() {
		left := o.turns[i]
		turn.Tokens, turn.Logprobs, turn.PolicyVersions, turn.GlueTokens =
			left.tokens.uint32s(), left.logprobs.floats(), left.versions.uint32s(), left.glue.uint32s()
	}
}

// holding outlines a message in whose first field f finds what it outlines.
func (o *outline) holding(value []byte, f func([]byte) bool) bool {
	return o.fields(value, func(number protowire.Number, kind protowire.Type, body []byte) (handled, ok bool) {
		if number != held {
			return false, true
		}
		return true, kind == protowire.BytesType && o.nested(number, body, f)
	})
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

// nested writes a message field whose content f outlines.
func (o *outline) nested(number protowire.Number, body []byte, f func([]byte) bool) bool {
	var at int
	o.value, at = openField(o.value, number)
	ok := f(body)
	o.value = closeField(o.value, at)
	return ok
}

func (o *outline) trajectory(value []byte) bool {
	return o.fields(value, func(number protowire.Number, kind protowire.Type, body []byte) (handled, ok bool) {
		switch number {
		case trajectoryPromptTokens:
			ok := o.prompt.read(packedVarints, kind, body)
			o.tokens += o.prompt.n
			return true, ok
		case trajectoryTurns:
			return true, kind == protowire.BytesType && o.nested(number, body, o.turn)
		}
		return false, true
	})
}

func (o *outline) turn(value []byte) bool {
	var left turnArrays
	walked := o.fields(value, func(number protowire.Number, kind protowire.Type, body []byte) (handled, ok bool) {
		switch number {
		case turnTokens:
			return true, left.tokens.read(packedVarints, kind, body)
		case turnVersions:
			return true, left.versions.read(packedVarints, kind, body)
		case turnGlueTokens:
			return true, left.glue.read(packedVarints, kind, body)
		case turnLogprobs:
			return true, left.logprobs.read(packedFinite, kind, body)
		}
		return false, true
	})
	o.turns = append(o.turns, left)
	o.tokens += left.tokens.n + left.glue.n
	return walked && left.tokens.n == left.logprobs.n && left.tokens.n == left.versions.n
}
