package dataset

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// readParquet gives each row as JSON would have it, whatever columns the file has.
func readParquet(file *os.File, f func(int, Object, error) error) error {
	unreadable := func(err error) error { return fmt.Errorf("%w: %s: %w", ErrUnreadable, file.Name(), err) }
	info, err := file.Stat()
	if err != nil {
		return unreadable(err)
	}
	pf, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return unreadable(err)
	}
	index := 0
	for _, group := range pf.RowGroups() {
		rows := group.Rows()
		err := eachRow(rows, func(row parquet.Row) error {
			o, _ := assembleGroup(pf.Schema(), levels{}, byColumn(row)).(Object)
			err := f(index, o, nil)
			index++
			return err
		})
		if err = errors.Join(err, rows.Close()); err != nil {
			return err
		}
	}
	return nil
}

func eachRow(rows parquet.Rows, f func(parquet.Row) error) error {
	buf := make([]parquet.Row, 64)
	for {
		n, err := rows.ReadRows(buf)
		for _, row := range buf[:n] {
			if ferr := f(row); ferr != nil {
				return ferr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
	}
}

// columns holds one row's values, a slice per leaf column in schema order.
type columns [][]parquet.Value

func byColumn(row parquet.Row) columns {
	var cols columns
	for _, v := range row {
		for v.Column() >= len(cols) {
			cols = append(cols, nil)
		}
		cols[v.Column()] = append(cols[v.Column()], v)
	}
	return cols
}

// levels are the definition and repetition level of a node's parent.
type levels struct{ definition, repetition int }

// assemble puts a node's value together from its columns' values: Dremel's record
// assembly (Melnik et al., 2010, section 4.3) for one row that is already split off.
func assemble(node parquet.Node, at levels, cols columns) any {
	switch {
	case node.Optional():
		if absent(at, cols) {
			return nil
		}
		at.definition++
		return assembleRequired(node, at, cols)
	case node.Repeated():
		return assembleRepeated(node, at, cols)
	}
	return assembleRequired(node, at, cols)
}

func absent(at levels, cols columns) bool {
	return len(cols) == 0 || len(cols[0]) == 0 || cols[0][0].DefinitionLevel() <= at.definition
}

func assembleRepeated(node parquet.Node, at levels, cols columns) any {
	list := []any{}
	if absent(at, cols) {
		return list
	}
	at.definition++
	at.repetition++
	for len(cols[0]) > 0 {
		element := make(columns, len(cols))
		for c, values := range cols {
			n := 1
			for n < len(values) && values[n].RepetitionLevel() > at.repetition {
				n++
			}
			n = min(n, len(values))
			element[c], cols[c] = values[:n], values[n:]
		}
		list = append(list, assembleRequired(node, at, element))
	}
	return list
}

func assembleRequired(node parquet.Node, at levels, cols columns) any {
	if !node.Leaf() {
		return assembleGroup(node, at, cols)
	}
	if len(cols) == 0 || len(cols[0]) == 0 || cols[0][0].IsNull() {
		return nil
	}
	return scalarOf(cols[0][0])
}

func assembleGroup(node parquet.Node, at levels, cols columns) any {
	fields := node.Fields()
	o := make(Object, len(fields))
	var list any
	for _, field := range fields {
		n := min(leaves(field), len(cols))
		value := assemble(field, at, cols[:n])
		cols = cols[n:]
		o[field.Name()] = value
		list = value
	}
	if entries, ok := list.([]any); ok && isList(node) && len(fields) == 1 {
		return elements(entries)
	}
	return o
}

// elements unwraps the format's LIST: a group of one repeated group of one element.
func elements(entries []any) []any {
	for i, entry := range entries {
		if o, ok := entry.(Object); ok && len(o) == 1 {
			for _, element := range o {
				entries[i] = element
			}
		}
	}
	return entries
}

func isList(node parquet.Node) bool {
	t := node.Type()
	if t == nil || node.Leaf() {
		return false
	}
	lt := t.LogicalType()
	if lt == nil {
		return false
	}
	_, ok := lt.Value.(*format.ListType)
	return ok
}

func leaves(node parquet.Node) int {
	if node.Leaf() {
		return 1
	}
	n := 0
	for _, field := range node.Fields() {
		n += leaves(field)
	}
	return n
}

func scalarOf(v parquet.Value) any {
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean()
	case parquet.Int32:
		return int64(v.Int32())
	case parquet.Int64:
		return v.Int64()
	case parquet.Float:
		return float64(v.Float())
	case parquet.Double:
		return v.Double()
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return string(v.ByteArray()) // Normalise refuses what is no UTF-8
	}
	return v.String()
}
