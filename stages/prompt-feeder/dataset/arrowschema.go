package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Bounds of an Arrow schema, which the library takes at its word.
const (
	maxSchema      = 16 << 20 // bytes
	maxFields      = 10_000
	maxFieldNested = 64
)

// Slots of Arrow's flatbuffers tables (format/Message.fbs, File.fbs and Schema.fbs).
const (
	slotMessageHeader  = 8
	slotFooterSchema   = 6
	slotSchemaFields   = 6
	slotSchemaMetadata = 8
	slotFieldChildren  = 14
	slotFieldMetadata  = 16
)

var errSchema = errors.New("its schema is larger than the file says, or than one of problems can be")

// checkArrowSchema refuses a schema whose lengths would have the library allocate or
// recurse without bound. A stream begins with its schema, a file ends with it.
func checkArrowSchema(file io.ReaderAt, size int64, stream bool) error {
	at, slot := int64(4), flatbuffers.VOffsetT(slotMessageHeader)
	if !stream {
		at, slot = size-10, slotFooterSchema
	}
	var length [4]byte
	if _, err := file.ReadAt(length[:], at); err != nil {
		return err
	}
	n := int64(int32(binary.LittleEndian.Uint32(length[:])))
	if at += 4; !stream {
		at = size - 10 - n
	}
	if n < 4 || n > maxSchema || at < 0 || at+n > size {
		return fmt.Errorf("%w: %d bytes", errSchema, n)
	}
	buf := make([]byte, n)
	if _, err := file.ReadAt(buf, at); err != nil {
		return err
	}
	root := flatbuffers.Table{Bytes: buf, Pos: flatbuffers.GetUOffsetT(buf)}
	header := root.Offset(slot)
	if header == 0 {
		return errSchema
	}
	schema := child(root, flatbuffers.UOffsetT(header)+root.Pos)
	left := maxFields
	if entries(schema, slotSchemaMetadata) > maxFields {
		return errSchema
	}
	return checkFields(schema, slotSchemaFields, &left, maxFieldNested)
}

func checkFields(t flatbuffers.Table, slot flatbuffers.VOffsetT, left *int, depth int) error {
	n := entries(t, slot)
	if *left -= n; *left < 0 || depth == 0 {
		return errSchema
	}
	for i := range n {
		field := child(t, t.Vector(flatbuffers.UOffsetT(t.Offset(slot)))+flatbuffers.UOffsetT(4*i))
		if entries(field, slotFieldMetadata) > maxFields {
			return errSchema
		}
		if err := checkFields(field, slotFieldChildren, left, depth-1); err != nil {
			return err
		}
	}
	return nil
}

// entries is the length of a table's vector, 0 if it has none.
func entries(t flatbuffers.Table, slot flatbuffers.VOffsetT) int {
	o := t.Offset(slot)
	if o == 0 {
		return 0
	}
	if n := t.VectorLen(flatbuffers.UOffsetT(o)); n >= 0 {
		return n
	}
	return maxFields + 1
}

func child(t flatbuffers.Table, at flatbuffers.UOffsetT) flatbuffers.Table {
	return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at)}
}
