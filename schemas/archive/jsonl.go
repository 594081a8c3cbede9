package archive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
)

// line is one row of JSON lines.
type line struct {
	Format    int             `json:"archive_format,omitempty"`
	Topic     string          `json:"topic,omitempty"`
	Partition int32           `json:"partition"`
	Offset    int64           `json:"offset"`
	Time      time.Time       `json:"time"`
	Type      string          `json:"type,omitempty"`
	Schema    int             `json:"schema,omitempty"`
	Message   json.RawMessage `json:"message,omitempty"`
	Raw       *rawRecord      `json:"raw,omitempty"`
}

type rawRecord struct {
	Key     []byte      `json:"key"`
	Headers []rawHeader `json:"headers"`
	Value   []byte      `json:"value"`
}

type rawHeader struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// JSONHeader is the first line of a file.
func JSONHeader() []byte { return fmt.Appendf(nil, "{\"archive_format\":%d}\n", Format) }

// JSONBody is the part of a record's row that does not depend on where it lies. Equal
// records give equal bytes.
func JSONBody(r codec.Record) ([]byte, error) {
	name, schema := said(r)
	if m := readable(r, name, schema); m != nil {
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("%s as JSON: %w", name, err)
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, `"type":%q,"schema":%d,"message":`, name, schema)
		// protojson puts in spaces that differ from build to build.
		if err := json.Compact(&b, text); err != nil {
			return nil, fmt.Errorf("%s as JSON: %w", name, err)
		}
		return b.Bytes(), nil
	}
	raw := rawRecord{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		raw.Headers = append(raw.Headers, rawHeader{h.Key, h.Value})
	}
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	return append([]byte(`"raw":`), text...), nil
}

// said is what a record's headers say it is.
func said(r codec.Record) (name string, schema int) {
	for _, h := range r.Headers {
		switch h.Key {
		case codec.HeaderType:
			name = string(h.Value)
		case codec.HeaderSchema:
			schema, _ = strconv.Atoi(string(h.Value))
		}
	}
	return name, schema
}

// readable decodes a record whose message, in the fields that this version knows, says
// all of it: it is nil otherwise.
func readable(r codec.Record, name string, schema int) proto.Message {
	m := codec.New(name)
	if m == nil || schema < 1 {
		return nil
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(r.Value, m); err != nil {
		return nil
	}
	again, err := codec.Rebuild(m, schema)
	if err != nil || !sameRecord(r, again) {
		return nil
	}
	return m
}

func sameRecord(a, b codec.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(x, y codec.Header) bool {
			return x.Key == y.Key && bytes.Equal(x.Value, y.Value)
		})
}

// AppendJSON appends a row, made of where the record lies and its JSONBody.
func AppendJSON(dst []byte, r Record, body []byte) []byte {
	dst = append(dst, `{"topic":`...)
	dst = strconv.AppendQuote(dst, r.Topic) // topic names are plain ASCII
	dst = fmt.Appendf(dst, `,"partition":%d,"offset":%d,"time":"`, r.Partition, r.Offset)
	dst = r.Time.UTC().Truncate(time.Millisecond).AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `",`...)
	dst = append(dst, body...)
	return append(dst, '}', '\n')
}

// maxLine bounds a row: a record of 8 MiB as base64 or numbers in decimal.
const maxLine = 128 << 20

// parseLine reads one row; ok is false for a header and for what is not wanted.
func parseLine(text []byte, want func(topic, kind string) bool) (r Record, ok bool, err error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return r, false, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	switch {
	case l.Format > Format:
		return r, false, fmt.Errorf("%w: format %d, this build reads up to %d: upgrade it", ErrNewerFormat, l.Format, Format)
	case l.Format > 0 && l.Topic == "":
		return r, false, nil
	case l.Topic == "" || (l.Raw == nil) == (l.Message == nil):
		return r, false, fmt.Errorf("%w: want topic and either message or raw", ErrUnreadable)
	}
	r = Record{Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Time: l.Time.UTC()}
	if l.Raw != nil {
		r.Key, r.Value = l.Raw.Key, l.Raw.Value
		for _, h := range l.Raw.Headers {
			r.Headers = append(r.Headers, codec.Header{Key: h.Key, Value: h.Value})
		}
		return r, want(r.Topic, r.Type()), nil
	}
	if !want(l.Topic, l.Type) {
		return r, false, nil
	}
	m := codec.New(l.Type)
	if m == nil || l.Schema < 1 {
		return r, false, fmt.Errorf("%w: type %.60q with schema %d is no record of this version", ErrUnreadable, l.Type, l.Schema)
	}
	if err := protojson.Unmarshal(l.Message, m); err != nil {
		return r, false, fmt.Errorf("%w: %s: %w", ErrUnreadable, l.Type, err)
	}
	if r.Record, err = codec.Rebuild(m, l.Schema); err != nil {
		return r, false, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return r, true, nil
}

// jsonWriter writes one file of JSON lines.
type jsonWriter struct{ w *bufio.Writer }

func newJSONWriter(w io.Writer) (*jsonWriter, error) {
	j := &jsonWriter{bufio.NewWriterSize(w, 1<<20)}
	_, err := j.w.Write(JSONHeader())
	return j, err
}

func (j *jsonWriter) Write(r Record) error {
	body, err := JSONBody(r.Record)
	if err != nil {
		return err
	}
	_, err = j.w.Write(AppendJSON(nil, r, body))
	return err
}

func (j *jsonWriter) Close() error { return j.w.Flush() }
