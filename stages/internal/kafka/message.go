package kafka

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
)

// Message is a record read from a topic and decoded.
type Message struct {
	// Topic is the name without the namespace.
	Topic     string
	Partition int32
	Offset    int64
	Key       string
	Body      proto.Message
	// Attempt counts from 1: how often work on the record has begun, this time included.
	// Without a share group it counts what Requeue said, and no deaths.
	Attempt int32
	// Time is when the record was written, as its writer or broker says.
	Time time.Time
}

// Output is a message to write. The runner encodes it, refuses what the codec
// refuses and what is larger than the topology's max_message_bytes.
type Output struct {
	// Topic is the name without the namespace.
	Topic string
	Body  proto.Message
	// RoundRobin spreads records over partitions; otherwise the key decides, as
	// Kafka's own partitioner has it (murmur2).
	RoundRobin bool
}

// Handler is the work of a worker stage: plan, perform, apply in one call.
//
// An error is taken for trouble with infrastructure and retried in place, with
// backoff, while the record is held; wrap it with Reject to give the record up, or with
// Requeue to give it back.
// Handle is called from many goroutines at once and may be called again for a record
// it has seen.
type Handler interface {
	Handle(ctx context.Context, m Message) ([]Output, error)
}

// HandlerFunc makes a Handler of a function.
type HandlerFunc func(ctx context.Context, m Message) ([]Output, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, m Message) ([]Output, error) { return f(ctx, m) }
