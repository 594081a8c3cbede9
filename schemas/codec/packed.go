package codec

import (
	"encoding/binary"
	"math"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// Most bytes of a record are packed arrays of numbers: token ids, logprobs, versions.
// They are read and written here, to the same bytes as the protobuf library does, which
// goes over each of them several times.

// packed is a packed field: its content, which was checked, and how many numbers it has.
type packed struct {
	body []byte
	n    int
}

// read reads the field by f; false where it stands in two parts, which is allowed and
// which nobody writes.
func (p *packed) read(f func(protowire.Type, []byte) (packed, bool), kind protowire.Type, body []byte) (ok bool) {
	if p.n > 0 {
		return false
	}
	*p, ok = f(kind, body)
	return ok
}

// packedVarints reads a packed field of uint32; ok is false where it is not packed, or a
// number is longer than any 32 bits need.
func packedVarints(kind protowire.Type, body []byte) (p packed, ok bool) {
	if kind != protowire.BytesType {
		return packed{}, false
	}
	if len(body) > 0 && body[len(body)-1] >= 0x80 {
		return packed{}, false
	}
	p.body = body
	const tops = 0x8080808080808080 // set where a number goes on
	// Eight bytes at a time, each half of them twice: a run of five bytes that do not
	// end a number lies whole in one of the windows.
	for ; len(body) >= 8; body = body[4:] {
		ends := ^binary.LittleEndian.Uint64(body) & tops
		p.n += bits.OnesCount32(uint32(ends))
		if on := ends ^ tops; on&(on>>8)&(on>>16)&(on>>24)&(on>>32) != 0 {
			return packed{}, false
		}
	}
	length := 0
	for _, b := range body {
		if length++; b < 0x80 {
			p.n, length = p.n+1, 0
		} else if length == 5 {
			return packed{}, false
		}
	}
	return p, true
}

// uint32s decodes what packedVarints read.
func (p packed) uint32s() []uint32 {
	if p.n == 0 {
		return nil
	}
	out, b := make([]uint32, p.n), p.body
	for i := range out {
		if len(b) < binary.MaxVarintLen32 {
			v, size := protowire.ConsumeVarint(b)
			out[i], b = uint32(v), b[size:]
			continue
		}
		v, size := uint32(b[0]), 1
		if v >= 1<<7 {
			v, size = v&(1<<7-1)|uint32(b[1])<<7, 2
			if v >= 1<<14 {
				v, size = v&(1<<14-1)|uint32(b[2])<<14, 3
				if v >= 1<<21 {
					v, size = v&(1<<21-1)|uint32(b[3])<<21, 4
					if v >= 1<<28 {
						v, size = v&(1<<28-1)|uint32(b[4])<<28, 5
					}
				}
			}
		}
		out[i], b = v, b[size:]
	}
	return out
}

// packedFinite reads a packed field of float; ok is false where one is not finite.
func packedFinite(kind protowire.Type, body []byte) (p packed, ok bool) {
	if kind != protowire.BytesType || len(body)%4 != 0 {
		return packed{}, false
	}
	p.body, p.n = body, len(body)/4
	for ; len(body) > 0; body = body[4:] {
		const exponent = 0x7f800000
		if binary.LittleEndian.Uint32(body)&exponent == exponent {
			return packed{}, false
		}
	}
	return p, true
}

// floats decodes what packedFinite read.
func (p packed) floats() []float32 {
	if p.n == 0 {
		return nil
	}
	out, b := make([]float32, p.n), p.body
	for i := range out {
		out[i], b = math.Float32frombits(binary.LittleEndian.Uint32(b)), b[4:]
	}
	return out
}

// appendUint32s writes a packed field, none if it is empty.
func appendUint32s(b []byte, number protowire.Number, values []uint32) []byte {
	if len(values) == 0 {
		return b
	}
	b, at := openField(b, number)
	for _, v := range values {
		switch {
		case v < 1<<7:
			b = append(b, byte(v))
		case v < 1<<14:
			b = append(b, byte(v)|0x80, byte(v>>7))
		case v < 1<<21:
			b = append(b, byte(v)|0x80, byte(v>>7)|0x80, byte(v>>14))
		default:
			b = protowire.AppendVarint(b, uint64(v))
		}
	}
	return closeField(b, at)
}

// appendFloats writes a packed field, none if it is empty.
func appendFloats(b []byte, number protowire.Number, values []float32) []byte {
	if len(values) == 0 {
		return b
	}
	b = protowire.AppendTag(b, number, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(4*len(values)))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// openField begins a field whose length is not known yet; closeField is given what it
// returns, with the field's content behind it.
func openField(b []byte, number protowire.Number) (opened []byte, at int) {
	b = protowire.AppendTag(b, number, protowire.BytesType)
	return append(b, make([]byte, binary.MaxVarintLen32)...), len(b)
}

func closeField(b []byte, at int) []byte {
	content := b[at+binary.MaxVarintLen32:]
	length := protowire.AppendVarint(b[:at], uint64(len(content)))
	return append(length, content...) // moves it up
}
