package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Producer writes for stages that read nothing in a group.
type Producer struct {
	cluster ClusterConfig
	stage   string
	client  *kgo.Client
	state   *state
	cancel  context.CancelFunc
}

// NewProducer makes a producer; it does not wait for the brokers.
func NewProducer(ctx context.Context, cluster ClusterConfig, stage string) (*Producer, error) {
	cl, st, err := cluster.dial(stage, "producer", kgo.WithContext(context.WithoutCancel(ctx)))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	go reach(ctx, cl)
	return &Producer{cluster: cluster, stage: stage, client: cl, state: st, cancel: cancel}, nil
}

// reach tries until the brokers answer: a client that only produces opens no
// connection before it has something to write, and could not say that it is ready.
func reach(ctx context.Context, cl *kgo.Client) {
	var wait backoff
	for cl.Ping(ctx) != nil && wait.wait(ctx, nil) {
	}
}

// Produce writes the outputs and returns when the brokers have all of them, or with
// the first error. Records of one key keep their order. While the brokers are away
// it waits, until ctx ends. ErrTooLarge and codec.ErrInvalid are found before
// anything is written.
func (p *Producer) Produce(ctx context.Context, outputs ...Output) error {
	records, err := p.cluster.encodeAll(outputs)
	if err != nil {
		return err
	}
	return produce(ctx, p.client, records)
}

// giveUp writes the dead letter of a record that cannot be read.
func (p *Producer) giveUp(ctx context.Context, r *kgo.Record, cause error) error {
	w := newWorker(p.cluster, p.stage, p.client, ctx.Done())
	return w.write(ctx, w.giveUp(r, nil, cause))
}

// Close ends the producer. It may be called twice.
func (p *Producer) Close() {
	p.cancel()
	p.client.Close()
	p.state.retire()
}

// produce writes records and returns when the brokers have all of them, with the
// first error, or when ctx ends. The client's own ProduceSync outlasts ctx while the
// fate of a request that was sent is unknown, which may be for as long as the brokers
// are away.
func produce(ctx context.Context, cl *kgo.Client, records []*kgo.Record) error {
	results := make(chan error, len(records))
	var first error
	await := func(n int) error {
		for range n {
			select {
			case err := <-results:
				if first == nil {
					first = err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	waiting := 0
	for _, r := range records {
		cl.Produce(ctx, r, func(_ *kgo.Record, err error) { results <- err })
		waiting++
		if isSpread(r) {
			// Records are spread for share groups, whose members are handed whole
			// batches for the sake of one record: it should stand alone in its own.
			if err := await(waiting); err != nil {
				return err
			}
			waiting = 0
		}
	}
	if err := await(waiting); err != nil {
		return err
	}
	return first
}
