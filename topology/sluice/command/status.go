package command

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/sluice/depth"
	"github.com/sluice-rl/sluice/topology/sluice/presence"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

const statusAbout = `Show how much work waits before each stage, how fast it goes, and what holds it up.

depth is the number of records a stage has still to do: counted from the records,
since transaction markers keep a plain lag above 0 for ever (≤ before a number: too
many to count, markers may be among them). rate is records per second between two
looks, --interval apart. live is the number of processes that report themselves at work.

Below the table stands what each open step waits for, and what the processes say of
themselves: what they wait for and
since when, the record that has waited longest, and their last error. One that has been
silent for 30 seconds without saying that it ended is named for an hour.`

func statusCommand() process.Command {
	var (
		where         kafka
		asJSON, watch bool
		interval      time.Duration
		stalled       time.Duration
		check         bool
	)
	return process.Command{
		Name: "status", Short: "Depth, rate and what holds each stage up", About: statusAbout,
		Flags: func(flags *process.Flags) {
			f := flags.Group("Status")
			jsonFlag(f, &asJSON, "print one JSON object per look")
			f.BoolVar(&watch, "watch", false, "go on until stopped")
			f.DurationVar(&interval, "interval", time.Second, "time between two looks")
			f.DurationVar(&stalled, "stalled-after", 10*time.Minute, "a step that has not moved for this long is an alarm")
			f.BoolVar(&check, "check", false, "exit with 1 if a step does not move, a backend is away, or work waits for a stage without a live process")
			where.register(flags, 15*time.Second, "how long one look may take")
		},
		Check: func() error {
			if interval < 100*time.Millisecond {
				return fmt.Errorf("--interval is %v, want at least 100ms", interval)
			}
			return where.Check()
		},
		Run: func(ctx context.Context, l *process.Life) error {
			t, err := where.Load()
			if err != nil {
				return process.Usage(err)
			}
			meter, err := depth.NewMeter(depth.Config{Connect: where.Options(), Namespace: where.Namespace, Topology: t})
			if err != nil {
				return process.Usage(err)
			}
			defer meter.Close()
			processes, err := presence.NewReader(where.Options(), topology.Name(where.Namespace, topology.StatusTopic))
			if err != nil {
				return process.Usage(err)
			}
			defer processes.Close()
			look := func() (v view, err error) {
				v.Patience = stalled
				err = where.ask(ctx, func(ctx context.Context) error {
					if v.Snapshot, err = meter.Measure(ctx); err != nil {
						return err
					}
					v.Processes, err = processes.Read(ctx, time.Now())
					return err
				})
				if err != nil {
					return v, fmt.Errorf("status: %w", err)
				}
				return v, nil
			}
			before, err := look()
			if err != nil {
				return err
			}
			block := terminal.NewBlock(l.Stdout)
			for {
				select {
				case <-ctx.Done():
					return unlessWatching(ctx, watch)
				case <-time.After(interval):
				}
				now, err := look()
				if ctx.Err() != nil {
					return unlessWatching(ctx, watch)
				}
				if err != nil {
					return err
				}
				now.Rates(before.Snapshot)
				before = now
				if err := show(l.Stdout, block, now, asJSON, watch); err != nil {
					return err
				}
				if check {
					if err := now.check(); err != nil {
						return fmt.Errorf("status: %w", err)
					}
				}
				if !watch {
					return nil
				}
			}
		},
	}
}

// unlessWatching: a signal is how watching ends well.
func unlessWatching(ctx context.Context, watch bool) error {
	if watch {
		return nil
	}
	return ctx.Err()
}
