package kafka

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A transaction is not ended while the client does not know what it wrote to: it would
// be aborted without an error.
func TestATransactionEndsWhenItsTopicsAreKnown(t *testing.T) {
	inWorld(t, func(w *world) {
		cl, err := NewClient(w.cluster(), "test", "transactional", kgo.TransactionalID("test"))
		if err != nil {
			w.t.Fatal(err)
		}
		defer cl.Close()
		if err := cl.BeginTransaction(); err != nil {
			w.t.Fatal(err)
		}
		cl.Produce(w.t.Context(), &kgo.Record{Topic: "scored", Value: []byte("x")}, nil)
		if err := FlushTransaction(w.t.Context(), cl, map[string]bool{"scored": true}); err != nil {
			w.t.Errorf("after writing to scored: %v", err)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		if err := FlushTransaction(ctx, cl, map[string]bool{"grouped": true}); !errors.Is(err, context.DeadlineExceeded) {
			w.t.Errorf("with a topic that the client has not heard of: %v, want the context's end", err)
		}
		if err := cl.EndTransaction(w.t.Context(), kgo.TryCommit); err != nil {
			w.t.Error(err)
		}
	})
}
