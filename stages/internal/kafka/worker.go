package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// errAbandoned: a record was let go unfinished, to be delivered again.
var errAbandoned = errors.New("abandoned")

// worker takes single records from being held to being done, whatever held them.
type worker struct {
	deadLetterWriter
	// producer writes outputs; its acknowledgement is what makes an input done.
	producer *kgo.Client
	// stop is closed when no attempt may be started any more.
	stop <-chan struct{}
	// maxAttempts is how often work on a record may begin. 0: as often as it takes.
	maxAttempts int32
}

func newWorker(c ClusterConfig, stage string, producer *kgo.Client, stop <-chan struct{}) *worker {
	return &worker{
		deadLetterWriter: deadLetterWriter{cluster: c, stage: stage, log: c.log(), metrics: newMetrics(c.Metrics, stage)},
		producer:         producer, stop: stop,
	}
}

// do returns nil once all that r leads to has been acknowledged by the brokers,
// errAbandoned if ctx or stop ended first, and any other error if the stage is
// misconfigured and must end.
func (w *worker) do(ctx context.Context, r *kgo.Record, h Handler) error {
	start := time.Now()
	w.metrics.inFlight.Inc()
	defer w.metrics.inFlight.Dec()
	topic := w.cluster.short(r.Topic)

	outputs, outcome, err := w.outputs(ctx, r, h)
	if err == nil {
		err = w.write(ctx, outputs)
		if err != nil && final(err) && outcome == outcomeDone {
			m, _ := Decode(w.cluster, r)
			outcome = outcomeDeadLetter
			err = w.write(ctx, w.giveUp(r, m.Body, err))
		}
	}
	if err != nil {
		outcome = outcomeAbandoned
	}
	w.metrics.took(topic, outcome, start)
	return err
}

// giveBack writes a record anew on which no work was begun.
func (w *worker) giveBack(ctx context.Context, r *kgo.Record, _ Handler) error {
	start, outcome := time.Now(), outcomeRequeued
	begun, _ := begunBefore(r)
	err := w.write(ctx, []*kgo.Record{anew(r, begun)})
	if err != nil {
		outcome = outcomeAbandoned
	}
	w.metrics.took(w.cluster.short(r.Topic), outcome, start)
	return err
}

// outputs works on r until there is something to write for it.
func (w *worker) outputs(ctx context.Context, r *kgo.Record, h Handler) ([]*kgo.Record, string, error) {
	m, err := Decode(w.cluster, r)
	if newer := w.cluster.newer(r, err); newer != nil {
		w.log.Error("the stage waits to be upgraded", "error", newer)
		select {
		case <-ctx.Done():
		case <-w.stop:
		}
		return nil, outcomeAbandoned, errAbandoned
	}
	if err != nil {
		return w.giveUp(r, nil, err), outcomeDeadLetter, nil
	}
	begun, vanished := begunBefore(r)
	if vanished && !w.tooMany(begun) {
		w.outlast(ctx)
	}
	if vanished || w.tooMany(begun) {
		records, outcome := w.back(r, m, begun, nil)
		return records, outcome, nil
	}
	m.Attempt = begun + 1
	var wait backoff
	for attempt := 1; ; attempt++ {
		records, err := w.attempt(ctx, m, h)
		switch {
		case err == nil:
			if attempt > 1 {
				w.log.Info("record went through", "topic", m.Topic, "partition", m.Partition, "offset", m.Offset, "attempt", attempt)
			}
			return records, outcomeDone, nil
		case errors.Is(err, ErrConfig):
			return nil, outcomeAbandoned, err
		case final(err):
			return w.giveUp(r, m.Body, err), outcomeDeadLetter, nil
		case ctx.Err() != nil:
			return nil, outcomeAbandoned, errAbandoned
		}
		if q, ok := asRequeue(err); ok {
			records, outcome := w.back(r, m, begun+int32(q.begun), q.err)
			return records, outcome, nil
		}
		w.metrics.retries.WithLabelValues(m.Topic).Inc()
		w.cluster.Status.Failed("retried", err)
		w.logRetry(m, attempt, err)
		if !wait.wait(ctx, w.stop) {
			return nil, outcomeAbandoned, errAbandoned
		}
	}
}

func (w *worker) tooMany(begun int32) bool { return w.maxAttempts > 0 && begun >= w.maxAttempts }

// outlast waits until the fetches that a dead process left pending have ended: one of them
// would take what is written anew, and a delivery to nobody counts as an attempt.
func (w *worker) outlast(ctx context.Context) {
	t := time.NewTimer(2 * fetchWait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-w.stop:
	}
}

// back writes a record anew, or gives it up if work on it began too often. cause is nil
// where its holder vanished.
func (w *worker) back(r *kgo.Record, m Message, begun int32, cause error) ([]*kgo.Record, string) {
	if w.tooMany(begun) {
		return w.giveUp(r, m.Body, tooManyAttempts(begun, cause)), outcomeDeadLetter
	}
	if cause == nil {
		cause = errors.New("its holder vanished")
	}
	w.log.Warn("record goes back to its topic", "topic", m.Topic, "partition", m.Partition, "offset", m.Offset,
		"delivery", r.DeliveryCount(), "begun", begun, "error", cause)
	return []*kgo.Record{anew(r, begun)}, outcomeRequeued
}

func (w *worker) attempt(ctx context.Context, m Message, h Handler) (records []*kgo.Record, err error) {
	outputs, err := guard(w.log, func() ([]Output, error) { return h.Handle(ctx, m) })
	if err != nil {
		return nil, err
	}
	return w.cluster.encodeAll(outputs)
}

// logRetry says the first failure of a record aloud and the rest quietly.
func (w *worker) logRetry(m Message, attempt int, err error) {
	level := slog.LevelDebug
	if attempt == 1 {
		level = slog.LevelWarn
	}
	w.log.Log(context.Background(), level, "record has to wait: trying again",
		"topic", m.Topic, "partition", m.Partition, "offset", m.Offset, "attempt", attempt, "error", err)
}

// write returns nil when the brokers have all records; the same records may be
// written more than once.
func (w *worker) write(ctx context.Context, records []*kgo.Record) error {
	if len(records) == 0 {
		return nil
	}
	var wait backoff
	for {
		err := produce(ctx, w.producer, records)
		switch {
		case err == nil:
			return nil
		case final(err):
			return err
		case ctx.Err() != nil || errors.Is(err, kgo.ErrClientClosed):
			return errAbandoned
		}
		w.log.Warn("cannot write outputs: trying again", "error", err)
		w.cluster.Status.Failed("write_failed", err)
		if !wait.wait(ctx, nil) {
			return errAbandoned
		}
		records = unsent(records)
	}
}

// unsent copies records so that they may be produced again.
func unsent(records []*kgo.Record) []*kgo.Record {
	out := make([]*kgo.Record, len(records))
	for i, r := range records {
		out[i] = &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers}
		if isSpread(r) {
			spread(out[i])
		}
	}
	return out
}

// guard turns a panic of a stage's own code into a final error: one record must not
// end the work on all others.
func guard[T any](log *slog.Logger, f func() (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in a stage's own code", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = Reject(fmt.Errorf("panic: %v", p), "panic")
		}
	}()
	return f()
}
