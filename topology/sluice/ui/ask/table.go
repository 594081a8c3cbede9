package ask

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Table is an answer.
type Table struct {
	Columns []Column `json:"columns"`
	Rows    [][]any  `json:"rows"`
	// Cut: there was more than the limits allow.
	Cut          bool    `json:"cut,omitempty"`
	Milliseconds float64 `json:"ms"`
}

// Column of a table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

func read(rows driver.Rows, l Limits) (Table, error) {
	t := Table{Columns: []Column{}, Rows: [][]any{}}
	types := rows.ColumnTypes()
	for _, c := range types {
		t.Columns = append(t.Columns, Column{c.Name(), c.DatabaseTypeName()})
	}
	bytes := 0
	for rows.Next() {
		if len(t.Rows) == l.Rows || bytes > l.Bytes {
			t.Cut = true
			break
		}
		into := make([]any, len(types))
		for i, c := range types {
			into[i] = reflect.New(c.ScanType()).Interface()
		}
		if err := rows.Scan(into...); err != nil {
			return t, fmt.Errorf("read the answer: %w", err)
		}
		row := make([]any, len(into))
		for i, v := range into {
			var size int
			row[i], size = plain(reflect.ValueOf(v).Elem())
			bytes += size
		}
		t.Rows = append(t.Rows, row)
	}
	return t, rows.Err()
}

// exact is up to where JavaScript's numbers are exact.
const exact = 1 << 53

// plain makes a value that JSON and JavaScript can hold, and says about how many bytes
// it takes.
func plain(v reflect.Value) (any, int) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, 4
		}
		if _, isTime := v.Interface().(*time.Time); !isTime {
			if t, ok := special(v.Interface()); ok {
				return t, len(t)
			}
		}
		return plain(v.Elem())
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, 4
		}
		if v.Kind() == reflect.Float32 {
			// As few digits as tell it from its neighbours.
			f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, 32), 64)
		}
		return f, 12
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n := v.Int(); n <= exact && n >= -exact {
			return n, 12
		}
		return strconv.FormatInt(v.Int(), 10), 20
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if n := v.Uint(); n <= exact {
			return n, 12
		}
		return strconv.FormatUint(v.Uint(), 10), 20
	case reflect.Bool:
		return v.Bool(), 5
	case reflect.String:
		return v.String(), v.Len()
	case reflect.Slice, reflect.Array:
		if t, ok := special(v.Interface()); ok {
			return t, len(t)
		}
		list, bytes := make([]any, v.Len()), 2
		for i := range list {
			var size int
			list[i], size = plain(v.Index(i))
			bytes += size
		}
		return list, bytes
	case reflect.Map:
		object, bytes := map[string]any{}, 2
		for it := v.MapRange(); it.Next(); {
			value, size := plain(it.Value())
			key := fmt.Sprint(it.Key().Interface())
			object[key] = value
			bytes += size + len(key)
		}
		return object, bytes
	}
	if t, ok := special(v.Interface()); ok {
		return t, len(t)
	}
	text := fmt.Sprint(v.Interface())
	return text, len(text)
}

// special are values whose own words are better than their parts.
func special(v any) (string, bool) {
	switch v := v.(type) {
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.000000Z"), true
	case []byte:
		return string(v), true
	case fmt.Stringer:
		return v.String(), true
	case encoding.TextMarshaler:
		b, err := v.MarshalText()
		return string(b), err == nil
	}
	return "", false
}
