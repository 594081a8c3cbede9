package inference

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// Lists of numbers are nearly all of an answer, and reading them element by element
// through reflection was most of a sampler's work. These two read their own JSON.

// tokenIDs is a list of token ids; null is nil.
type tokenIDs []uint32

// UnmarshalJSON reads [1, 2, 3] or null.
func (t *tokenIDs) UnmarshalJSON(b []byte) error {
	*t = nil
	return eachElement(b, func(n int) { *t = make([]uint32, 0, n) }, func(s []byte) error {
		id, err := strconv.ParseUint(string(s), 10, 32)
		if err != nil {
			return fmt.Errorf("token id %.40q: want an integer from 0 to %d", s, uint32(math.MaxUint32))
		}
		*t = append(*t, uint32(id))
		return nil
	})
}

// logprobs is a list of logprobs; null in it is NaN.
type logprobs []float32

// UnmarshalJSON reads [-0.5, null, 0] or null.
func (l *logprobs) UnmarshalJSON(b []byte) error {
	*l = nil
	return eachElement(b, func(n int) { *l = make([]float32, 0, n) }, func(s []byte) error {
		if string(s) == "null" {
			*l = append(*l, float32(math.NaN()))
			return nil
		}
		v, err := strconv.ParseFloat(string(s), 64)
		if err != nil {
			return fmt.Errorf("logprob %.40q: want a number", s)
		}
		*l = append(*l, float32(v))
		return nil
	})
}

// eachElement splits a flat list, already known to be valid JSON. begin is told how
// many elements there can be at most, and is not called for null.
func eachElement(b []byte, begin func(n int), element func([]byte) error) error {
	if string(b) == "null" {
		return nil
	}
	if len(b) < 2 || b[0] != '[' {
		return fmt.Errorf("%.40q: want a list of numbers", b)
	}
	b = b[1 : len(b)-1]
	begin(bytes.Count(b, []byte{','}) + 1)
	for len(b) > 0 {
		one := b
		if i := bytes.IndexByte(b, ','); i >= 0 {
			one, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		one = bytes.Trim(one, " \t\r\n")
		if len(one) == 0 {
			return nil // an empty list with white space in it
		}
		if err := element(one); err != nil {
			return err
		}
	}
	return nil
}
