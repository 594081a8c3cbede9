package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/codec"
)

// batchOverhead bounds what a batch and a record add to the bytes we count.
const batchOverhead = 512

// encode makes the record of an output. Its error is final for what caused the
// output: it wraps ErrTooLarge or codec.ErrInvalid.
func (c ClusterConfig) encode(o Output) (*kgo.Record, error) {
	if _, ok := c.Topology.Topics[o.Topic]; !ok {
		return nil, fmt.Errorf("%w: output to %q, which is not in the topology", ErrConfig, o.Topic)
	}
	rec, err := codec.Encode(o.Body)
	if err != nil {
		return nil, err
	}
	r := &kgo.Record{Topic: c.name(o.Topic), Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	if size, limit := recordBytes(r), int(c.Topology.MaxMessageBytes); size > limit {
		return nil, fmt.Errorf("%w: %s for %s takes %d bytes, the limit is %d (max_message_bytes of the topology)",
			ErrTooLarge, codec.TypeName(o.Body), o.Topic, size, limit)
	}
	if o.RoundRobin {
		spread(r)
	}
	return r, nil
}

func (c ClusterConfig) encodeAll(outputs []Output) ([]*kgo.Record, error) {
	records := make([]*kgo.Record, len(outputs))
	for i, o := range outputs {
		r, err := c.encode(o)
		if err != nil {
			return nil, err
		}
		records[i] = r
	}
	return records, nil
}

// recordBytes is what a record takes in a batch of its own, at most.
func recordBytes(r *kgo.Record) int {
	n := batchOverhead + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value) + 10
	}
	return n
}

// Decode reads a record that a client of this cluster polled. Its error is
// codec.Decode's.
func Decode(c ClusterConfig, r *kgo.Record) (Message, error) {
	m := Message{
		Topic: c.short(r.Topic), Partition: r.Partition, Offset: r.Offset,
		Key: string(r.Key), Attempt: 1, Time: r.Timestamp,
	}
	var err error
	m.Body, err = codec.Decode(codec.Record{Key: r.Key, Value: r.Value, Headers: headers(r)}, c.Topology.Topics[m.Topic].Records...)
	return m, err
}

func headers(r *kgo.Record) []codec.Header {
	hs := make([]codec.Header, len(r.Headers))
	for i, h := range r.Headers {
		hs[i] = codec.Header{Key: h.Key, Value: h.Value}
	}
	return hs
}

// errorTypeOf is the class under which a final error goes to dead-letters.
func errorTypeOf(err error) string {
	var r *rejection
	switch {
	case errors.As(err, &r) && r.errorType != "":
		return r.errorType
	case errors.Is(err, ErrTooLarge):
		return "too_large"
	}
	return codec.ErrorType(err)
}

// final reports whether an error says that a record can never be handled.
func final(err error) bool {
	var r *rejection
	return errors.As(err, &r) || errors.Is(err, ErrTooLarge) || errors.Is(err, codec.ErrInvalid) ||
		errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}
