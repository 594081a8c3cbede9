package command

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/apply"
	"github.com/sluice-rl/sluice/topology/process"
)

const applyAbout = `Make a Kafka cluster agree with the topology: create what is missing, and say what
differs. Retention and size limits of existing topics are altered only with --yes.
Partition counts are never changed: keys, state and offsets are bound to them.

With --acls each stage, and the trainer, gets a principal of its own and just the rights
that it needs; --dry-run lists those that are missing. Rights are only ever added.

Exit code 0: it agrees now; 1: it differs, or cannot be asked.`

func applyCommand() process.Command {
	var (
		where  kafka
		o      apply.Options
		asJSON bool
	)
	return process.Command{
		Name: "apply", Short: "Create the topics, or say what differs", About: applyAbout,
		Flags: func(flags *process.Flags) {
			f := flags.Group("Apply")
			f.BoolVar(&o.Alter, "yes", false, "alter retention and size limits of topics that exist")
			f.BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
			f.StringVar(&o.Principal, "acls", "", "give the stages and the trainer the least rights they need; the principals, with {stage} for the name, such as User:sluice-{stage}")
			jsonFlag(f, &asJSON, "print the differences as a JSON list")
			where.register(flags, 30*time.Second, "how long to try while the brokers do not answer")
		},
		Check: func() error {
			if o.Principal != "" {
				if _, err := apply.ACLs(topology.Topology{}, "", o.Principal); err != nil {
					return fmt.Errorf("--acls: %w", err)
				}
			}
			return where.Check()
		},
		Run: func(ctx context.Context, l *process.Life) error {
			t, err := where.Load()
			if err != nil {
				return process.Usage(err)
			}
			cl, err := where.client()
			if err != nil {
				return err
			}
			defer cl.Close()
			o.Namespace = where.Namespace
			ds := []apply.Difference{}
			err = where.ask(ctx, func(ctx context.Context) error {
				found, err := apply.Apply(ctx, cl, t, o)
				ds = append(ds, found...)
				return err
			})
			if err != nil {
				err = fmt.Errorf("apply: %w", err)
			}
			if asJSON {
				if err := json.NewEncoder(l.Stdout).Encode(ds); err != nil {
					return err
				}
				return err
			}
			if err != nil {
				return err
			}
			for _, d := range ds {
				fmt.Fprintln(l.Stdout, d)
			}
			switch {
			case len(ds) == 0:
				fmt.Fprintln(l.Stdout, "the cluster agrees with the topology")
			case o.DryRun:
				fmt.Fprintln(l.Stdout, "nothing was changed (--dry-run)")
			}
			return nil
		},
	}
}
