package status

import (
	"context"
	"time"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

const (
	// Interval is after what time a process says again what has not changed.
	Interval = 10 * time.Second
	// Silence is after what time a process that says nothing is taken for gone.
	Silence = 3 * Interval
	// settle gathers changes that come together.
	settle = time.Second
	// parting bounds the last record of a process that ends.
	parting = 2 * time.Second
)

// Report writes the board's status through write until ctx ends, and then once more, as
// stopped, if the brokers could be reached before. failed is told of the first failure in
// a row, and of nil once one has been written again.
func (b *Board) Report(ctx context.Context, stage, instance string, write func(context.Context, *sluicev1.StageStatus) error, failed func(error)) {
	say := func(ctx context.Context, stopped bool) error {
		s := b.Status()
		s.Stage, s.Instance, s.IntervalMs, s.Stopped = stage, instance, uint32(Interval.Milliseconds()), stopped
		if stopped {
			s.Ready = false
		}
		return write(ctx, s)
	}
	broken, reached := false, false
	for ctx.Err() == nil {
		// What could not be written in time is replaced by what holds then.
		attempt, cancel := context.WithTimeout(ctx, Interval)
		err := say(attempt, false)
		cancel()
		if ctx.Err() == nil && (err != nil) != broken {
			broken = err != nil
			failed(err)
		}
		reached = err == nil
		b.await(ctx)
	}
	if !reached {
		return // the brokers are away, and a stop does not wait for them
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	_ = say(last, true)
}

// await returns when it is time for the next report.
func (b *Board) await(ctx context.Context) {
	pause(ctx, settle)
	timer := time.NewTimer(Interval - settle)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-b.changed:
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
