package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/sluice/deadletters"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

const deadLettersAbout = `Records that a stage could not handle, and why. Their texts are escaped: what is
not printable is shown, never sent to the terminal.`

func deadLettersCommand() *cobra.Command {
	var (
		where   cluster
		asJSON  bool
		timeout time.Duration
	)
	c := &cobra.Command{Use: "dead-letters", Short: "List and show records that could not be handled", Long: deadLettersAbout}
	where.register(c.PersistentFlags())
	c.PersistentFlags().BoolVar(&asJSON, "json", false, "print one JSON object per letter, bytes as base64")
	c.PersistentFlags().DurationVar(&timeout, "timeout", time.Minute, "how long reading may take")
	read := func(f func(deadletters.Letter) error) error {
		if _, err := where.load(); err != nil {
			return err
		}
		ctx, stop := untilSignal()
		defer stop()
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer from %v within %v (--timeout)", where.brokers, timeout))
		defer cancel()
		err := deadletters.Read(ctx, where.brokers, topology.Name(where.namespace, "dead-letters"), f)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	list := &cobra.Command{Use: "list", Short: "One line per letter", Args: noArgs}
	var stage, class string
	list.Flags().StringVar(&stage, "stage", "", "only letters of this stage")
	list.Flags().StringVar(&class, "class", "", "only letters of this class, such as undecodable")
	list.RunE = func(c *cobra.Command, _ []string) error {
		var rows [][]string
		err := read(func(l deadletters.Letter) error {
			if stage != "" && l.Body.GetStage() != stage || class != "" && l.Body.GetErrorType() != class {
				return nil
			}
			if asJSON {
				return printJSON(c, l)
			}
			rows = append(rows, l.Row())
			return nil
		})
		if err != nil || asJSON {
			return err
		}
		if len(rows) == 0 {
			fmt.Fprintln(c.OutOrStdout(), "no dead letters")
			return nil
		}
		fmt.Fprint(c.OutOrStdout(), terminal.Table(deadletters.Head(), rows))
		return nil
	}
	showOne := &cobra.Command{Use: "show ID", Short: "One letter whole; ID as `list` prints it"}
	showOne.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%w: want one id as `sluice dead-letters list` prints it, such as 0/17", errUsage)
		}
		return nil
	}
	showOne.RunE = func(c *cobra.Command, args []string) error {
		found := errors.New("found")
		err := read(func(l deadletters.Letter) error {
			if l.ID() != args[0] {
				return nil
			}
			if asJSON {
				if err := printJSON(c, l); err != nil {
					return err
				}
			} else {
				l.Show(c.OutOrStdout())
			}
			return found
		})
		if errors.Is(err, found) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: %q; `sluice dead-letters list` prints the ids", deadletters.ErrNotFound, args[0])
	}
	c.AddCommand(list, showOne)
	return c
}

func printJSON(c *cobra.Command, l deadletters.Letter) error {
	b, err := l.JSON()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s\n", b)
	return err
}

func lines(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }
