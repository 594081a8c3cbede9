package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// maxBatch bounds the memory that one record batch of an Arrow file may ask for, in bytes.
const maxBatch = 2 << 30

const (
	arrowMagic  = "ARROW1"
	streamMagic = "\xff\xff\xff\xff"
)

// readArrow gives each row of an Arrow file: the stream format, which Hugging Face's
// datasets are saved in, or the file format.
func readArrow(file *os.File, stream bool, f func(int, Object, error) error) (err error) {
	var inner error // of f, which has its own words
	defer func() {
		if p := recover(); p != nil {
			// The library panics on some damaged files, and the allocator below on purpose.
			err = fmt.Errorf("%v", p)
		}
		switch {
		case inner != nil:
			err = inner
		case err != nil:
			err = fmt.Errorf("%w: %s: damaged or cut short, fetch it again: %w", ErrUnreadable, file.Name(), err)
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := checkArrowSchema(file, info.Size(), stream); err != nil {
		return err
	}
	index := 0
	each := func(batch arrow.RecordBatch) error {
		for i := range int(batch.NumRows()) {
			o := make(Object, batch.NumCols())
			for c, column := range batch.Columns() {
				o[batch.ColumnName(c)] = arrowValue(column, i)
			}
			if inner = f(index, o, nil); inner != nil {
				return inner
			}
			index++
		}
		return nil
	}
	mem := ipc.WithAllocator(boundedMemory{memory.NewGoAllocator()})
	if stream {
		return readArrowStream(file, mem, each)
	}
	r, err := ipc.NewFileReader(file, mem)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	for i := range r.NumRecords() {
		batch, err := r.RecordBatch(i)
		if err != nil {
			return err
		}
		if err := each(batch); err != nil {
			return err
		}
		batch.Release()
	}
	return nil
}

func readArrowStream(r io.Reader, mem ipc.Option, each func(arrow.RecordBatch) error) error {
	reader, err := ipc.NewReader(r, mem)
	if err != nil {
		return err
	}
	defer reader.Release()
	for reader.Next() {
		if err := each(reader.RecordBatch()); err != nil {
			return err
		}
	}
	if err := reader.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// boundedMemory refuses allocations that a damaged length asks for.
type boundedMemory struct{ memory.Allocator }

func (m boundedMemory) Allocate(size int) []byte {
	m.check(size)
	return m.Allocator.Allocate(size)
}

func (m boundedMemory) Reallocate(size int, b []byte) []byte {
	m.check(size)
	return m.Allocator.Reallocate(size, b)
}

func (boundedMemory) check(size int) {
	if size < 0 || size > maxBatch {
		panic(fmt.Errorf("a batch asks for %d bytes, want at most %d", size, maxBatch))
	}
}

// notUnderstood is a value of a type that no question or answer has.
type notUnderstood string

// arrowValue gives one value as JSON would have it.
func arrowValue(column arrow.Array, i int) any {
	if column.IsNull(i) {
		return nil
	}
	switch a := column.(type) {
	case *array.String:
		return a.Value(i)
	case *array.LargeString:
		return a.Value(i)
	case *array.StringView:
		return a.Value(i)
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Uint8:
		return int64(a.Value(i))
	case *array.Uint16:
		return int64(a.Value(i))
	case *array.Uint32:
		return int64(a.Value(i))
	case *array.Uint64:
		return json.Number(strconv.FormatUint(a.Value(i), 10))
	case *array.Float32:
		if v := float64(a.Value(i)); math.IsNaN(v) || math.IsInf(v, 0) {
			return v
		}
		return json.Number(strconv.FormatFloat(float64(a.Value(i)), 'f', -1, 32))
	case *array.Float64:
		return a.Value(i)
	case *array.Dictionary:
		return arrowValue(a.Dictionary(), a.GetValueIndex(i))
	case *array.Struct:
		fields := a.DataType().(*arrow.StructType).Fields()
		o := make(Object, len(fields))
		for n, field := range fields {
			o[field.Name] = arrowValue(a.Field(n), i)
		}
		return o
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		list := make([]any, 0, to-from)
		for n := from; n < to; n++ {
			list = append(list, arrowValue(a.ListValues(), int(n)))
		}
		return list
	}
	return notUnderstood(column.DataType().String())
}
