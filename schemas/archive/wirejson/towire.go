package wirejson

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// AppendWire appends the encoded message of its JSON, which begins text; rest is what
// follows it.
func (s *Shape) AppendWire(dst, text []byte) (wire, rest []byte, ok bool) {
	if !s.plain || len(text) < 2 || text[0] != '{' {
		return dst, text, false
	}
	if text[1] == '}' {
		return dst, text[2:], true
	}
	text = text[1:]
	for at := 0; ; at++ {
		for at < len(s.fields) && !startsWith(text, s.fields[at].name) {
			at++
		}
		if at == len(s.fields) {
			return dst, text, false
		}
		f := &s.fields[at]
		text = text[len(f.name):]
		if f.list {
			dst, text, ok = f.listToWire(dst, text)
		} else {
			dst, text, ok = f.toWire(dst, text, true, f.present)
		}
		if !ok || len(text) == 0 {
			return dst, text, false
		}
		end := text[0]
		text = text[1:]
		if end == '}' {
			return dst, text, true
		}
		if end != ',' {
			return dst, text, false
		}
	}
}

func startsWith(text []byte, name string) bool {
	return len(text) >= len(name) && string(text[:len(name)]) == name
}

// listToWire appends a list: its numbers packed.
func (f *field) listToWire(dst, text []byte) (_, rest []byte, ok bool) {
	if len(text) < 2 || text[0] != '[' || text[1] == ']' {
		return dst, text, false
	}
	text = text[1:]
	tagged := wireType(f.kind) == protowire.BytesType
	start := len(dst)
	if !tagged {
		dst = protowire.AppendTag(dst, f.number, protowire.BytesType)
		start = len(dst)
	}
	for {
		if dst, text, ok = f.toWire(dst, text, tagged, true); !ok || len(text) == 0 {
			return dst, text, false
		}
		end := text[0]
		text = text[1:]
		if end == ']' {
			break
		}
		if end != ',' {
			return dst, text, false
		}
	}
	if !tagged {
		dst = lengthen(dst, start)
	}
	return dst, text, true
}

// lengthen puts the length of what stands behind start before it.
func lengthen(dst []byte, start int) []byte {
	n := len(dst) - start
	size := protowire.SizeVarint(uint64(n))
	var length [binary.MaxVarintLen64]byte
	dst = append(dst, length[:size]...)
	copy(dst[start+size:], dst[start:start+n])
	binary.PutUvarint(dst[start:], uint64(n))
	return dst
}

// toWire appends one value: with its tag where it is tagged, and a default value only
// where it is kept.
func (f *field) toWire(dst, text []byte, tagged, keep bool) (_, rest []byte, ok bool) {
	switch wireType(f.kind) {
	case protowire.VarintType:
		v, text, ok := f.varint(text)
		if !ok || v == 0 && !keep {
			return dst, text, ok
		}
		if tagged {
			dst = protowire.AppendTag(dst, f.number, f.wire)
		}
		return protowire.AppendVarint(dst, v), text, true
	case protowire.Fixed32Type, protowire.Fixed64Type:
		v, text, ok := f.fixed(text)
		if !ok || v == 0 && !keep {
			return dst, text, ok
		}
		if tagged {
			dst = protowire.AppendTag(dst, f.number, f.wire)
		}
		if wireType(f.kind) == protowire.Fixed32Type {
			return binary.LittleEndian.AppendUint32(dst, uint32(v)), text, true
		}
		return binary.LittleEndian.AppendUint64(dst, v), text, true
	}
	begin := len(dst)
	dst = protowire.AppendTag(dst, f.number, f.wire)
	start := len(dst)
	switch {
	case f.kind == protoreflect.MessageKind && f.message != nil:
		dst, rest, ok = f.message.AppendWire(dst, text)
	case f.kind == protoreflect.MessageKind:
		dst, rest, ok = timeToWire(dst, text)
	case f.kind == protoreflect.BytesKind:
		if raw, after, good := quoted(text); good {
			var err error
			rest = after
			dst, err = base64.StdEncoding.Strict().AppendDecode(dst, raw)
			ok = err == nil && !bytes.ContainsAny(raw, "\r\n") // which the decoder passes over
		}
	default:
		dst, rest, ok = stringToWire(dst, text)
	}
	if len(dst) == start && !keep {
		return dst[:begin], rest, ok
	}
	return lengthen(dst, start), rest, ok
}

// digits reads a natural number without leading zeros.
func digits(text []byte) (v uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(text); i++ {
		d := text[i] - '0'
		if d > 9 {
			break
		}
		if i >= 19 { // it might not fit any more
			high, low := bits.Mul64(v, 10)
			sum, carry := bits.Add64(low, uint64(d), 0)
			if high != 0 || carry != 0 {
				return 0, text, false
			}
			v = sum
			continue
		}
		v = v*10 + uint64(d)
	}
	return v, text[i:], i > 0 && (i == 1 || text[0] != '0')
}

// integer reads a whole number, which may be negative, in two's complement.
func integer(text []byte) (v uint64, rest []byte, ok bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	v, rest, ok = digits(text)
	if !negative {
		return v, rest, ok && v <= math.MaxInt64
	}
	return -v, rest, ok && v > 0 && v <= 1<<63
}

// unquote reads a number that stands between quotes.
func unquote(text []byte, read func([]byte) (uint64, []byte, bool)) (v uint64, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return 0, text, false
	}
	v, rest, ok = read(text[1:])
	if !ok || len(rest) == 0 || rest[0] != '"' {
		return 0, text, false
	}
	return v, rest[1:], true
}

func (f *field) varint(text []byte) (v uint64, rest []byte, ok bool) {
	switch f.kind {
	case protoreflect.Uint32Kind:
		v, rest, ok = digits(text)
		return v, rest, ok && v <= math.MaxUint32
	case protoreflect.Uint64Kind:
		return unquote(text, digits)
	case protoreflect.Int32Kind:
		v, rest, ok = integer(text)
		return v, rest, ok && int64(v) == int64(int32(v))
	case protoreflect.Int64Kind:
		return unquote(text, integer)
	case protoreflect.BoolKind:
		if startsWith(text, "true") {
			return 1, text[4:], true
		}
		if startsWith(text, "false") {
			return 0, text[5:], true
		}
	case protoreflect.EnumKind:
		if name, rest, ok := quoted(text); ok {
			if d := f.enum.ByName(protoreflect.Name(name)); d != nil {
				return uint64(int64(d.Number())), rest, true
			}
		}
	}
	return 0, text, false
}

func (f *field) fixed(text []byte) (v uint64, rest []byte, ok bool) {
	switch f.kind {
	case protoreflect.FloatKind:
		n, rest, ok := float(text, 32)
		return uint64(math.Float32bits(float32(n))), rest, ok
	case protoreflect.DoubleKind:
		n, rest, ok := float(text, 64)
		return math.Float64bits(n), rest, ok
	case protoreflect.Fixed64Kind:
		return unquote(text, digits)
	case protoreflect.Sfixed64Kind:
		return unquote(text, integer)
	}
	return 0, text, false
}

// quoted reads a string without escapes.
func quoted(text []byte) (body, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, text, false
	}
	n := 1 + plainPrefix(text[1:])
	if n == len(text) || text[n] != '"' {
		return nil, text, false
	}
	return text[1:n], text[n+1:], true
}

func stringToWire(dst, text []byte) (_, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return dst, text, false
	}
	start := len(dst)
	for text = text[1:]; ; {
		n := plainPrefix(text)
		dst = append(dst, text[:n]...)
		if n == len(text) {
			return dst, text, false
		}
		c := text[n]
		text = text[n+1:]
		if c == '"' {
			return dst, text, utf8.Valid(dst[start:])
		}
		if c != '\\' || len(text) == 0 {
			return dst, text, false
		}
		c, text = text[0], text[1:]
		switch c {
		case '"', '\\':
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			// Others than control characters are written as they are.
			if len(text) < 4 || text[0] != '0' || text[1] != '0' || text[2] != '0' && text[2] != '1' {
				return dst, text, false
			}
			low, err := strconv.ParseUint(string(text[3:4]), 16, 8)
			if err != nil {
				return dst, text, false
			}
			c, text = (text[2]-'0')<<4|byte(low), text[4:]
		default:
			return dst, text, false
		}
		dst = append(dst, c)
	}
}

// timeToWire appends the content of a google.protobuf.Timestamp.
func timeToWire(dst, text []byte) (_, rest []byte, ok bool) {
	body, rest, ok := quoted(text)
	// Others than such as 2026-11-01T12:00:00.123Z are not written.
	if !ok || len(body) < 20 || len(body) > 30 || body[len(body)-1] != 'Z' {
		return dst, rest, false
	}
	t, err := time.Parse(time.RFC3339Nano, string(body))
	if err != nil || t.Year() < 1 {
		return dst, rest, false
	}
	if s := t.Unix(); s != 0 {
		dst = protowire.AppendVarint(append(dst, 1<<3), uint64(s))
	}
	if n := t.Nanosecond(); n != 0 {
		dst = protowire.AppendVarint(append(dst, 2<<3), uint64(n))
	}
	return dst, rest, true
}
