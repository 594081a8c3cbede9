package codec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// SchemaVersion is the version of the contracts written by this build. It rises
// when an older reader would misread a newer record; adding fields does not raise it.
const SchemaVersion = 1

// The headers of every record.
const (
	HeaderType   = "sluice-type"
	HeaderSchema = "sluice-schema"
	HeaderOrigin = "sluice-origin"
)

var (
	// ErrUndecodable: the type is not said or unknown, or the value is not the message
	// it says.
	ErrUndecodable = errors.New("undecodable record")
	// ErrNewerSchema: the record was written by a version this one cannot read.
	ErrNewerSchema = errors.New("record of a newer schema")
	// ErrInvalid: the message breaks a rule of Validate.
	ErrInvalid = errors.New("invalid record")
)

// Record is a Kafka record without a place in a log.
type Record struct {
	Key     []byte
	Value   []byte
	Headers []Header
}

// Type is what the type header says, "" without one.
func (r Record) Type() string {
	name, _ := header(r.Headers, HeaderType)
	return string(name)
}

// Header is one record header.
type Header struct {
	Key   string
	Value []byte
}

// TypeName is the value of the type header for a message: its name in the proto
// package, "CodeCall".
func TypeName(m proto.Message) string { return string(m.ProtoReflect().Descriptor().Name()) }

// New returns an empty message of a type that records may carry, nil if there is none
// of that name.
func New(typeName string) proto.Message {
	switch typeName {
	case "Prompt":
		return &sluicev1.Prompt{}
	case "CodeCall":
		return &sluicev1.CodeCall{}
	case "CodeResult":
		return &sluicev1.CodeResult{}
	case "Trajectory":
		return &sluicev1.Trajectory{}
	case "Scored":
		return &sluicev1.Scored{}
	case "GroupMember":
		return &sluicev1.GroupMember{}
	case "GroupClosed":
		return &sluicev1.GroupClosed{}
	case "StepBatch":
		return &sluicev1.StepBatch{}
	case "MicroBatch":
		return &sluicev1.MicroBatch{}
	case "PolicyUpdate":
		return &sluicev1.PolicyUpdate{}
	case "TrainerReport":
		return &sluicev1.TrainerReport{}
	case "TrainerAnnotation":
		return &sluicev1.TrainerAnnotation{}
	case "DeadLetter":
		return &sluicev1.DeadLetter{}
	case "StageStatus":
		return &sluicev1.StageStatus{}
	case "Run":
		return &sluicev1.Run{}
	case "RunFed":
		return &sluicev1.RunFed{}
	case "RunStop":
		return &sluicev1.RunStop{}
	case "CloseRequest":
		return &sluicev1.CloseRequest{}
	}
	return nil
}

// Encode validates a message and makes its record. The same message gives the same
// bytes.
func Encode(m proto.Message) (Record, error) {
	name := TypeName(m)
	if err := Validate(m); err != nil {
		return Record{}, fmt.Errorf("encode %s: %w", name, err)
	}
	return Rebuild(m, SchemaVersion)
}

// Rebuild makes the record of a message that was recorded before, under the schema
// version that its header said. It does not validate: rules may have become stricter
// since, and Decode has the last word.
func Rebuild(m proto.Message, schema int) (Record, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	name := TypeName(m)
	if err != nil {
		// A text that is no UTF-8.
		return Record{}, fmt.Errorf("encode %s: %w: %w", name, ErrInvalid, plainSpaces{err})
	}
	rec := Record{
		Key:   []byte(Key(m)),
		Value: value,
		Headers: []Header{
			{HeaderType, []byte(name)},
			{HeaderSchema, []byte(strconv.Itoa(schema))},
		},
	}
	if o := OriginOf(m); o != nil {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(o)
		if err != nil {
			return Record{}, fmt.Errorf("encode origin of %s: %w", name, err)
		}
		rec.Headers = append(rec.Headers, Header{HeaderOrigin, b})
	}
	return rec, nil
}

// Decode reads a record and validates the message in it. carried are the types that the
// record's topic carries: where it is one, a record need not say its type.
func Decode(rec Record, carried ...string) (proto.Message, error) {
	name, ok := header(rec.Headers, HeaderType)
	switch {
	case !ok && len(carried) == 1:
		name = []byte(carried[0])
	case !ok && len(carried) > 1:
		return nil, fmt.Errorf("%w: no header %s, and the topic carries %s: it must say which of them it is", ErrUndecodable, HeaderType, strings.Join(carried, ", "))
	case !ok:
		return nil, fmt.Errorf("%w: no header %s: was it written by something other than Sluice?", ErrUndecodable, HeaderType)
	}
	if err := checkSchema(rec.Headers); err != nil {
		return nil, fmt.Errorf("%s: %w", printable(name), err)
	}
	m := New(string(name))
	if m == nil {
		return nil, fmt.Errorf("%w: header %s says %s, which is no record type of this version", ErrUndecodable, HeaderType, printable(name))
	}
	if err := proto.Unmarshal(rec.Value, m); err != nil {
		return nil, fmt.Errorf("%w: %s of %d bytes: %w", ErrUndecodable, name, len(rec.Value), plainSpaces{err})
	}
	if err := Validate(m); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

func checkSchema(hs []Header) error {
	v, ok := header(hs, HeaderSchema)
	if !ok {
		return nil // the first version
	}
	n, err := strconv.Atoi(string(v))
	if err != nil || n < 1 {
		return fmt.Errorf("%w: header %s is %s, want a number from 1", ErrUndecodable, HeaderSchema, printable(v))
	}
	if n > SchemaVersion {
		return fmt.Errorf("%w: schema %d, this build reads up to %d: upgrade it before the stages that write to it", ErrNewerSchema, n, SchemaVersion)
	}
	return nil
}

// Origin reads the origin header, which is there even where the value is broken.
// ok is false where it is absent or unreadable.
func Origin(hs []Header) (o *sluicev1.Origin, ok bool) {
	b, ok := header(hs, HeaderOrigin)
	if !ok {
		return nil, false
	}
	o = &sluicev1.Origin{}
	if proto.Unmarshal(b, o) != nil || checkGroup(o.GetGroup()) != nil {
		return nil, false
	}
	return o, true
}

// plainSpaces is an error of the protobuf library, which varies its own text between
// builds by a non-breaking space, with the spaces that people search for.
type plainSpaces struct{ error }

func (e plainSpaces) Error() string { return strings.ReplaceAll(e.error.Error(), "\u00a0", " ") }
func (e plainSpaces) Unwrap() error { return e.error }

func header(hs []Header, key string) ([]byte, bool) {
	for _, h := range hs {
		if h.Key == key {
			return h.Value, true
		}
	}
	return nil, false
}

// printable quotes hostile bytes for an error message, at most 60 of them.
func printable(b []byte) string {
	if len(b) > 60 {
		return strconv.QuoteToASCII(string(b[:60])) + "..."
	}
	return strconv.QuoteToASCII(string(b))
}

// ErrorType is the short class of an error for dead letters, metrics and SQL.
func ErrorType(err error) string {
	switch {
	case errors.Is(err, ErrNewerSchema):
		return "newer_schema"
	case errors.Is(err, ErrUndecodable):
		return "undecodable"
	case errors.Is(err, ErrInvalid):
		return "invalid"
	}
	return "failed"
}
