package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluice-rl/sluice/topology/sluice/depth"
	"github.com/sluice-rl/sluice/topology/sluice/supervise"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
	"github.com/sluice-rl/sluice/topology/sluice/words"
)

// ErrHardStop: a second signal ended the stopping.
var ErrHardStop = errors.New("stopped hard by a second signal")

// Run is `sluice up`; ctx ends at the first signal, hard is closed at the second. It returns when the run is finished and everything is stopped,
// with ErrStopped where a signal ended it before.
func Run(ctx context.Context, hard <-chan struct{}, o Options, stdout io.Writer) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	top, err := o.Load()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	began := time.Now()
	dir, err := openDirectory(o.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	screen := newScreen(stdout, o.Plain)
	if err := dir.awaitLeftovers(ctx, endWithin, screen.Say); err != nil {
		return err
	}
	r, resumed, err := dir.open(o)
	if err != nil {
		return err
	}
	s := &system{o: o, dir: dir, run: r, topology: top, screen: screen}
	s.sup, err = supervise.New(supervise.Config{
		LogDir: dir.file("logs"), Tell: func(text string) { s.screen.Say("%s", text) },
	})
	if err != nil {
		return err
	}
	defer s.sup.Close()
	s.pagesAddress()
	where := ""
	if s.pagesAt != "" {
		where = ", pages at http://" + s.pagesAt
	}
	if resumed {
		s.screen.Say("going on with run %s, logs in %s%s", r.RunID, dir.file("logs"), where)
	} else {
		s.screen.Say("run %s in %s%s", r.RunID, dir.path, where)
	}

	ended := make(chan error, 1)
	go func() { ended <- s.toTheEnd(ctx, began, stdout) }()
	emptied := make(chan error, 1)
	go func() { emptied <- dir.emptyTrash() }()
	interrupted := false
	select {
	case err = <-ended:
	case <-ctx.Done():
		interrupted = true
		s.screen.finish()
		s.screen.Say("stopping; once more stops hard")
		// It returns at once: nothing in it waits longer than the context.
		err = <-ended
	}
	stopErr := errors.Join(s.stop(hard), <-emptied)
	if interrupted && err != nil {
		err = ErrStopped
	}
	if stopErr != nil {
		return stopErr
	}
	if errors.Is(err, ErrStopped) {
		s.screen.Say("stopped; the same command goes on with run %s", s.run.RunID)
	}
	return err
}

// toTheEnd starts everything, waits for the last step and reports.
func (s *system) toTheEnd(ctx context.Context, began time.Time, stdout io.Writer) error {
	if err := s.unlessFailed(ctx, s.startServices); err != nil {
		return err
	}
	if err := s.unlessFailed(ctx, s.startStages); err != nil {
		return err
	}
	s.screen.Say("ready after %.1f s: kafka %s, clickhouse %s, policy %s", time.Since(began).Seconds(), s.at.brokers[0], s.at.clickhouseAddr, s.at.inferenceURL)

	meter, err := depth.NewMeter(depth.Config{Connect: s.connect(), Namespace: s.o.Namespace, Topology: s.topology})
	if err != nil {
		return err
	}
	defer meter.Close()
	var p progress
	following, stop := context.WithCancel(ctx)
	followed := make(chan error, 1)
	go func() { followed <- s.follow(following, &p) }()
	err = s.watch(ctx, &p, meter) // changes s.run
	err = errors.Join(err, s.dir.save(s.run))
	if err == nil {
		err = s.waitDrained(ctx, meter)
	}
	stop()
	err = errors.Join(err, <-followed)
	s.screen.finish()
	if err != nil {
		return err
	}
	return s.report(ctx, &p, stdout)
}

// unlessFailed runs a part of the start and ends it early when a process cannot be
// kept running.
func (s *system) unlessFailed(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-s.sup.Failed():
			cancel(err)
		case <-ctx.Done():
		}
	}()
	err := f(ctx)
	if cause := context.Cause(ctx); cause != nil && errors.Is(cause, supervise.ErrChild) {
		return cause
	}
	return err
}

// report asks ClickHouse, writes summary.json and prints.
func (s *system) report(ctx context.Context, p *progress, stdout io.Writer) error {
	sum, err := s.querySummary(ctx)
	if err != nil {
		return err
	}
	if err := writeJSON(s.dir.file("summary.json"), sum); err != nil {
		return err
	}
	s.run.Finished = true
	if err := s.dir.save(s.run); err != nil {
		return err
	}
	if p.shown != nil {
		fmt.Fprintln(stdout)
		decode := words.At(s.at.inferenceURL, s.o.Model).Text
		printTrajectory(ctx, stdout, p.shown, decode, !s.o.Plain && terminal.Colours(stdout))
	}
	fmt.Fprintf(stdout, "\nEvery step, as ClickHouse answers (view step_summary; %s):\n\n%s", s.dir.file("summary.json"), sum.table())
	if s.pagesAt != "" && len(s.o.Brokers) == 0 && s.o.ClickHouse == "" {
		fmt.Fprintf(stdout, "\nTo look at it again: sluice ui --dir %s\n", s.o.Dir)
	}
	return nil
}

// stop stops everything in order; a signal while it stops kills what is left.
func (s *system) stop(hard <-chan struct{}) error {
	stopped := make(chan struct{})
	go func() { s.sup.StopAll(stopOrder...); close(stopped) }()
	select {
	case <-stopped:
		return nil
	case <-hard:
		s.screen.Say("stopping hard")
		// Its sandboxes are no children of ours: it must end them itself.
		s.sup.KillAll(sandboxd)
		<-stopped
		return ErrHardStop
	}
}
