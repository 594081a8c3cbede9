package main

import (
	"context"

	"github.com/sluice-rl/sluice/sandboxd/client"
)

// sandboxes is sandboxd, or a fake in tests.
type sandboxes interface {
	// Ready reports nil once programs can be run.
	Ready(ctx context.Context) error
	// Slots is how many reservations there can be at once.
	Slots(ctx context.Context) (int, error)
	// Reserve waits for a slot, for work that may come. Who reserves again under the
	// same key has what is still held under it.
	Reserve(ctx context.Context, key string) (reservation, error)
	// Run runs a program that is in hand: it comes before all reservations, and takes
	// the slot of an idle one.
	Run(ctx context.Context, r client.Request) (client.Result, error)
}

// reservation is a slot kept for one program at a time.
type reservation interface {
	Run(ctx context.Context, r client.Request) (client.Result, error)
	Lost() <-chan struct{}
	Release()
}

// daemon is sandboxd through its client.
type daemon struct{ *client.Client }

func (d daemon) Reserve(ctx context.Context, key string) (reservation, error) {
	// A nil *Reservation must not become a reservation that is not nil.
	r, err := d.ReserveAs(ctx, key)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (d daemon) Slots(ctx context.Context) (int, error) {
	h, err := d.Health(ctx)
	return h.Reservable, err
}
