package perform

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// pipeline works on what produce yields, on several goroutines, and commits the results
// one after the other, in the order of the inputs.
type pipeline[T, R any] struct {
	workers int
	produce func(ctx context.Context, yield func(T) error) error
	work    func(context.Context, T) (R, error)
	commit  func(context.Context, R) error
	// idle is called, between commits, where the next one has been waited for this long,
	// and then again.
	idle  func(context.Context) error
	every time.Duration
}

// run ends with the first error; a commit that was begun has then returned.
func (p pipeline[T, R]) run(ctx context.Context) error {
	type job struct {
		in   T
		out  R
		err  error
		done chan struct{}
	}
	group, ctx := errgroup.WithContext(ctx)
	jobs, inOrder := make(chan *job), make(chan *job, 2*p.workers)
	group.Go(func() error {
		defer close(inOrder)
		defer close(jobs)
		return p.produce(ctx, func(in T) error {
			j := &job{in: in, done: make(chan struct{})}
			for _, to := range []chan *job{inOrder, jobs} {
				select {
				case to <- j:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	})
	for range p.workers {
		group.Go(func() error {
			for j := range jobs {
				j.out, j.err = p.work(ctx, j.in)
				close(j.done)
			}
			return nil
		})
	}
	group.Go(func() error {
		for j := range inOrder {
			if err := p.await(ctx, j.done); err != nil {
				return err
			}
			if j.err != nil {
				return j.err
			}
			if err := p.commit(ctx, j.out); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// await waits for a job.
func (p pipeline[T, R]) await(ctx context.Context, done <-chan struct{}) error {
	for {
		timer := time.NewTimer(p.every)
		select {
		case <-done:
			timer.Stop()
			return nil
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
			if err := p.idle(ctx); err != nil {
				return err
			}
		}
	}
}

// lingering is a context that ends a while after ctx does: for what should not be left
// half done, and cannot be waited for without end either. stop lets it live on.
func lingering(ctx context.Context, while time.Duration) (longer context.Context, stop func() bool) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return longer, context.AfterFunc(ctx, func() { time.AfterFunc(while, cancel) })
}
