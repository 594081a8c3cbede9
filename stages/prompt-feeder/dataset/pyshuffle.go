package dataset

import "math/bits"

// PythonShuffle returns the permutation that Python's
//
//	rows = list(range(n)); random.Random(seed).shuffle(rows)
//
// makes of n rows. Splits published with a Python seed can so be had again.
//
// Source: the Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998) seeded by
// init_by_array with the seed's 32-bit digits, and Python's shuffle: for i from n-1
// down to 1, swap with a number below i+1 drawn by rejection from its bit length.
func PythonShuffle(n int, seed uint64) []int {
	rng := newTwister(seed)
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i >= 1; i-- {
		j := rng.below(uint64(i) + 1)
		p[i], p[j] = p[j], p[i]
	}
	return p
}

const (
	twisterLen   = 624
	twisterShift = 397
)

type twister struct {
	state [twisterLen]uint32
	next  int
}

func newTwister(seed uint64) *twister {
	key := []uint32{uint32(seed)}
	if high := uint32(seed >> 32); high != 0 {
		key = append(key, high)
	}
	t := &twister{next: twisterLen}
	s := &t.state
	s[0] = 19650218
	for i := uint32(1); i < twisterLen; i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + i
	}
	i, j := 1, 0
	for range max(twisterLen, len(key)) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1664525) + key[j] + uint32(j)
		if i++; i == twisterLen {
			s[0], i = s[twisterLen-1], 1
		}
		if j++; j == len(key) {
			j = 0
		}
	}
	for range twisterLen - 1 {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1566083941) - uint32(i)
		if i++; i == twisterLen {
			s[0], i = s[twisterLen-1], 1
		}
	}
	s[0] = 1 << 31
	return t
}

func (t *twister) uint32() uint32 {
	if t.next == twisterLen {
		t.refill()
	}
	y := t.state[t.next]
	t.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (t *twister) refill() {
	s := &t.state
	for i := range s {
		y := s[i]&(1<<31) | s[(i+1)%twisterLen]&(1<<31-1)
		v := s[(i+twisterShift)%twisterLen] ^ y>>1
		if y&1 != 0 {
			v ^= 0x9908b0df
		}
		s[i] = v
	}
	t.next = 0
}

// below draws from [0, n) for 0 < n < 2^64.
func (t *twister) below(n uint64) uint64 {
	k := bits.Len64(n)
	for {
		if r := t.bits(k); r < n {
			return r
		}
	}
}

// bits draws k bits, 1 to 64: low word first, the rest from the top of the next.
func (t *twister) bits(k int) uint64 {
	if k <= 32 {
		return uint64(t.uint32() >> (32 - k))
	}
	low := uint64(t.uint32())
	return low | uint64(t.uint32()>>(64-k))<<32
}
