package wirejson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// types are what archives hold most of; TrainerReport has a map, which is not plain.
var types = []proto.Message{
	&sluicev1.Scored{}, &sluicev1.Trajectory{}, &sluicev1.GroupMember{}, &sluicev1.GroupClosed{}, &sluicev1.StepBatch{},
	&sluicev1.MicroBatch{}, &sluicev1.Prompt{}, &sluicev1.CodeCall{}, &sluicev1.CodeResult{}, &sluicev1.PolicyUpdate{}, &sluicev1.DeadLetter{},
}

// library is what protobuf's own encoders make of a message.
func library(t interface{ Fatal(...any) }, m proto.Message) (wire, text []byte) {
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	spaced, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, spaced); err != nil {
		t.Fatal(err)
	}
	return wire, b.Bytes()
}

// Every message that can be goes from one form into the other as the library does it.
func TestBothFormsAreTheLibrarys(t *testing.T) {
	for _, empty := range types {
		shape := Of(empty.ProtoReflect().Descriptor())
		if !shape.plain {
			t.Errorf("%T is not plain", empty)
		}
		rapid.Check(t, func(t *rapid.T) {
			m := empty.ProtoReflect().New()
			fill(t, m, 0)
			wire, text := library(t, m.Interface())
			got, ok := shape.AppendJSON([]byte("before"), wire)
			if !ok || string(got) != "before"+string(text) {
				t.Fatalf("JSON %v\n%s, want\n%s", ok, got, text)
			}
			got, rest, ok := shape.AppendWire([]byte("before"), append(text, "after"...))
			if !ok || string(rest) != "after" || string(got) != "before"+string(wire) {
				t.Fatalf("encoded %v\n%q, rest %q, want\n%q of %s", ok, got, rest, wire, text)
			}
		})
	}
}

// fill sets fields at random, with the values where forms differ most.
func fill(t *rapid.T, m protoreflect.Message, depth int) {
	if ts, ok := m.Interface().(*timestamppb.Timestamp); ok {
		ts.Seconds = rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds")
		ts.Nanos = rapid.SampledFrom([]int32{0, 1, 999_000_000, 1000, 120_000, 999_999_999}).Draw(t, "nanos")
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if depth > 3 || rapid.IntRange(0, 3).Draw(t, "set") == 0 {
			continue
		}
		if !f.IsList() {
			if f.Kind() == protoreflect.MessageKind {
				fill(t, m.Mutable(f).Message(), depth+1)
			} else {
				m.Set(f, value(t, f))
			}
			continue
		}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			if l := m.Mutable(f).List(); f.Kind() == protoreflect.MessageKind {
				fill(t, l.AppendMutable().Message(), depth+1)
			} else {
				l.Append(value(t, f))
			}
		}
	}
}

func value(t *rapid.T, f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOf(rapid.Bool().Draw(t, "bool"))
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return protoreflect.ValueOf(values.Get(rapid.IntRange(0, values.Len()-1).Draw(t, "enum")).Number())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOf(rapid.Int32().Draw(t, "int32"))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOf(rapid.Int64().Draw(t, "int64"))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOf(rapid.Uint32().Draw(t, "uint32"))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOf(rapid.OneOf(rapid.Uint64(), rapid.Just(uint64(math.MaxUint64))).Draw(t, "uint64"))
	case protoreflect.FloatKind:
		v := math.Float32frombits(rapid.Uint32().Draw(t, "float"))
		if v != v || math.IsInf(float64(v), 0) {
			v = float32(math.Copysign(0, -1))
		}
		return protoreflect.ValueOf(v)
	case protoreflect.DoubleKind:
		v := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{1e-6, 1e-7, 1e21, 1e20, math.Copysign(0, -1), 0.1})).Draw(t, "double")
		return protoreflect.ValueOf(v)
	case protoreflect.BytesKind:
		return protoreflect.ValueOf(rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "bytes"))
	}
	const hard = "\"\\\b\f\n\r\t\x00\x1f\x7f/<>&\u2028\uFFFDé√😀abcdefgh"
	return protoreflect.ValueOf(rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune(hard)), 0, 40, -1)).Draw(t, "string"))
}

// What is unusual or broken is left to the library.
func TestWhatIsNotPlain(t *testing.T) {
	shape := Of((&sluicev1.Scored{}).ProtoReflect().Descriptor())
	for name, wire := range map[string]string{
		"default written":       "\x10\x00",
		"fields not by number":  "\x28\x01\x10\x01",
		"a field twice":         "\x10\x01\x10\x01",
		"unknown field":         "\xf8\x07\x01",
		"long varint":           "\x10\x81\x00",
		"long length":           "\x1a\x81\x00a",
		"no UTF-8":              "\x1a\x01\xff",
		"another wire type":     "\x12\x01a",
		"cut":                   "\x1a\x05a",
		"not a number":          "\x21\x00\x00\x00\x00\x00\x00\xf8\x7f",
		"nanoseconds too many":  "\x52\x06\x10\x80\x94\xeb\xdc\x03",
		"tokens one by one":     "\x0a\x02\x20\x01",
		"no tokens, packed":     "\x0a\x02\x22\x00",
		"token over 32 bits":    "\x0a\x08\x22\x06\x80\x80\x80\x80\x80\x01",
		"unknown end reason":    "\x0a\x02\x30\x63",
		"bool of two":           "\x10\x02",
		"group":                 "\x13\x14",
		"tag longer than needs": "\x90\x00\x01",
	} {
		if got, ok := shape.AppendJSON(nil, []byte(wire)); ok {
			t.Errorf("encoded with %s became %s", name, got)
		}
	}
	for name, text := range map[string]string{
		"a space":              `{ "graded":true}`,
		"null":                 `{"graded":null}`,
		"camel case":           `{"validFormat":true}`,
		"unknown field":        `{"grade":true}`,
		"fields not in order":  `{"correct":true,"graded":true}`,
		"a field twice":        `{"graded":true,"graded":true}`,
		"an empty list":        `{"scores":[]}`,
		"exponent for tokens":  `{"trajectory":{"prompt_tokens":[1e1]}}`,
		"negative token":       `{"trajectory":{"prompt_tokens":[-1]}}`,
		"token over 32 bits":   `{"trajectory":{"prompt_tokens":[4294967296]}}`,
		"leading zero":         `{"trajectory":{"prompt_tokens":[01]}}`,
		"trailing comma":       `{"graded":true,}`,
		"number as text":       `{"reward":"1"}`,
		"NaN":                  `{"reward":"NaN"}`,
		"too large":            `{"reward":1e999}`,
		"point without digits": `{"reward":1.}`,
		"64 bits as number":    `{"trajectory":{"copy":5}}`,
		"over 64 bits":         `{"trajectory":{"copy":"18446744073709551616"}}`,
		"enum as number":       `{"trajectory":{"end_reason":1}}`,
		"unicode escape":       `{"answer":"\u00e9"}`,
		"raw control":          "{\"answer\":\"\n\"}",
		"no UTF-8":             "{\"answer\":\"\xff\"}",
		"time with offset":     `{"scored_at":"2026-11-01T12:00:00+01:00"}`,
		"no time":              `{"scored_at":"2026-13-01T12:00:00Z"}`,
		"cut":                  `{"graded":true`,
		"cut text":             `{"answer":"a`,
		"empty":                ``,
	} {
		if got, _, ok := shape.AppendWire(nil, []byte(text)); ok {
			t.Errorf("JSON with %s became %q", name, got)
		}
	}
	if report := Of((&sluicev1.TrainerReport{}).ProtoReflect().Descriptor()); report.plain {
		t.Error("a message with a map is plain")
	}
}

// Where a form is taken at all, it is taken as the library takes it.
func FuzzWire(f *testing.F) {
	f.Add([]byte("\x10\x01"))
	f.Add([]byte("\x0a\x08\x22\x06\x80\x80\x80\x80\x80\x01\x52\x02\x08\x05"))
	shape := Of((&sluicev1.Scored{}).ProtoReflect().Descriptor())
	f.Fuzz(func(t *testing.T, wire []byte) {
		got, ok := shape.AppendJSON(nil, wire)
		if !ok {
			return
		}
		m := &sluicev1.Scored{}
		if err := proto.Unmarshal(wire, m); err != nil {
			t.Fatalf("taken, but %v", err)
		}
		if again, text := library(t, m); !bytes.Equal(wire, again) || string(text) != string(got) {
			t.Fatalf("%q became\n%s, want\n%s, and is encoded as %q", wire, got, text, again)
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"trajectory":{"prompt_tokens":[1,2],"turns":[{"logprobs":[-0.1,1e-9],"text":"a\n\u001f"}]},"scored_at":"2026-11-01T12:00:00.5Z"}`))
	f.Add([]byte(`{"reward":-0,"scores":[{}]}`))
	shape := Of((&sluicev1.Scored{}).ProtoReflect().Descriptor())
	f.Fuzz(func(t *testing.T, text []byte) {
		got, rest, ok := shape.AppendWire(nil, text)
		if !ok || len(rest) > 0 {
			return
		}
		m := &sluicev1.Scored{}
		if err := protojson.Unmarshal(text, m); err != nil {
			t.Fatalf("taken, but %v", err)
		}
		if wire, _ := library(t, m); !bytes.Equal(wire, got) {
			t.Fatalf("%s became %q, want %q", text, got, wire)
		}
	})
}

// Numbers are read as strconv reads them, however they are written.
func TestFloats(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, text string) {
		for _, bits := range []int{32, 64} {
			want, err := strconv.ParseFloat(text, bits)
			got, rest, ok := float([]byte(text+","), bits)
			if ok != (err == nil) || ok && (math.Float64bits(got) != math.Float64bits(want) || string(rest) != ",") {
				t.Fatalf("%s with %d bits is %v %v, rest %q, want %v %v", text, bits, got, ok, rest, want, err)
			}
		}
	}
	for _, text := range []string{
		"0", "-0", "0.0", "-0.000000000000000000000001", "1.00000005960464477539062", "1.000000059604644775390625", "16777217", "16777219",
		"0.1", "-0.12345678", "9007199254740993", "9007199254740992.5", "18446744073709551616", "123456789012345678901234567890", "1e-45", "1e39", "3.4028236e38",
	} {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := math.Float32frombits(rapid.Uint32().Draw(t, "float32"))
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return
		}
		for _, format := range []string{"%v", "%.3f", "%.9f", "%.20f", "%e"} {
			text := fmt.Sprintf(format, v)
			check(t, text)
		}
		// Just between two floats of 32 bits, and beside it.
		next := math.Nextafter32(v, math.MaxFloat32)
		between := (float64(v) + float64(next)) / 2
		for _, d := range []float64{between, math.Nextafter(between, 0), math.Nextafter(between, 1)} {
			if text := strconv.FormatFloat(d, 'f', -1, 64); !math.IsInf(d, 0) {
				check(t, text)
			}
		}
	})
}

// BenchmarkForms turns a score of a few hundred tokens into JSON and back.
func BenchmarkForms(b *testing.B) {
	turn := &sluicev1.Turn{Text: strings.Repeat("so it goes, ", 100), Kind: sluicev1.TurnKind_TURN_KIND_ANSWER}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		turn.Tokens = append(turn.Tokens, rng.Uint32N(150_000))
		turn.Logprobs = append(turn.Logprobs, -rng.Float32())
		turn.PolicyVersions = append(turn.PolicyVersions, 3)
	}
	m := &sluicev1.Scored{Trajectory: &sluicev1.Trajectory{Turns: []*sluicev1.Turn{turn}, FinalText: turn.Text}, Graded: true}
	wire, text := library(b, m)
	shape := Of(m.ProtoReflect().Descriptor())
	buffer := make([]byte, 0, 2*len(text))
	b.Run("to JSON", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, ok := shape.AppendJSON(buffer, wire); !ok {
				b.Fatal("not plain")
			}
		}
	})
	b.Run("from JSON", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, _, ok := shape.AppendWire(buffer, text); !ok {
				b.Fatal("not plain")
			}
		}
	})
	b.Run("to JSON by protojson", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			library(b, m)
		}
	})
	b.Run("from JSON by protojson", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if err := protojson.Unmarshal(text, m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
