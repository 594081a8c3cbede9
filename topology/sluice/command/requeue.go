package command

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/sluice/deadletters"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

const requeueAbout = `Put the records of dead letters back into the topics that they came from, once what was
wrong with them is mended: a stage upgraded, a limit raised. A record of a trajectory goes
back as a new copy of it. It counts if its group is still open; otherwise it is dropped as
late, and said to be. The letters stay where they are.

Choose letters by --id, or by --run, --stage and --class, all of which must fit.`

func requeueLetters() process.Command {
	var (
		c                 letters
		ids               []string
		run, stage, class string
		dryRun            bool
	)
	return process.Command{
		Name: "requeue", Short: "Put records back into the topics that they came from", About: requeueAbout,
		Flags: func(flags *process.Flags) {
			f := flags.Group("Letters")
			f.StringSliceVar(&ids, "id", nil, "ids as `sluice dead-letters list` prints them, comma between them")
			f.StringVar(&run, "run", "", "letters of this run")
			f.StringVar(&stage, "stage", "", "letters of this stage")
			f.StringVar(&class, "class", "", "letters of this class, such as newer_schema")
			f.BoolVar(&dryRun, "dry-run", false, "only say what would go back")
			c.kafka.register(flags, time.Minute, "how long reading and writing may take")
		},
		Check: func() error {
			if len(ids) == 0 && run == "" && stage == "" && class == "" {
				return errors.New("want --id, --run, --stage or --class: which letters?")
			}
			return c.Check()
		},
		Run: func(ctx context.Context, l *process.Life) error {
			var records []*kgo.Record
			found := map[string]bool{}
			err := c.read(ctx, func(letter deadletters.Letter) error {
				b := letter.Body
				if len(ids) > 0 && !slices.Contains(ids, letter.ID()) || run != "" && b.GetOrigin().GetGroup().GetRunId() != run ||
					stage != "" && b.GetStage() != stage || class != "" && b.GetErrorType() != class {
					return nil
				}
				found[letter.ID()] = true
				r, err := letter.Requeue(rand.Uint64)
				if errors.Is(err, deadletters.ErrLeftOut) && len(ids) == 0 {
					fmt.Fprintln(l.Stderr, terminal.Escape(err.Error()))
					return nil
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(l.Stdout, "%s back to %s\n", letter.ID(), terminal.Escape(r.Topic))
				r.Topic = topology.Name(c.Namespace, r.Topic)
				records = append(records, r)
				return nil
			})
			if err != nil {
				return err
			}
			for _, id := range ids {
				if !found[id] {
					return fmt.Errorf("%w: %q; `sluice dead-letters list` prints the ids", deadletters.ErrNotFound, id)
				}
			}
			if dryRun || len(records) == 0 {
				fmt.Fprintf(l.Stdout, "%d records would go back\n", len(records))
				return nil
			}
			cl, err := c.client()
			if err != nil {
				return err
			}
			defer cl.Close()
			err = c.ask(ctx, func(ctx context.Context) error { return cl.ProduceSync(ctx, records...).FirstErr() })
			if err != nil {
				return fmt.Errorf("requeue: %w", err)
			}
			fmt.Fprintf(l.Stdout, "%d records went back\n", len(records))
			return nil
		},
	}
}
