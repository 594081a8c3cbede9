package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/sluice/depth"
	"github.com/sluice-rl/sluice/topology/sluice/presence"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

const statusAbout = `Show how much work waits before each stage, how fast it goes, and what holds it up.

depth is the number of records a stage has still to do: counted from the records,
since transaction markers keep a plain lag above 0 for ever (≤ before a number: too
many to count, markers may be among them). rate is records per second between two
looks, --interval apart. live is the number of processes that report themselves at work.

Below the table stands what the processes say of themselves: what they wait for and
since when, the record that has waited longest, and their last error. One that has been
silent for 30 seconds without saying that it ended is named for an hour.`

func statusCommand() *cobra.Command {
	var (
		where         cluster
		asJSON, watch bool
		interval      time.Duration
		timeout       time.Duration
	)
	c := &cobra.Command{Use: "status", Short: "Depth and rate per stage", Long: statusAbout, Args: noArgs}
	where.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per look")
	c.Flags().BoolVar(&watch, "watch", false, "go on until stopped")
	c.Flags().DurationVar(&interval, "interval", time.Second, "time between two looks")
	c.Flags().DurationVar(&timeout, "timeout", 15*time.Second, "how long one look may take")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if interval < 100*time.Millisecond {
			return fmt.Errorf("%w: --interval is %v, want at least 100ms", errUsage, interval)
		}
		t, err := where.load()
		if err != nil {
			return err
		}
		meter, err := depth.NewMeter(depth.Config{Brokers: where.brokers, Namespace: where.namespace, Topology: t})
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		defer meter.Close()
		processes, err := presence.NewReader(where.brokers, topology.Name(where.namespace, topology.StatusTopic))
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		defer processes.Close()
		ctx, stop := untilSignal()
		defer stop()
		look := func() (view, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer from %v within %v (--timeout)", where.brokers, timeout))
			defer cancel()
			s, err := meter.Measure(ctx)
			v := view{Snapshot: s}
			if err == nil {
				v.Processes, err = processes.Read(ctx, time.Now())
			}
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return v, fmt.Errorf("status: %w", err)
			}
			return v, nil
		}
		before, err := look()
		if err != nil {
			return err
		}
		block := terminal.NewBlock(c.OutOrStdout())
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(interval):
			}
			now, err := look()
			if ctx.Err() != nil && watch {
				return nil
			}
			if err != nil {
				return err
			}
			now.Rates(before.Snapshot)
			before = now
			if err := show(c.OutOrStdout(), block, now, asJSON, watch); err != nil || !watch {
				return err
			}
		}
	}
	return c
}
