package codec

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// held is the number of the field in which a message holds what it is about: the
// trajectory of CodeCall, CodeResult and Scored, the Scored of GroupMember. It is the
// first, so that it can be written before the rest is known.
const held = 1

// TrajectoryBytes is the encoded trajectory within the value of a Trajectory, CodeCall,
// CodeResult or Scored record, nil if there is not exactly one.
func TrajectoryBytes(typeName string, value []byte) []byte {
	switch typeName {
	case "Trajectory":
		return value
	case "CodeCall", "CodeResult", "Scored":
	default:
		return nil
	}
	var found []byte
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeField(value)
		if n < 0 {
			return nil
		}
		if number == held {
			_, _, tag := protowire.ConsumeTag(value)
			b, m := protowire.ConsumeBytes(value[tag:])
			if m < 0 || kind != protowire.BytesType || found != nil {
				return nil
			}
			found = b
		}
		value = value[n:]
	}
	return found
}

// EncodeHolding is Encode of a CodeCall, CodeResult, Scored or GroupMember whose
// trajectory was decoded, and so validated, from these bytes: they are taken as they
// are, with fields that this version does not know, and not encoded again. The
// trajectory in m may be the outline of it. Its other fields must be as they were: what
// was changed in them is not written.
func EncodeHolding(m proto.Message, trajectory []byte) (Record, error) {
	name := TypeName(m)
	if err := Validate(m); err != nil {
		return Record{}, fmt.Errorf("encode %s: %w", name, err)
	}
	value, err := appendHolding(make([]byte, 0, len(trajectory)+1024), m, func(b []byte) ([]byte, error) { return append(b, trajectory...), nil })
	if err != nil {
		return Record{}, fmt.Errorf("encode %s: %w", name, err)
	}
	return record(m, value, SchemaVersion)
}

// appendHolding writes a message that holds a trajectory, which write writes.
func appendHolding(b []byte, m proto.Message, write func([]byte) ([]byte, error)) ([]byte, error) {
	inner := write
	switch m := m.(type) {
	case *sluicev1.CodeCall, *sluicev1.CodeResult, *sluicev1.Scored:
	case *sluicev1.GroupMember:
		inner = func(b []byte) ([]byte, error) { return appendHolding(b, m.GetScored(), write) }
	default:
		return nil, fmt.Errorf("%w: it holds no trajectory", ErrInvalid)
	}
	b, at := openField(b, held)
	b, err := inner(b)
	if err != nil {
		return nil, err
	}
	return appendSmall(closeField(b, at), withoutHeld(m))
}

// withoutHeld is a copy of a message, sharing what is in it, without what it holds.
func withoutHeld(m proto.Message) proto.Message {
	from := m.ProtoReflect()
	to := from.New()
	from.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if field.Number() != held {
			to.Set(field, v)
		}
		return true
	})
	to.SetUnknown(from.GetUnknown())
	return to.Interface()
}
