package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/codec"
)

// Exclusive writes in transactions under a name that one process holds at a time: who
// claims it last has it, and what the one before still writes fails with ErrFenced.
type Exclusive struct {
	cluster ClusterConfig
	client  *kgo.Client
	state   *state
	cancel  context.CancelFunc
}

// exclusiveTimeout is after what time the brokers abort a transaction whose process is
// gone.
const exclusiveTimeout = time.Minute

// Claim takes the name, which completes or aborts what its holder before had begun. It
// waits for absent brokers, until ctx ends.
func Claim(ctx context.Context, cluster ClusterConfig, stage, name string) (*Exclusive, error) {
	var wait backoff
	for said := false; ; said = true {
		e, err := claim(ctx, cluster, stage, name)
		if err == nil || errors.Is(err, ErrConfig) {
			return e, err
		}
		if !said {
			cluster.log().Warn("cannot claim the right to write yet: trying again", "name", name, "error", err)
			cluster.Status.Failed("retried", err)
		}
		if !wait.wait(ctx, nil) {
			return nil, ctx.Err()
		}
	}
}

// claim tries once, with a client of its own: one that was refused an id does not recover.
func claim(ctx context.Context, cluster ClusterConfig, stage, name string) (*Exclusive, error) {
	cl, st, err := cluster.dial(stage, "producer", kgo.WithContext(context.WithoutCancel(ctx)),
		kgo.TransactionalID(cluster.name(stage+"-"+name)), kgo.TransactionTimeout(exclusiveTimeout))
	if err != nil {
		return nil, err
	}
	reaching, cancel := context.WithCancel(ctx)
	e := &Exclusive{cluster: cluster, client: cl, state: st, cancel: cancel}
	go reach(reaching, cl)
	if _, _, err := cl.ProducerID(ctx); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Produce writes the outputs, all or none of them, and returns when they are committed.
// ErrFenced: somebody else has claimed the name. ErrTooLarge and codec.ErrInvalid are
// found before anything is written. After any other error it is not known whether they
// are committed: claim the name again, which settles it, and look.
func (e *Exclusive) Produce(ctx context.Context, outputs ...Output) error {
	records, err := e.cluster.encodeAll(outputs)
	if err != nil {
		return err
	}
	began := time.Now()
	err = e.transact(ctx, records)
	if fenced(err, time.Since(began), exclusiveTimeout) {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}

func (e *Exclusive) transact(ctx context.Context, records []*kgo.Record) error {
	if err := e.client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	if err := produce(ctx, e.client, records); err != nil {
		return errors.Join(err, e.client.AbortBufferedRecords(ctx), e.client.EndTransaction(ctx, kgo.TryAbort))
	}
	// Stopping must not tear a commit that is under way.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exclusiveTimeout)
	defer cancel()
	if err := e.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Close lets go of the client; the name stays claimed. It may be called twice.
func (e *Exclusive) Close() {
	e.cancel()
	e.client.Close()
	e.state.retire()
}

// Final says whether an error will come again, however often the same is tried.
func Final(err error) bool {
	return final(err) || errors.Is(err, ErrConfig) || errors.Is(err, ErrFenced) || errors.Is(err, codec.ErrNewerSchema)
}
