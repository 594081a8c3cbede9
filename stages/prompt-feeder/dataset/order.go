package dataset

import (
	"encoding/binary"
	"hash/fnv"
	"math/bits"
)

// Order says which row stands where in an endless sequence of epochs. Each epoch is a
// permutation of all rows of its own, computed and not stored: a four-round Feistel
// network over the smallest even number of bits that holds n, walked on until it lands
// below n (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
type Order struct {
	n    uint64
	half uint
	seed uint64
}

// NewOrder orders n rows, at least 1.
func NewOrder(n int, seed uint64) Order {
	width := uint(bits.Len64(uint64(n) - 1))
	return Order{n: uint64(n), half: max((width+1)/2, 1), seed: seed}
}

// At gives the epoch, from 0, and the row at a position, from 0, of the sequence.
func (o Order) At(position uint64) (epoch uint64, row int) {
	epoch = position / o.n
	x := position % o.n
	for {
		if x = o.feistel(epoch, x); x < o.n {
			return epoch, int(x)
		}
	}
}

func (o Order) feistel(epoch, x uint64) uint64 {
	mask := uint64(1)<<o.half - 1
	left, right := x>>o.half, x&mask
	for round := range uint64(4) {
		left, right = right, left^o.mix(epoch, round, right)&mask
	}
	return left<<o.half | right
}

func (o Order) mix(epoch, round, x uint64) uint64 {
	var b [32]byte
	for i, v := range [4]uint64{o.seed, epoch, round, x} {
		binary.LittleEndian.PutUint64(b[i*8:], v)
	}
	h := fnv.New64a()
	h.Write(b[:])
	v := h.Sum64()
	// FNV's high bits are the better mixed ones.
	return v ^ v>>32
}
