package command

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-rl/sluice/topology/sluice/apply"
)

const applyAbout = `Make a Kafka cluster agree with the topology: create what is missing, and say what
differs. Retention and size limits of existing topics are altered only with --yes.
Partition counts are never changed: keys, state and offsets are bound to them.

Exit status: 0 agrees now, 1 differs or failed, 2 wrong use.`

func applyCommand() *cobra.Command {
	var (
		where   cluster
		o       apply.Options
		asJSON  bool
		timeout time.Duration
	)
	c := &cobra.Command{
		Use: "apply", Short: "Create the topics, or say what differs", Long: applyAbout, Args: noArgs,
	}
	where.register(c.Flags())
	c.Flags().BoolVar(&o.Alter, "yes", false, "alter retention and size limits of topics that exist")
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
	c.Flags().BoolVar(&asJSON, "json", false, "print the differences as a JSON list")
	c.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to try while the brokers do not answer")
	c.RunE = func(c *cobra.Command, _ []string) error {
		t, err := where.load()
		if err != nil {
			return err
		}
		cl, err := where.client()
		if err != nil {
			return err
		}
		defer cl.Close()
		ctx, stop := untilSignal()
		defer stop()
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer from %v within %v (--timeout)", where.brokers, timeout))
		defer cancel()
		o.Namespace = where.namespace
		ds, err := apply.Apply(ctx, cl, t, o)
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("apply: %w", context.Cause(ctx))
		}
		out := c.OutOrStdout()
		if asJSON {
			if ds == nil {
				ds = []apply.Difference{}
			}
			if err := json.NewEncoder(out).Encode(ds); err != nil {
				return err
			}
			return err
		}
		if err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		for _, d := range ds {
			fmt.Fprintln(out, d)
		}
		switch {
		case len(ds) == 0:
			fmt.Fprintln(out, "the cluster agrees with the topology")
		case o.DryRun:
			fmt.Fprintln(out, "nothing was changed (--dry-run)")
		}
		return nil
	}
	return c
}
