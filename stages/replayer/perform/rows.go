package perform

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluice-rl/sluice/schemas/codec"
)

// Rows of output wait in a file, from which one can cut off the end, until they become
// Parquet, from which one cannot. A row is its time in milliseconds, key, headers and
// value, each behind its length or count.

func appendRow(dst []byte, it Item) []byte {
	dst = binary.AppendVarint(dst, it.Time.UnixMilli())
	dst = appendField(dst, it.Key)
	dst = binary.AppendUvarint(dst, uint64(len(it.Headers)))
	for _, h := range it.Headers {
		dst = appendField(dst, []byte(h.Key))
		dst = appendField(dst, h.Value)
	}
	return appendField(dst, it.Value)
}

func appendField(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// rowReader reads rows back.
type rowReader struct {
	r   *bufio.Reader
	err error
}

// next is io.EOF behind the last row.
func (r *rowReader) next() (it Item, err error) {
	if _, err := r.r.Peek(1); err != nil {
		return it, err
	}
	ms, err := binary.ReadVarint(r.r)
	r.err = err
	it.Time = time.UnixMilli(ms).UTC()
	it.Key = r.field()
	for range r.number() {
		h := codec.Header{Key: string(r.field()), Value: r.field()}
		it.Headers = append(it.Headers, h)
	}
	it.Value = r.field()
	if errors.Is(r.err, io.EOF) {
		r.err = io.ErrUnexpectedEOF
	}
	return it, r.err
}

func (r *rowReader) number() uint64 {
	if r.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(r.r)
	if r.err = err; n > maxRow {
		r.err = fmt.Errorf("a field of %d bytes", n)
		return 0
	}
	return n
}

// maxRow bounds a field: more than any record may have.
const maxRow = 1 << 30

func (r *rowReader) field() []byte {
	b := make([]byte, r.number())
	if r.err == nil {
		_, r.err = io.ReadFull(r.r, b)
	}
	return b
}
