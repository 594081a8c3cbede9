package wirejson

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Shape is what one type of message looks like in both forms. It is not changed once it
// is made.
type Shape struct {
	fields []field
	// plain is false for what this package does not read: maps, groups, extensions,
	// fields that are not declared by number, messages that contain themselves.
	plain bool
}

// field is one field of a message.
type field struct {
	number protowire.Number
	kind   protoreflect.Kind
	// wire is the type of its tag: of a list of numbers, bytes.
	wire protowire.Type
	// name is `"name":`.
	name string
	// present: a default value is written too.
	present bool
	list    bool
	// message is the shape of a message, nil if it is a time.
	message *Shape
	enum    protoreflect.EnumValueDescriptors
}

// Of makes the shape of a type of message.
func Of(d protoreflect.MessageDescriptor) *Shape { return shapes{}.of(d) }

// shapes are those made so far, nil for those in the making.
type shapes map[protoreflect.FullName]*Shape

func (all shapes) of(d protoreflect.MessageDescriptor) *Shape {
	s, known := all[d.FullName()]
	switch {
	case s != nil:
		return s
	case known:
		return &Shape{}
	}
	all[d.FullName()] = nil
	s = all.make(d)
	all[d.FullName()] = s
	return s
}

func (all shapes) make(d protoreflect.MessageDescriptor) *Shape {
	s := &Shape{plain: d.ExtensionRanges().Len() == 0}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if f.IsMap() || f.IsExtension() || f.ContainingOneof() != nil && !f.ContainingOneof().IsSynthetic() ||
			len(s.fields) > 0 && s.fields[len(s.fields)-1].number >= f.Number() {
			s.plain = false
			return s
		}
		out := field{
			number: f.Number(), kind: f.Kind(), name: `"` + f.TextName() + `":`,
			present: f.HasPresence(), list: f.IsList(), wire: wireType(f.Kind()),
		}
		if out.list && out.wire != protowire.BytesType {
			if !f.IsPacked() {
				s.plain = false
				return s
			}
			out.wire = protowire.BytesType
		}
		switch f.Kind() {
		case protoreflect.MessageKind:
			if name := f.Message().FullName(); name != "google.protobuf.Timestamp" {
				out.message = all.of(f.Message())
				s.plain = s.plain && out.message.plain && name.Parent() != "google.protobuf"
			}
		case protoreflect.EnumKind:
			out.enum = f.Enum().Values()
		case protoreflect.GroupKind:
			s.plain = false
		}
		s.fields = append(s.fields, out)
	}
	return s
}

func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return protowire.Fixed32Type
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return protowire.Fixed64Type
	}
	return protowire.VarintType
}
