package broker

import (
	"context"
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/topology/process/daemon"
)

const (
	defaultPort    = 9092
	defaultMessage = 8 << 20
)

const about = `sluice-broker is a Kafka broker for one machine: transactions, consumer groups and
share groups on 127.0.0.1, everything kept in one directory. Every record it
acknowledged is there after kill -9; transactions that were open are then aborted.

Usage: sluice-broker --data-dir DIR [flags]

Exit status: 0 stopped, 1 failed, 2 wrong flags, 3 the data directory is of a newer
version, foreign or in use, 4 stopped hard by a second signal.

Flags:
`

// Main runs sluice-broker with the arguments after the program's name and returns the
// exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	var cfg Config
	return daemon.Main(daemon.Program{
		Name: "sluice-broker", About: about, ReadyFile: `{"pid":..,"kafka":"127.0.0.1:port"}`,
		Flags: cfg.flags, Validate: func() error { return cfg.Validate() },
		Unusable: unusable,
		Serve: func(ctx context.Context, log *slog.Logger, ready func(map[string]string) error) (func() error, error) {
			b, err := Start(cfg, log)
			if err != nil {
				return nil, err
			}
			log.Info("serving", "kafka", b.Address(), "data_dir", cfg.DataDir)
			stop := func() error { b.Close(); return nil }
			if err := ready(map[string]string{"kafka": b.Address()}); err != nil {
				return stop, err
			}
			<-ctx.Done()
			return stop, nil
		},
	}, args, stdout, stderr)
}

// unusable are the errors of Start that a restart does not mend.
var unusable = []error{ErrNewerData, ErrForeignData, ErrInUse}

func (c *Config) flags(f *pflag.FlagSet) {
	f.StringVar(&c.DataDir, "data-dir", "", "directory that keeps the data (made if missing)")
	f.IntVar(&c.Port, "port", defaultPort, "port on 127.0.0.1; 0 takes a free one")
	f.BoolVar(&c.SyncWrites, "sync-writes", false, "flush each batch to disk: survives the end of the machine, not only of the process")
	f.Int32Var(&c.MaxMessageBytes, "max-message-bytes", defaultMessage, "largest record batch of topics that say nothing else, bytes")
}
