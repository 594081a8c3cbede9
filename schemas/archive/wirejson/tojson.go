package wirejson

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// AppendJSON appends the JSON of an encoded message.
func (s *Shape) AppendJSON(dst, wire []byte) (json []byte, ok bool) {
	if !s.plain {
		return dst, false
	}
	dst = append(dst, '{')
	first := true
	for at := 0; len(wire) > 0; {
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 || n != protowire.SizeTag(number) {
			return dst, false
		}
		for at < len(s.fields) && s.fields[at].number < number {
			at++
		}
		if at == len(s.fields) || s.fields[at].number != number || s.fields[at].wire != kind {
			return dst, false
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		f := &s.fields[at]
		dst = append(dst, f.name...)
		wire = wire[n:]
		switch {
		case !f.list:
			dst, wire, ok = f.appendValue(dst, wire, !f.present)
		case wireType(f.kind) == protowire.BytesType:
			dst, wire, ok = f.appendEach(dst, wire)
		default:
			dst, wire, ok = f.appendPacked(dst, wire)
		}
		if !ok {
			return dst, false
		}
		at++
	}
	return append(dst, '}'), true
}

// appendEach appends a list whose elements each have a tag; the first was read.
func (f *field) appendEach(dst, wire []byte) (_, rest []byte, ok bool) {
	dst = append(dst, '[')
	for {
		if dst, wire, ok = f.appendValue(dst, wire, false); !ok {
			return dst, wire, false
		}
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 || number != f.number {
			// Another field, whose tag is looked at there.
			return append(dst, ']'), wire, true
		}
		if kind != f.wire || n != protowire.SizeTag(number) {
			return dst, wire, false
		}
		dst, wire = append(dst, ','), wire[n:]
	}
}

// appendPacked appends a packed list of numbers.
func (f *field) appendPacked(dst, wire []byte) (_, rest []byte, ok bool) {
	body, wire, ok := consumeBytes(wire)
	if !ok || len(body) == 0 {
		return dst, wire, false
	}
	dst = append(dst, '[')
	for first := true; len(body) > 0; first = false {
		if !first {
			dst = append(dst, ',')
		}
		if f.kind == protoreflect.Uint32Kind && body[0] < 0x80 {
			dst, body = appendUint(dst, uint64(body[0])), body[1:]
			continue
		}
		if dst, body, ok = f.appendValue(dst, body, false); !ok {
			return dst, wire, false
		}
	}
	return append(dst, ']'), wire, true
}

// appendValue appends one value. bare: a default value would not have been written.
func (f *field) appendValue(dst, wire []byte, bare bool) (_, rest []byte, ok bool) {
	switch wireType(f.kind) {
	case protowire.VarintType:
		v, n := binary.Uvarint(wire)
		if n <= 0 || n > 1 && wire[n-1] == 0 || bare && v == 0 {
			return dst, wire, false
		}
		dst, ok = f.appendVarint(dst, v)
		return dst, wire[n:], ok
	case protowire.Fixed32Type:
		if len(wire) < 4 {
			return dst, wire, false
		}
		v := binary.LittleEndian.Uint32(wire)
		if bare && v == 0 {
			return dst, wire, false
		}
		switch f.kind {
		case protoreflect.FloatKind:
			dst, ok = appendFloat(dst, float64(math.Float32frombits(v)), 32)
		case protoreflect.Fixed32Kind:
			dst, ok = appendUint(dst, uint64(v)), true
		case protoreflect.Sfixed32Kind:
			dst, ok = strconv.AppendInt(dst, int64(int32(v)), 10), true
		}
		return dst, wire[4:], ok
	case protowire.Fixed64Type:
		if len(wire) < 8 {
			return dst, wire, false
		}
		v := binary.LittleEndian.Uint64(wire)
		if bare && v == 0 {
			return dst, wire, false
		}
		switch f.kind {
		case protoreflect.DoubleKind:
			dst, ok = appendFloat(dst, math.Float64frombits(v), 64)
		case protoreflect.Fixed64Kind:
			dst, ok = append(strconv.AppendUint(append(dst, '"'), v, 10), '"'), true
		case protoreflect.Sfixed64Kind:
			dst, ok = append(strconv.AppendInt(append(dst, '"'), int64(v), 10), '"'), true
		}
		return dst, wire[8:], ok
	}
	body, wire, ok := consumeBytes(wire)
	if !ok || bare && len(body) == 0 {
		return dst, wire, false
	}
	switch {
	case f.kind == protoreflect.StringKind:
		dst, ok = appendString(dst, body)
	case f.kind == protoreflect.BytesKind:
		dst = append(base64.StdEncoding.AppendEncode(append(dst, '"'), body), '"')
	case f.message == nil:
		dst, ok = appendTime(dst, body)
	default:
		dst, ok = f.message.AppendJSON(dst, body)
	}
	return dst, wire, ok
}

func consumeBytes(wire []byte) (body, rest []byte, ok bool) {
	size, n := binary.Uvarint(wire)
	if n <= 0 || n > 1 && wire[n-1] == 0 || size > uint64(len(wire)-n) {
		return nil, wire, false
	}
	end := n + int(size)
	return wire[n:end:end], wire[end:], true
}

func (f *field) appendVarint(dst []byte, v uint64) (_ []byte, ok bool) {
	switch f.kind {
	case protoreflect.BoolKind:
		if v > 1 {
			return dst, false
		}
		return strconv.AppendBool(dst, v == 1), true
	case protoreflect.Uint32Kind:
		return appendUint(dst, v), v <= math.MaxUint32
	case protoreflect.Uint64Kind:
		return append(appendUint(append(dst, '"'), v), '"'), true
	case protoreflect.Int32Kind:
		return strconv.AppendInt(dst, int64(v), 10), int64(v) == int64(int32(v))
	case protoreflect.Int64Kind:
		return append(strconv.AppendInt(append(dst, '"'), int64(v), 10), '"'), true
	case protoreflect.EnumKind:
		if int64(v) != int64(int32(v)) {
			return dst, false
		}
		d := f.enum.ByNumber(protoreflect.EnumNumber(v))
		if d == nil {
			return dst, false
		}
		return append(append(append(dst, '"'), d.Name()...), '"'), true
	}
	return dst, false
}

func appendUint(dst []byte, v uint64) []byte {
	if v < 10 {
		return append(dst, '0'+byte(v))
	}
	return strconv.AppendUint(dst, v, 10)
}

// appendFloat writes a number as encoding/json does, which protojson follows.
func appendFloat(dst []byte, v float64, bits int) (_ []byte, ok bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return dst, false
	}
	form, low, high := byte('f'), 1e-6, 1e21
	if bits == 32 {
		low, high = float64(float32(1e-6)), float64(float32(1e21))
	}
	if abs := math.Abs(v); abs != 0 && (abs < low || abs >= high) {
		form = 'e'
	}
	dst = strconv.AppendFloat(dst, v, form, -1, bits)
	if n := len(dst); form == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1] // e-09 is e-9
		dst = dst[:n-1]
	}
	return dst, true
}

func appendString(dst, text []byte) (_ []byte, ok bool) {
	if !utf8.Valid(text) {
		return dst, false
	}
	dst = append(dst, '"')
	for {
		n := plainPrefix(text)
		dst = append(dst, text[:n]...)
		if n == len(text) {
			return append(dst, '"'), true
		}
		switch c := text[n]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		text = text[n+1:]
	}
}

// plainPrefix counts the bytes before the first that JSON writes in another way: a
// quote, a backslash or a control character.
func plainPrefix(b []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		// Eight at a time. A byte that is none of them may be taken for one behind one
		// that is; the loop below says which was first.
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		if ((x-ones*' ')&^x|(quote-ones)&^quote|(slash-ones)&^slash)&high != 0 {
			break
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// appendTime writes a google.protobuf.Timestamp.
func appendTime(dst, wire []byte) (_ []byte, ok bool) {
	var seconds, nanos uint64
	for last := protowire.Number(0); len(wire) > 0; {
		tag := protowire.Number(wire[0] >> 3)
		v, n := binary.Uvarint(wire[1:])
		if wire[0]&7 != byte(protowire.VarintType) || tag <= last || n <= 0 || n > 1 && wire[n] == 0 || v == 0 {
			return dst, false
		}
		switch last = tag; tag {
		case 1:
			seconds = v
		case 2:
			nanos = v
		default:
			return dst, false
		}
		wire = wire[1+n:]
	}
	// The years 1 to 9999.
	if int64(seconds) < -62135596800 || int64(seconds) > 253402300799 || nanos > 999999999 {
		return dst, false
	}
	form := "2006-01-02T15:04:05.000000000Z"
	switch {
	case nanos == 0:
		form = "2006-01-02T15:04:05Z"
	case nanos%1e6 == 0:
		form = "2006-01-02T15:04:05.000Z"
	case nanos%1e3 == 0:
		form = "2006-01-02T15:04:05.000000Z"
	}
	dst = append(dst, '"')
	dst = time.Unix(int64(seconds), int64(nanos)).UTC().AppendFormat(dst, form)
	return append(dst, '"'), true
}
