package runner

import (
	"context"
	"errors"
)

// Producer writes for stages that read nothing in a group.
type Producer struct{}

// NewProducer makes a producer; it does not wait for the brokers.
func NewProducer(ctx context.Context, cluster ClusterConfig, stage string) (*Producer, error) {
	return nil, errors.New("under construction")
}

// Produce writes the outputs in order and returns when the brokers have all of them,
// or with the first error.
func (p *Producer) Produce(ctx context.Context, outputs ...Output) error {
	return errors.New("under construction")
}

// Close ends the producer. It may be called twice.
func (p *Producer) Close() {}
