package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

// Reservation is a slot kept for this caller: Run on it never queues. It lasts
// until Release, or until Lost.
type Reservation struct {
	client *Client
	id     string
	waited time.Duration
	cancel context.CancelFunc
	lost   chan struct{}
	once   sync.Once
}

// Reserve waits in the daemon's queue until a slot is free and keeps it. ctx
// bounds the waiting only: once Reserve has returned, the reservation outlives
// ctx and ends by Release. A full queue or too long a wait is a *BusyError.
func (c *Client) Reserve(ctx context.Context) (*Reservation, error) {
	return c.ReserveAs(ctx, "")
}

// ReserveAs is Reserve with a key of the caller's own. Two reservations of one owner
// with one key are one slot: who reserves again, after a broken connection or a
// restart, takes over the slot that the daemon still holds for him, and the
// reservation that held it is Lost.
func (c *Client) ReserveAs(ctx context.Context, key string) (*Reservation, error) {
	// The stream must outlive ctx, but waiting for it must not.
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	body, err := json.Marshal(api.ReserveRequest{Owner: c.owner, Key: key})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("encode sandboxd request: %w", err)
	}
	resp, err := c.post(streamCtx, "/v1/reserve", body)
	if err != nil {
		cancel()
		return nil, contextError(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer cancel()
		defer drain(resp.Body)
		return nil, failure(resp)
	}
	first, rest, err := readLine(resp.Body)
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		_ = resp.Body.Close()
		return nil, contextError(ctx, err)
	}
	r := &Reservation{
		client: c,
		id:     first.Reservation,
		waited: time.Duration(first.WaitMS * float64(time.Millisecond)),
		cancel: cancel,
		lost:   make(chan struct{}),
	}
	go func() {
		// The daemon writes nothing more; the end of the stream is the end of
		// the reservation, whoever caused it.
		_, _ = io.Copy(io.Discard, rest)
		_ = resp.Body.Close()
		close(r.lost)
	}()
	return r, nil
}

// ID is the reservation's name in the daemon's log.
func (r *Reservation) ID() string { return r.id }

// Waited is how long the daemon let this reservation wait.
func (r *Reservation) Waited() time.Duration { return r.waited }

// Lost is closed when the reservation has ended: after Release, because the daemon
// went away, or because no call ran in it and another caller needed the slot.
func (r *Reservation) Lost() <-chan struct{} { return r.lost }

// Run runs one program in the reserved slot, without queueing. It fails with
// ErrReservationLost if the daemon no longer knows the reservation.
func (r *Reservation) Run(ctx context.Context, req Request) (Result, error) {
	req.Reservation = r.id
	return r.client.Run(ctx, req)
}

// Release gives the slot back and ends a call still running in it. It may be
// called twice and after Lost.
func (r *Reservation) Release() {
	r.once.Do(r.cancel)
	<-r.lost
}

// contextError prefers the caller's own reason to the broken connection that
// it caused.
func contextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
