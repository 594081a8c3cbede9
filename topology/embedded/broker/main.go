package broker

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/topology/process"
)

const (
	defaultPort    = 9092
	defaultMessage = 8 << 20
)

const about = `sluice-broker is a Kafka broker for one machine: transactions, consumer groups and
share groups on 127.0.0.1, everything kept in one directory. Every record it
acknowledged is there after kill -9; transactions that were open are then aborted.

The ready file says where it listens under the name kafka. Exit code 3: the data
directory is of a newer version, foreign or in use.`

// Program is sluice-broker.
func Program() process.Command {
	var cfg Config
	return process.Command{
		Name: "sluice-broker", About: about, Serves: true, Exits: exits,
		Flags: func(f *process.Flags) { cfg.register(f.Group("Broker")) },
		Check: func() error { return cfg.Validate() },
		Run: func(ctx context.Context, l *process.Life) error {
			b, err := Start(cfg, l.Log)
			if err != nil {
				return err
			}
			defer b.Close()
			l.Address("kafka", b.Address())
			l.Health.Begun()
			<-ctx.Done()
			return nil
		},
	}
}

// exits are the errors of Start after which another start is useless.
var exits = []process.Exit{
	{Err: ErrNewerData, Code: process.ExitUnusable}, {Err: ErrForeignData, Code: process.ExitUnusable}, {Err: ErrInUse, Code: process.ExitUnusable},
}

func (c *Config) register(f *pflag.FlagSet) {
	f.StringVar(&c.DataDir, "data-dir", "", "directory that keeps the data (made if missing)")
	f.IntVar(&c.Port, "port", defaultPort, "port on 127.0.0.1; 0 takes a free one")
	f.BoolVar(&c.SyncWrites, "sync-writes", false, "flush each batch to disk: survives the end of the machine, not only of the process")
	f.Int32Var(&c.MaxMessageBytes, "max-message-bytes", defaultMessage, "largest record batch of topics that say nothing else, bytes")
}
