package codec

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// What the protobuf library writes of a message, we write; what it reads, we read.
func TestTrajectoriesAreWrittenAndReadAsTheLibraryDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyTrajectory(t)
		value := sameBytes(t, m)
		broken(t, value)
		sameMessage(t, TypeName(m), value)
	})
}

// No field is forgotten: each is set by reflection, also those of a later version.
func TestEveryFieldOfATrajectoryIsWritten(t *testing.T) {
	for _, name := range []string{"Trajectory", "CodeCall", "CodeResult", "Scored", "GroupMember"} {
		m := New(name)
		setAll(m.ProtoReflect(), 0)
		sameMessage(t, name, sameBytes(t, m))
	}
	for _, m := range []proto.Message{
		&sluicev1.GroupMember{}, &sluicev1.GroupMember{Scored: &sluicev1.Scored{}}, &sluicev1.Scored{Trajectory: &sluicev1.Trajectory{}},
		&sluicev1.Trajectory{Turns: []*sluicev1.Turn{nil, {}}},
	} {
		sameMessage(t, TypeName(m), sameBytes(t, m))
	}
}

// setAll gives every field a value, each a different one, and one that is unknown.
func setAll(m protoreflect.Message, n uint64) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.IsList() {
			list := m.Mutable(f).List()
			for range 3 {
				n++
				if f.Message() != nil {
					v := list.NewElement()
					setAll(v.Message(), n)
					list.Append(v)
				} else {
					list.Append(scalar(f, n))
				}
			}
			continue
		}
		n++
		if f.Message() != nil {
			setAll(m.Mutable(f).Message(), n)
		} else {
			m.Set(f, scalar(f, n))
		}
	}
	m.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), n))
}

func scalar(f protoreflect.FieldDescriptor, n uint64) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(n)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(rune('a' + n%26)))
	}
	panic("no value for a field of kind " + f.Kind().String())
}

func FuzzTrajectoriesAreReadAsTheLibraryDoes(f *testing.F) {
	m := New("Scored")
	setAll(m.ProtoReflect(), 0)
	value, err := appendMessage(nil, m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value)
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, name := range []string{"Trajectory", "Scored", "GroupMember"} {
			if m := sameMessage(t, name, value); m != nil {
				sameBytes(t, m)
			}
		}
	})
}

type fataler interface{ Fatalf(string, ...any) }

// sameBytes writes a message behind something else.
func sameBytes(t fataler, m proto.Message) []byte {
	want, werr := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte("x"), m)
	got, err := appendMessage([]byte("x"), m)
	if (err == nil) != (werr == nil) {
		t.Fatalf("%v: %v; the library: %v", m, err, werr)
	}
	if err == nil && !bytes.Equal(got, want) {
		t.Fatalf("%v is\n%x, want\n%x", m, got, want)
	}
	return bytes.TrimPrefix(want, []byte("x"))
}

// sameMessage reads a message, which may be broken: nil.
func sameMessage(t fataler, name string, value []byte) proto.Message {
	want, got := New(name), New(name)
	werr, err := proto.Unmarshal(value, want), unmarshal(name, value, got)
	if (err == nil) != (werr == nil) {
		t.Fatalf("%x: %v; the library: %v", value, err, werr)
	}
	if err != nil {
		return nil
	}
	if !hasNaN(want) && !proto.Equal(got, want) {
		t.Fatalf("%x is\n%v, want\n%v", value, got, want)
	}
	return got
}
