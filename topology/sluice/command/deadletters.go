package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/sluice/deadletters"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

const deadLettersAbout = `Records that a stage could not handle, and why. Their texts are escaped: what is
not printable is shown, never sent to the terminal.`

// letters is what the commands about dead letters are told.
type letters struct {
	kafka
	asJSON bool
}

func (c *letters) register(flags *process.Flags) {
	jsonFlag(flags.Group("Letters"), &c.asJSON, "print one JSON object per letter, bytes as base64")
	c.kafka.register(flags, time.Minute, "how long reading may take")
}

func (c *letters) read(ctx context.Context, f func(deadletters.Letter) error) error {
	return c.ask(ctx, func(ctx context.Context) error {
		return deadletters.Read(ctx, c.Options(), topology.Name(c.Namespace, "dead-letters"), f)
	})
}

func deadLettersCommand() process.Command {
	return process.Command{
		Name: "dead-letters", Short: "List, show and requeue records that could not be handled", About: deadLettersAbout,
		Commands: []process.Command{listLetters(), showLetter(), requeueLetters()},
	}
}

func listLetters() process.Command {
	var (
		c            letters
		stage, class string
	)
	return process.Command{
		Name: "list", Short: "One line per letter", About: "One line per letter.\n\n" + deadLettersAbout,
		Flags: func(flags *process.Flags) {
			f := flags.Group("Letters")
			f.StringVar(&stage, "stage", "", "only letters of this stage")
			f.StringVar(&class, "class", "", "only letters of this class, such as undecodable")
			c.register(flags)
		},
		Check: func() error { return c.Check() },
		Run: func(ctx context.Context, l *process.Life) error {
			var rows [][]string
			err := c.read(ctx, func(letter deadletters.Letter) error {
				if stage != "" && letter.Body.GetStage() != stage || class != "" && letter.Body.GetErrorType() != class {
					return nil
				}
				if c.asJSON {
					return printJSON(l.Stdout, letter)
				}
				rows = append(rows, letter.Row())
				return nil
			})
			if err != nil || c.asJSON {
				return err
			}
			if len(rows) == 0 {
				fmt.Fprintln(l.Stdout, "no dead letters")
				return nil
			}
			fmt.Fprint(l.Stdout, terminal.Table(deadletters.Head(), rows))
			return nil
		},
	}
}

func showLetter() process.Command {
	var c letters
	return process.Command{
		Name: "show", Args: []string{"ID"}, Short: "One letter whole",
		About: "One letter whole; ID as `sluice dead-letters list` prints it, such as 0/17.\n\n" + deadLettersAbout,
		Flags: c.register, Check: func() error { return c.Check() },
		Run: func(ctx context.Context, l *process.Life) error {
			found := errors.New("found")
			err := c.read(ctx, func(letter deadletters.Letter) error {
				if letter.ID() != l.Args[0] {
					return nil
				}
				if !c.asJSON {
					letter.Show(l.Stdout)
				} else if err := printJSON(l.Stdout, letter); err != nil {
					return err
				}
				return found
			})
			if errors.Is(err, found) {
				return nil
			}
			if err != nil {
				return err
			}
			return fmt.Errorf("%w: %q; `sluice dead-letters list` prints the ids", deadletters.ErrNotFound, l.Args[0])
		},
	}
}

func printJSON(w io.Writer, letter deadletters.Letter) error {
	b, err := letter.JSON()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", b)
	return err
}
