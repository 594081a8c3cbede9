package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/stages/internal/kafka/hanging"
)

// Exclusive writes in transactions under a name that one process holds at a time: who
// claims it last has it, and what the one before still writes fails with ErrFenced.
type Exclusive struct {
	cluster     ClusterConfig
	stage, name string
	cancel      context.CancelFunc
	// looker looks for transactions of the name that hang.
	looker *kgo.Client

	// mu is held while a transaction is under way or the client is made anew.
	mu     sync.Mutex
	client *kgo.Client
	state  *state
}

// exclusiveTimeout is after what time the brokers abort a transaction whose process is
// gone.
const exclusiveTimeout = time.Minute

// Claim takes the name, which completes or aborts what its holder before had begun. It
// waits for absent brokers, until ctx ends.
func Claim(ctx context.Context, cluster ClusterConfig, stage, name string) (*Exclusive, error) {
	var wait backoff
	for logged := false; ; logged = true {
		e, err := claim(ctx, cluster, stage, name)
		if err == nil || errors.Is(err, ErrConfig) {
			return e, err
		}
		if !logged {
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
	quiet := cluster
	quiet.Ready, quiet.Begun = nil, nil
	looker, _, err := quiet.dial(stage, "transactions", hanging.ClientOptions()...)
	if err != nil {
		return nil, err
	}
	living, cancel := context.WithCancel(ctx)
	e := &Exclusive{cluster: cluster, stage: stage, name: name, cancel: cancel, looker: looker}
	if err := e.connect(ctx); err != nil {
		e.Close()
		return nil, err
	}
	go e.watch(living)
	return e, nil
}

func (e *Exclusive) id() string { return e.cluster.name(e.stage + "-" + e.name) }

// connect makes the client, after what hangs under the name has been ended: mu is held,
// or nobody else has e yet.
func (e *Exclusive) connect(ctx context.Context) error {
	if _, err := e.endHanging(ctx, true); err != nil {
		return err
	}
	cl, st, err := e.cluster.dial(e.stage, "producer", kgo.WithContext(context.WithoutCancel(ctx)),
		kgo.TransactionalID(e.id()), kgo.TransactionTimeout(exclusiveTimeout))
	if err != nil {
		return err
	}
	e.client, e.state = cl, st
	reaching, cancel := context.WithCancel(ctx)
	defer cancel()
	go reach(reaching, cl)
	_, _, err = cl.ProducerID(ctx)
	return err
}

// endHanging says whether a transaction of the name hangs on what the stage writes, and
// ends it where that is wanted: nothing written after it can be read before it is.
func (e *Exclusive) endHanging(ctx context.Context, end bool) (hangs bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	found, err := hanging.Find(ctx, e.looker, e.id(), e.cluster.names(e.cluster.Topology.Stages[e.stage].Writes)...)
	if err != nil && !errors.Is(err, hanging.ErrHidden) {
		return false, err
	}
	for _, tx := range found {
		if tx.ID != e.id() {
			continue
		}
		if !end {
			return true, nil
		}
		if err := hanging.End(ctx, e.looker, tx, ""); err != nil {
			return true, err
		}
		for _, p := range tx.Partitions {
			newMetrics(e.cluster.Metrics, e.stage).hanging.WithLabelValues(p.Topic, tx.Decision()).Inc()
			e.cluster.log().Warn("ended a transaction that its coordinator held for complete and that was open: the brokers had lost its marker",
				"partition", p.String(), "producer", tx.Producer, "epoch", p.Epoch, "decision", tx.Decision(), "transactional_id", tx.ID)
		}
	}
	return false, nil
}

// watch makes the client anew when a transaction of the name hangs, until ctx ends.
func (e *Exclusive) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.mu.Lock()
		if hangs, err := e.endHanging(ctx, false); err == nil && hangs {
			e.client.Close()
			e.state.forget()
			if err := e.connect(ctx); err != nil && ctx.Err() == nil {
				// The next Produce fails and has its caller claim the name again.
				e.cluster.log().Warn("cannot end a transaction whose marker the brokers lost", "transactional_id", e.id(), "error", err)
				e.cluster.Status.Failed("retried", err)
			}
		}
		e.mu.Unlock()
	}
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
	e.mu.Lock()
	defer e.mu.Unlock()
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
	e.mu.Lock()
	defer e.mu.Unlock()
	e.looker.Close()
	if e.client != nil {
		e.client.Close()
		e.state.retire()
	}
}

// Final says whether an error will come again, however often the same is tried.
func Final(err error) bool {
	return final(err) || errors.Is(err, ErrConfig) || errors.Is(err, ErrFenced) || errors.Is(err, codec.ErrNewerSchema)
}
