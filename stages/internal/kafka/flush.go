package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// FlushTransaction waits until the brokers have what a client wrote to these topics
// (with namespace) in its transaction, and until the client may end it.
//
// The client writes what waited for a topic's metadata before it keeps that metadata. If
// the brokers answer in between, a transaction that is ended then finds no partition that
// it wrote to: it is aborted instead of committed, and no error says so (kgo 1.22).
// PartitionLeader looks where the end of a transaction looks.
func FlushTransaction(ctx context.Context, cl *kgo.Client, topics map[string]bool) error {
	if err := cl.Flush(ctx); err != nil {
		return fmt.Errorf("outputs are not acknowledged: %w", err)
	}
	for topic := range topics {
		for {
			leader, _, err := cl.PartitionLeader(topic, 0)
			if leader >= 0 || err != nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the client does not know the partitions of %s: %w", topic, ctx.Err())
			case <-time.After(time.Millisecond):
			}
		}
	}
	return nil
}
