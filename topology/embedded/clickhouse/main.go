package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/topology/process/daemon"
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

// Main runs sluice-clickhouse with the arguments after the program's name and returns
// the exit status.
func Main(args []string, stdout, stderr io.Writer, open Opener) int {
	if len(args) == 1 && args[0] == engineCommand {
		return engineMain(open, slog.New(slog.NewTextHandler(stderr, nil)))
	}
	var cfg Config
	var stdin bool
	return daemon.Main(daemon.Program{
		Name: "sluice-clickhouse", About: about,
		ReadyFile: `{"pid":..,"http":..,"tcp":..,"writer_password_file":..,"reader_password_file":..}`,
		Flags: func(f *pflag.FlagSet) {
			cfg.flags(f)
			f.BoolVar(&stdin, "stop-with-stdin", false, "also stop when standard input closes")
		},
		Validate: func() error { return cfg.Validate() },
		Unusable: unusable,
		Serve: func(ctx context.Context, log *slog.Logger, ready func(map[string]string) error) (func() error, error) {
			if stdin {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				go func() {
					_, _ = io.Copy(io.Discard, os.Stdin)
					cancel()
				}()
			}
			return serve(ctx, cfg, log, ready)
		},
	}, args, stdout, stderr)
}

// unusable are the errors of Start that a restart does not mend.
var unusable = []error{ErrNewerData, ErrForeignData, ErrInUse, ErrUnusable}

func (c *Config) flags(f *pflag.FlagSet) {
	f.StringVar(&c.DataDir, "data-dir", "", "directory that keeps the data (made if missing)")
	f.StringVar(&c.Library, "lib", defaultLibrary(), "path of libchdb.so")
	f.IntVar(&c.HTTPPort, "http-port", 8123, "port of the HTTP protocol on 127.0.0.1; 0 takes a free one")
	f.IntVar(&c.TCPPort, "tcp-port", 9000, "port of the native protocol on 127.0.0.1; 0 takes a free one")
	f.StringVar(&c.User, "user", "nobody", "user to run the engine as, where started as root")
	f.DurationVar(&c.StartTimeout, "start-timeout", time.Minute, "longest time from start to the first answer")
}

// defaultLibrary is where `make tools` puts the library, seen from bin/.
func defaultLibrary() string {
	self, err := os.Executable()
	if err != nil {
		return filepath.Join(".tools", "lib", "libchdb.so")
	}
	return filepath.Join(filepath.Dir(self), "..", ".tools", "lib", "libchdb.so")
}

func serve(ctx context.Context, cfg Config, log *slog.Logger, ready func(map[string]string) error) (stop func() error, err error) {
	s, err := Start(ctx, cfg, log)
	if err != nil {
		if ctx.Err() != nil {
			log.Info("stopped before it served")
			return nil, nil
		}
		return nil, err
	}
	err = ready(map[string]string{
		"http": s.HTTP(), "tcp": s.TCP(),
		"writer_user": WriterUser, "writer_password_file": s.WriterPasswordFile(),
		"reader_user": ReaderUser, "reader_password_file": s.ReaderPasswordFile(),
	})
	if err != nil {
		return s.Stop, err
	}
	s, err = keepServing(ctx, s, log)
	if s == nil {
		if err == nil {
			log.Info("stopped while the engine was being started again")
		}
		return nil, err
	}
	return s.Stop, err
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
