package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/topology/process/readyfile"
)

// Exit statuses, as of every binary here.
const (
	ExitClean    = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitUnusable = 3
	ExitHardStop = 4
)

// ErrHardStop: the server had to be killed, or a second signal came before it had
// stopped.
var ErrHardStop = errors.New("stopped hard")

// Program is a server.
type Program struct {
	Name string
	// About is the help, up to the flags.
	About string
	// Flags adds those of the server to its own.
	Flags func(*pflag.FlagSet)
	// ReadyFile says what Serve's addresses are, for the help of --ready-file.
	ReadyFile string
	// Validate refuses flags that cannot work.
	Validate func() error
	// Serve serves until ctx ends and returns what stops it, nil if nothing runs. It
	// calls ready with the server's addresses once it serves.
	Serve func(ctx context.Context, log *slog.Logger, ready func(addresses map[string]string) error) (stop func() error, err error)
	// Unusable are the errors after which another start is useless.
	Unusable []error
}

// Main runs a server with the arguments after the program's name and returns the exit
// status.
func Main(p Program, args []string, stdout, stderr io.Writer) int {
	f := pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	p.Flags(f)
	readyFile := f.String("ready-file", "", "file that says "+p.ReadyFile+" while it serves")
	logLevel := f.String("log-level", "info", "debug, info, warn or error")
	help := f.BoolP("help", "h", false, "print this and exit")
	usage := func(err error) int {
		fmt.Fprintf(stderr, "%s: %v\n%s --help lists the flags\n", p.Name, err, p.Name)
		return ExitUsage
	}
	if err := f.Parse(args); err != nil {
		return usage(err)
	}
	if *help {
		fmt.Fprint(stdout, p.About, f.FlagUsages())
		return ExitClean
	}
	if f.NArg() > 0 {
		return usage(fmt.Errorf("argument %q: only flags are taken", f.Arg(0)))
	}
	if err := p.Validate(); err != nil {
		return usage(err)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(*logLevel)); err != nil {
		return usage(fmt.Errorf("--log-level is %q, want debug, info, warn or error", *logLevel))
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	err := serve(p, *readyFile, log)
	if err != nil {
		log.Error("stopped", "error", err)
	} else {
		log.Info("stopped")
	}
	return Status(err, p.Unusable...)
}

func serve(p Program, readyFile string, log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	unready := func() error { return nil }
	stopServer, err := p.Serve(ctx, log, func(addresses map[string]string) error {
		if readyFile == "" {
			return nil
		}
		remove, err := readyfile.Write(readyFile, addresses)
		if err == nil {
			unready = remove
		}
		return err
	})
	// From here a second signal ends the process at once; what was acknowledged is on
	// disk already.
	hard := make(chan os.Signal, 1)
	signal.Notify(hard, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(hard)
	done := make(chan error, 1)
	go func() {
		if stopServer != nil {
			err = errors.Join(err, stopServer())
		}
		_ = unready() // a file that stays names a pid that is gone
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-hard:
		return fmt.Errorf("%w by a second signal", ErrHardStop)
	}
}

// Status is the exit status that an error stands for. unusable are the errors after
// which another start is useless.
func Status(err error, unusable ...error) int {
	switch {
	case err == nil:
		return ExitClean
	case errors.Is(err, ErrHardStop):
		return ExitHardStop
	case slices.ContainsFunc(unusable, func(u error) bool { return errors.Is(err, u) }):
		return ExitUnusable
	}
	return ExitFailed
}
