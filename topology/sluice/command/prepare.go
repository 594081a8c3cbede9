package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/sluice-rl/sluice/topology/sluice/up"
)

func prepareCommand() *cobra.Command {
	return &cobra.Command{
		Use: "prepare [arguments of prompt-feeder prepare]", Short: "Make a problem file from DAPO, GSM8K or plain data",
		Long: "Runs `prompt-feeder prepare` with the same arguments; `sluice prepare --help` prints its help.",
		// Everything after the name is prompt-feeder's to read, --help too.
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			binary, err := up.Beside("prompt-feeder")
			if err != nil {
				return err
			}
			run := exec.Command(binary, append([]string{"prepare"}, args...)...)
			run.Stdin, run.Stdout, run.Stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
			// Ctrl-C reaches the whole foreground group; the child decides.
			signal.Ignore(os.Interrupt)
			defer signal.Reset(os.Interrupt)
			err = run.Run()
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return exitStatus(max(exit.ExitCode(), exitFailed))
			}
			if err != nil {
				return fmt.Errorf("run %s: %w", binary, err)
			}
			return nil
		},
	}
}
