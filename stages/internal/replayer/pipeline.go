package replayer

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// ordered works on what produce yields, on several goroutines, and commits the results
// one after the other, in the order of the inputs. The first error ends it all; a commit
// that was begun has then returned.
func ordered[T, R any](ctx context.Context, workers int, produce func(ctx context.Context, yield func(T) error) error, work func(context.Context, T) (R, error), commit func(R) error) error {
	type job struct {
		in   T
		out  R
		err  error
		done chan struct{}
	}
	group, ctx := errgroup.WithContext(ctx)
	jobs, inOrder := make(chan *job), make(chan *job, 2*workers)
	group.Go(func() error {
		defer close(inOrder)
		defer close(jobs)
		return produce(ctx, func(in T) error {
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
	for range workers {
		group.Go(func() error {
			for j := range jobs {
				j.out, j.err = work(ctx, j.in)
				close(j.done)
			}
			return nil
		})
	}
	group.Go(func() error {
		for j := range inOrder {
			select {
			case <-j.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			if j.err != nil {
				return j.err
			}
			if err := commit(j.out); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}
