package simpolicy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/state"
)

// Exit codes.
const (
	exitStopped = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
	exitHard    = 4
)

// Main runs the program and returns its exit status. environ looks up a variable, as
// os.LookupEnv does.
func Main(args []string, environ func(string) (string, bool), stdout, stderr io.Writer) int {
	var c config
	fs := c.flags()
	switch err := c.load(fs, args, environ); {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(stdout, about+fs.FlagUsages())
		return exitStopped
	case err != nil:
		fmt.Fprintf(stderr, "simpolicy: %v\nsimpolicy --help explains the flags.\n", err)
		return exitUsage
	}
	ctx, stop := signals(func() { os.Exit(exitHard) })
	defer stop()
	err := run(ctx, &c, c.logger(stderr))
	if err != nil {
		fmt.Fprintf(stderr, "simpolicy: %v\n", err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitStopped
	case errors.Is(err, state.ErrNewer), errors.Is(err, state.ErrInUse), errors.Is(err, state.ErrUnusable):
		return exitRefused
	case errors.Is(err, errUsage):
		return exitUsage
	}
	return exitFailed
}

// signals returns a context that the first signal ends; the second calls hard.
func signals(hard func()) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-got:
				if n > 0 {
					hard()
				}
				cancel()
			case <-ended:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(ended)
		cancel()
	}
}
