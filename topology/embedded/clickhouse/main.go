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

	"github.com/sluice-rl/sluice/topology/process"
)

const about = `sluice-clickhouse is ClickHouse for one machine: the engine of libchdb.so, served on
127.0.0.1 by ClickHouse's own HTTP and native protocols, everything kept in one
directory. An engine that dies is started again, up to 5 times a minute: what it had
acknowledged is there. Started as root, the engine runs as --user.

The ready file says where it listens, under http and tcp, and under
writer_password_file, reader_password_file and pages_password_file where the passwords of
the users "writer", "reader" and "pages" are. Exit code 3: the data directory is of a newer version, foreign or in
use, or the library is unusable.`

// Main runs sluice-clickhouse, or its engine process, and returns the exit code.
func Main(open Opener) int {
	if len(os.Args) == 2 && os.Args[1] == engineCommand {
		return engineMain(open, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	}
	return process.Main(program())
}

func program() process.Command {
	var cfg Config
	var stdin bool
	return process.Command{
		Name: "sluice-clickhouse", About: about, Serves: true, Exits: exits,
		Flags: func(flags *process.Flags) {
			f := flags.Group("ClickHouse")
			cfg.register(f)
			f.BoolVar(&stdin, "stop-with-stdin", false, "also stop when standard input closes")
		},
		Check: func() error { return cfg.Validate() },
		Run: func(ctx context.Context, l *process.Life) error {
			if stdin {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				defer cancel()
				go func() {
					_, _ = io.Copy(io.Discard, l.Stdin)
					cancel()
				}()
			}
			return serve(ctx, cfg, l)
		},
	}
}

// exits are the errors after which another start is useless.
var exits = []process.Exit{
	{Err: ErrNewerData, Code: process.ExitUnusable}, {Err: ErrForeignData, Code: process.ExitUnusable},
	{Err: ErrInUse, Code: process.ExitUnusable}, {Err: ErrUnusable, Code: process.ExitUnusable},
}

func (c *Config) register(f *pflag.FlagSet) {
	f.StringVar(&c.DataDir, "data-dir", "", "directory that keeps the data (made if missing)")
	f.StringVar(&c.Library, "lib", defaultLibrary(), "path of libchdb.so")
	f.IntVar(&c.HTTPPort, "http-port", 8123, "port of the HTTP protocol on 127.0.0.1; 0 takes a free one")
	f.IntVar(&c.TCPPort, "tcp-port", 9000, "port of the native protocol on 127.0.0.1; 0 takes a free one")
	f.StringVar(&c.User, "user", "nobody", "user to run the engine as, where started as root")
	f.StringVar(&c.PagesDatabase, "pages-database", "sluice", "the one database that the user \"pages\" may read, within limits of time, rows and memory")
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

// serve serves until ctx ends.
func serve(ctx context.Context, cfg Config, l *process.Life) error {
	s, err := Start(ctx, cfg, l.Log)
	if err != nil {
		if ctx.Err() != nil {
			l.Log.Info("stopped before it served")
			return nil
		}
		return err
	}
	l.Address("http", s.HTTP())
	l.Address("tcp", s.TCP())
	l.Address("writer_user", WriterUser)
	l.Address("writer_password_file", s.WriterPasswordFile())
	l.Address("reader_user", ReaderUser)
	l.Address("reader_password_file", s.ReaderPasswordFile())
	l.Address("pages_user", PagesUser)
	l.Address("pages_password_file", s.PagesPasswordFile())
	l.Health.Begun()
	s, err = keepServing(ctx, s, l)
	if s == nil {
		if err == nil {
			l.Log.Info("stopped while the engine was being started again")
		}
		return err
	}
	return errors.Join(err, s.Stop())
}

// An engine that dies more often than this is not started again.
const (
	maxRestarts    = 5
	restartsWithin = time.Minute
)

// keepServing starts the engine again whenever it dies, until ctx ends; then it returns
// the server to stop, nil if none is running just then.
func keepServing(ctx context.Context, s *Server, l *process.Life) (*Server, error) {
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
			l.Log.Error("the engine died: starting it again", "error", died)
			l.Health.Ready("engine", died)
			again, err := s.Restart(ctx)
			if err == nil {
				s = again
				l.Health.Ready("engine", nil)
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
