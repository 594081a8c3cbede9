package tokens

import (
	"encoding/binary"
	"math"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// Size is how many bytes an id or a float takes.
const Size = 4

// Count is how many values an array of ids or floats has.
func Count(array []byte) int { return len(array) / Size }

// ID is the i-th of an array of token ids.
func ID(array []byte, i int) uint32 { return binary.LittleEndian.Uint32(array[Size*i:]) }

// Float is the i-th of an array of floats.
func Float(array []byte, i int) float32 { return math.Float32frombits(ID(array, i)) }

// IDs makes an array of token ids; nil of none.
func IDs(ids ...uint32) []byte { return AppendIDs(nil, ids...) }

// AppendIDs appends token ids to an array.
func AppendIDs(array []byte, ids ...uint32) []byte {
	array, room := grow(array, len(ids))
	for i, id := range ids {
		binary.LittleEndian.PutUint32(room[Size*i:], id)
	}
	return array
}

// Floats makes an array of floats; nil of none.
func Floats(values ...float32) []byte { return AppendFloats(nil, values...) }

// AppendFloats appends floats to an array.
func AppendFloats(array []byte, values ...float32) []byte {
	array, room := grow(array, len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(room[Size*i:], math.Float32bits(v))
	}
	return array
}

// grow makes an array longer by n values, which room is for.
func grow(array []byte, n int) (longer, room []byte) {
	at := len(array)
	if need := at + Size*n; need > cap(array) {
		longer := make([]byte, need, max(need, 2*at))
		copy(longer, array)
		array = longer
	}
	array = array[:at+Size*n]
	return array, array[at:]
}

// ReadIDs are the values of an array of token ids.
func ReadIDs(array []byte) []uint32 {
	return ReadIDsInto(make([]uint32, 0, Count(array)), array)
}

// ReadIDsInto appends the values of an array of token ids to a slice.
func ReadIDsInto(ids []uint32, array []byte) []uint32 {
	for ; len(array) >= Size; array = array[Size:] {
		ids = append(ids, binary.LittleEndian.Uint32(array))
	}
	return ids
}

// ReadFloats are the values of an array of floats.
func ReadFloats(array []byte) []float32 {
	values := make([]float32, 0, Count(array))
	for ; len(array) >= Size; array = array[Size:] {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(array)))
	}
	return values
}

// NotFinite is the place of the first value that is NaN or infinite; -1 if there is none.
func NotFinite(array []byte) int {
	const exponent = 0x7f800000
	// Four at a time: an exponent of all ones, and no other, carries into the sign's bit
	// when its lowest bit is added.
	const two, low, carry = exponent<<32 | exponent, 1<<55 | 1<<23, 1<<63 | 1<<31
	at := 0
	for ; len(array)-at >= 16; at += 16 {
		a, b := binary.LittleEndian.Uint64(array[at:]), binary.LittleEndian.Uint64(array[at+8:])
		if ((a&two+low)|(b&two+low))&carry != 0 {
			break
		}
	}
	for ; len(array)-at >= Size; at += Size {
		if binary.LittleEndian.Uint32(array[at:])&exponent == exponent {
			return at / Size
		}
	}
	return -1
}

// InTrajectory is how many tokens a trajectory has in all: of the prompt, sampled and
// glue.
func InTrajectory(t *sluicev1.Trajectory) int {
	n := Count(t.GetPromptTokens())
	for _, turn := range t.GetTurns() {
		n += Count(turn.GetTokens()) + Count(turn.GetGlueTokens())
	}
	return n
}

// OfTrajectory are all tokens of a trajectory, in order.
func OfTrajectory(t *sluicev1.Trajectory) []uint32 {
	ids := make([]uint32, 0, InTrajectory(t))
	ids = ReadIDsInto(ids, t.GetPromptTokens())
	for _, turn := range t.GetTurns() {
		ids = ReadIDsInto(ids, turn.GetTokens())
		ids = ReadIDsInto(ids, turn.GetGlueTokens())
	}
	return ids
}
