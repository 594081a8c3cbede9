package template

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ardanlabs/jinja"
)

// The library prints numbers and None as Go would. Python's way is what a model was
// trained on, so the two filters that print values are ours: a template's own use of them
// is renamed before it is compiled.
const (
	jsonFilter   = "python_json"
	stringFilter = "python_str"
)

var (
	codeOfTemplate = regexp.MustCompile(`(?s)\{\{.*?\}\}|\{%.*?%\}`)
	printFilter    = regexp.MustCompile(`(\|\s*)(tojson|string)\b`)
)

func withOurFilters(source string) string {
	return codeOfTemplate.ReplaceAllStringFunc(source, func(code string) string {
		return printFilter.ReplaceAllStringFunc(code, func(use string) string {
			if strings.HasSuffix(use, "tojson") {
				return strings.TrimSuffix(use, "tojson") + jsonFilter
			}
			return strings.TrimSuffix(use, "string") + stringFilter
		})
	})
}

// largeInteger carries an integer beyond 64 bits, which the library has no kind for.
func largeInteger(digits string) jinja.Value { return jinja.NewCallable(digits, nil) }

// pythonFloat is repr of a float.
func pythonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// dump is json.dumps(value, ensure_ascii=False) with its options.
type dump struct {
	b                     strings.Builder
	itemSep, keySep       string
	indent                string
	indented, sortingKeys bool
}

func pythonJSON(args []jinja.Value, options map[string]jinja.Value) (jinja.Value, error) {
	if len(args) == 0 {
		return jinja.Undefined(), fmt.Errorf("tojson without a value")
	}
	d := dump{itemSep: ", ", keySep: ": "}
	for name, v := range options {
		switch {
		case v.IsNone() || v.IsUndefined() || name == "ensure_ascii" && !v.IsTruthy():
		case name == "indent" && v.IsInt():
			d.indented, d.indent, d.itemSep = true, strings.Repeat(" ", int(min(v.AsInt(), 32))), ","
		case name == "separators" && v.IsList() && v.AsList().Len() == 2:
			d.itemSep, d.keySep = pythonString(v.AsList().Get(0)), pythonString(v.AsList().Get(1))
		case name == "sort_keys":
			d.sortingKeys = v.IsTruthy()
		default:
			return jinja.Undefined(), fmt.Errorf("tojson(%s=%s) is not known here", name, v)
		}
	}
	err := d.write(args[0], "\n")
	return jinja.NewString(d.b.String()), err
}

func (d *dump) write(v jinja.Value, line string) error {
	switch {
	case v.IsNone():
		d.b.WriteString("null")
	case v.IsBool():
		d.b.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsInt():
		d.b.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		d.b.WriteString(pythonFloat(v.AsFloat()))
	case v.IsString():
		d.text(v.AsString())
	case v.IsCallable() && v.AsCallable().Fn == nil:
		d.b.WriteString(v.AsCallable().Name)
	case v.IsList():
		return d.each('[', ']', v.AsList().Len(), line, func(i int, line string) error {
			return d.write(v.AsList().Get(i), line)
		})
	case v.IsDict():
		keys := v.AsDict().OrderedKeys()
		if d.sortingKeys {
			keys = slices.Sorted(slices.Values(keys))
		}
		return d.each('{', '}', len(keys), line, func(i int, line string) error {
			d.text(keys[i])
			d.b.WriteString(d.keySep)
			item, _ := v.AsDict().Get(keys[i])
			return d.write(item, line)
		})
	default:
		return fmt.Errorf("tojson of %s: it is no JSON value", v)
	}
	return nil
}

func (d *dump) each(open, end byte, n int, line string, item func(i int, line string) error) error {
	d.b.WriteByte(open)
	inner := line + d.indent
	for i := range n {
		if i > 0 {
			d.b.WriteString(d.itemSep)
		}
		if d.indented {
			d.b.WriteString(inner)
		}
		if err := item(i, inner); err != nil {
			return err
		}
	}
	if d.indented && n > 0 {
		d.b.WriteString(line)
	}
	d.b.WriteByte(end)
	return nil
}

var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

func (d *dump) text(s string) {
	d.b.WriteByte('"')
	for _, r := range s {
		switch escape, ok := jsonEscapes[r]; {
		case ok:
			d.b.WriteString(escape)
		case r < 0x20:
			fmt.Fprintf(&d.b, `\u%04x`, r)
		default:
			d.b.WriteRune(r)
		}
	}
	d.b.WriteByte('"')
}

func pythonStr(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	if len(args) == 0 {
		return jinja.Undefined(), fmt.Errorf("string without a value")
	}
	return jinja.NewString(pythonString(args[0])), nil
}

// pythonString is str(value).
func pythonString(v jinja.Value) string {
	switch {
	case v.IsString():
		return v.AsString()
	case v.IsUndefined():
		return ""
	}
	return pythonRepr(v)
}

// pythonRepr is repr(value).
func pythonRepr(v jinja.Value) string {
	switch {
	case v.IsString():
		return quoted(v.AsString())
	case v.IsFloat():
		switch s := pythonFloat(v.AsFloat()); s {
		case "NaN":
			return "nan"
		case "Infinity":
			return "inf"
		case "-Infinity":
			return "-inf"
		default:
			return s
		}
	case v.IsCallable() && v.AsCallable().Fn == nil:
		return v.AsCallable().Name
	case v.IsList():
		parts := make([]string, v.AsList().Len())
		for i := range parts {
			parts[i] = pythonRepr(v.AsList().Get(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case v.IsDict():
		var parts []string
		for _, key := range v.AsDict().OrderedKeys() {
			item, _ := v.AsDict().Get(key)
			parts = append(parts, quoted(key)+": "+pythonRepr(item))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return v.String()
}

// quoted is repr of a string: in single quotes, unless that alone would need escapes.
func quoted(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n', r == '\r', r == '\t':
			b.WriteString(jsonEscapes[r])
		case r < 0x20 || r == 0x7F || r < 0x100 && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

// builtins is what every template is given besides the conversation.
func builtins(variables map[string]string) map[string]jinja.Value {
	data := map[string]jinja.Value{
		jsonFilter:   jinja.NewCallable(jsonFilter, pythonJSON),
		stringFilter: jinja.NewCallable(stringFilter, pythonStr),
		"documents":  jinja.None(),
		// Templates that date their prompt have a fixed date for where there is no clock.
		"strftime_now": jinja.Undefined(),
	}
	for name, text := range variables {
		data[name] = jinja.NewString(text)
	}
	return data
}
