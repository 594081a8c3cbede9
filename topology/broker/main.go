package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/topology/readyfile"
)

// Exit statuses, as of every binary here.
const (
	exitClean      = 0
	exitFailed     = 1
	exitUsage      = 2
	exitUnusable   = 3
	exitHardStop   = 4
	defaultPort    = 9092
	defaultMessage = 8 << 20
)

const about = `sluice-broker is a Kafka broker for one machine: transactions, consumer groups and
share groups on 127.0.0.1, everything kept in one directory. Every record it
acknowledged is there after kill -9.

Usage: sluice-broker --data-dir DIR [flags]

Exit status: 0 stopped, 1 failed, 2 wrong flags, 3 the data directory is of a newer
version, foreign or in use, 4 stopped hard by a second signal.

Flags:
`

type options struct {
	Config
	readyFile string
	logLevel  string
	help      bool
}

// Main runs sluice-broker with the arguments after the program's name and returns the
// exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	opts, flags, err := parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "sluice-broker: %v\nsluice-broker --help lists the flags\n", err)
		return exitUsage
	}
	if opts.help {
		fmt.Fprint(stdout, about, flags.FlagUsages())
		return exitClean
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(opts.logLevel)); err != nil {
		fmt.Fprintf(stderr, "sluice-broker: --log-level is %q, want debug, info, warn or error\n", opts.logLevel)
		return exitUsage
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	if err := serve(opts, log); err != nil {
		log.Error("stopped", "error", err)
		return status(err)
	}
	return exitClean
}

func parse(args []string) (options, *pflag.FlagSet, error) {
	var o options
	f := pflag.NewFlagSet("sluice-broker", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.DataDir, "data-dir", "", "directory that keeps the data (made if missing)")
	f.IntVar(&o.Port, "port", defaultPort, "port on 127.0.0.1; 0 takes a free one")
	f.BoolVar(&o.SyncWrites, "sync-writes", false, "flush each batch to disk: survives the end of the machine, not only of the process")
	f.Int32Var(&o.MaxMessageBytes, "max-message-bytes", defaultMessage, "largest record batch of topics that say nothing else, bytes")
	f.StringVar(&o.readyFile, "ready-file", "", `file that says {"pid":..,"kafka":"127.0.0.1:port"} while the broker serves`)
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.BoolVarP(&o.help, "help", "h", false, "print this and exit")
	if err := f.Parse(args); err != nil {
		return o, f, err
	}
	if o.help {
		return o, f, nil
	}
	if f.NArg() > 0 {
		return o, f, fmt.Errorf("argument %q: only flags are taken", f.Arg(0))
	}
	return o, f, o.Validate()
}

func serve(opts options, log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := Start(opts.Config, log)
	if err != nil {
		return err
	}
	if opts.readyFile != "" {
		remove, err := readyfile.Write(opts.readyFile, map[string]string{"kafka": b.Address()})
		if err != nil {
			b.Close()
			return err
		}
		defer func() { _ = remove() }() // a file that stays names a pid that is gone
	}
	log.Info("serving", "kafka", b.Address(), "data_dir", opts.DataDir)
	<-ctx.Done()
	// From here a second signal ends the process at once; what was acknowledged is
	// on disk already.
	hard := make(chan os.Signal, 1)
	signal.Notify(hard, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() { b.Close(); close(done) }()
	select {
	case <-done:
		log.Info("stopped")
		return nil
	case <-hard:
		return errHardStop
	}
}

// errHardStop: a second signal came before the clean stop was done.
var errHardStop = errors.New("stopped hard by a second signal")

func status(err error) int {
	switch {
	case errors.Is(err, errHardStop):
		return exitHardStop
	case errors.Is(err, ErrNewerData), errors.Is(err, ErrForeignData), errors.Is(err, ErrInUse):
		return exitUnusable
	}
	return exitFailed
}
