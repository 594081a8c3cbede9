package clickhouseserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/topology/readyfile"
)

// Exit statuses, as of every binary here.
const (
	exitClean    = 0
	exitFailed   = 1
	exitUsage    = 2
	exitUnusable = 3
	exitHardStop = 4
)

const about = `sluice-clickhouse is ClickHouse for one machine: the engine of libchdb.so, served on
127.0.0.1 by ClickHouse's own HTTP and native protocols, everything kept in one
directory. An engine that dies is started again, up to 5 times a minute: what it had
acknowledged is there. Users "writer" and "reader" have passwords in files of that directory, whose
paths the ready file names. Started as root, the engine runs as --user.

Usage: sluice-clickhouse --data-dir DIR [flags]

Exit status: 0 stopped, 1 failed or the engine died, 2 wrong flags, 3 the data directory
is of a newer version, foreign or in use, or the library is unusable, 4 stopped hard.

Flags:
`

type options struct {
	Config
	readyFile string
	logLevel  string
	stdin     bool
	help      bool
}

// errHardStop: the engine had to be killed, or a second signal came before it stopped.
var errHardStop = errors.New("stopped hard")

// Main runs sluice-clickhouse with the arguments after the program's name and returns
// the exit status.
func Main(args []string, stdout, stderr io.Writer, open Opener) int {
	if len(args) == 1 && args[0] == engineCommand {
		return engineMain(open, slog.New(slog.NewTextHandler(stderr, nil)))
	}
	opts, flags, err := parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "sluice-clickhouse: %v\nsluice-clickhouse --help lists the flags\n", err)
		return exitUsage
	}
	if opts.help {
		fmt.Fprint(stdout, about, flags.FlagUsages())
		return exitClean
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(opts.logLevel)); err != nil {
		fmt.Fprintf(stderr, "sluice-clickhouse: --log-level is %q, want debug, info, warn or error\n", opts.logLevel)
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
	f := pflag.NewFlagSet("sluice-clickhouse", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.DataDir, "data-dir", "", "directory that keeps the data (made if missing)")
	f.StringVar(&o.Library, "lib", defaultLibrary(), "path of libchdb.so")
	f.IntVar(&o.HTTPPort, "http-port", 8123, "port of the HTTP protocol on 127.0.0.1; 0 takes a free one")
	f.IntVar(&o.TCPPort, "tcp-port", 9000, "port of the native protocol on 127.0.0.1; 0 takes a free one")
	f.StringVar(&o.User, "user", "nobody", "user to run the engine as, where started as root")
	f.DurationVar(&o.StartTimeout, "start-timeout", time.Minute, "longest time from start to the first answer")
	f.StringVar(&o.readyFile, "ready-file", "", `file that says {"pid":..,"http":..,"tcp":..,"writer_password_file":..,"reader_password_file":..} while it serves`)
	f.BoolVar(&o.stdin, "stop-with-stdin", false, "also stop when standard input closes")
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

// defaultLibrary is where `make tools` puts the library, seen from bin/.
func defaultLibrary() string {
	self, err := os.Executable()
	if err != nil {
		return filepath.Join(".tools", "lib", "libchdb.so")
	}
	return filepath.Join(filepath.Dir(self), "..", ".tools", "lib", "libchdb.so")
}

func serve(opts options, log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if opts.stdin {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	s, err := Start(ctx, opts.Config, log)
	if err != nil {
		if ctx.Err() != nil {
			log.Info("stopped before it served")
			return nil
		}
		return err
	}
	if opts.readyFile != "" {
		remove, err := readyfile.Write(opts.readyFile, map[string]string{
			"http": s.HTTP(), "tcp": s.TCP(),
			"writer_user": WriterUser, "writer_password_file": s.WriterPasswordFile(),
			"reader_user": ReaderUser, "reader_password_file": s.ReaderPasswordFile(),
		})
		if err != nil {
			return errors.Join(err, s.Stop())
		}
		defer remove()
	}
	s, err = keepServing(ctx, s, log)
	if err != nil {
		return err
	}
	if s == nil {
		log.Info("stopped while the engine was being started again")
		return nil
	}
	// From here a second signal ends both processes at once; what was acknowledged is
	// on disk already.
	hard := make(chan os.Signal, 1)
	signal.Notify(hard, os.Interrupt, syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- s.Stop() }()
	select {
	case err := <-done:
		if err == nil {
			log.Info("stopped")
		}
		return err
	case <-hard:
		return fmt.Errorf("%w by a second signal", errHardStop)
	}
}

// An engine that dies more often than this is not started again.
const (
	maxRestarts    = 5
	restartsWithin = time.Minute
)

// keepServing starts the engine again whenever it dies, until ctx ends; then it returns
// the server to stop, nil if none is running just then.
func keepServing(ctx context.Context, s *Server, log *slog.Logger) (*Server, error) {
	var deaths []time.Time
	for {
		select {
		case <-ctx.Done():
			return s, nil
		case <-s.Done():
		}
		for died := s.Err(); ; {
			now := time.Now()
			deaths = append(deaths, now)
			if n := len(deaths) - maxRestarts; n > 0 && now.Sub(deaths[n-1]) < restartsWithin {
				return nil, errors.Join(fmt.Errorf("%d deaths of the engine within %v: %w", n+maxRestarts, restartsWithin, died), s.Stop())
			}
			log.Error("the engine died: starting it again", "error", died)
			again, err := s.Restart(ctx)
			if err == nil {
				s = again
				break
			}
			if ctx.Err() != nil {
				// Its death was told when it happened; this stop is a clean one.
				_ = s.Stop()
				return nil, nil
			}
			died = err
		}
	}
}

func status(err error) int {
	switch {
	case err == nil:
		return exitClean
	case errors.Is(err, errHardStop):
		return exitHardStop
	case errors.Is(err, ErrNewerData), errors.Is(err, ErrForeignData), errors.Is(err, ErrInUse), errors.Is(err, ErrUnusable):
		return exitUnusable
	}
	return exitFailed
}
