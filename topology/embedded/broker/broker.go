package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology/process/lock"
)

// ErrInUse: another sluice-broker serves the data directory.
var ErrInUse = errors.New("data directory is in use")

// Config says what the broker keeps and where it listens.
type Config struct {
	// DataDir holds everything; it is made if it does not exist.
	DataDir string
	// Port on 127.0.0.1; 0 takes a free one.
	Port int
	// SyncWrites makes each batch survive the end of the machine, not only of the
	// process, at the price of a disk flush per batch.
	SyncWrites bool
	// MaxMessageBytes bounds one record batch of topics that say nothing else.
	MaxMessageBytes int32
}

// Validate refuses what cannot work, naming the flag.
func (c Config) Validate() error {
	if c.DataDir == "" {
		return errors.New("--data-dir is empty: name the directory that keeps the data")
	}
	if c.Port < 0 || c.Port > 65535 {
		return fmt.Errorf("--port is %d, want 0 (a free one) to 65535", c.Port)
	}
	if c.MaxMessageBytes < 1<<20 {
		return fmt.Errorf("--max-message-bytes is %d, want at least 1048576", c.MaxMessageBytes)
	}
	return nil
}

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	dir     string
	lock    *lock.Lock
	log     *slog.Logger
	// stopKeeping ends the keeper of share groups and waits for it.
	stopKeeping func()
}

// Start opens the data directory, replays it and listens. Errors: ErrNewerData,
// ErrForeignData, ErrInUse, or what the system says of the port.
func Start(cfg Config, log *slog.Logger) (*Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := claim(cfg.DataDir); err != nil {
		return nil, err
	}
	held, err := lockDir(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	b := &Broker{dir: cfg.DataDir, lock: held, log: log, stopKeeping: func() {}}
	if err := b.start(cfg); err != nil {
		b.Close()
		return nil, fmt.Errorf("start broker on %s: %w", cfg.DataDir, err)
	}
	return b, nil
}

func (b *Broker) start(cfg Config) error {
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID("sluice"),
		kfake.DataDir(filepath.Join(cfg.DataDir, "kafka")),
		kfake.BrokerConfigs(settings(cfg)),
		kfake.WithLogger(logger{b.log}),
	}
	if cfg.SyncWrites {
		opts = append(opts, kfake.SyncWrites())
	}
	crash, err := crashed(cfg.DataDir)
	if err != nil {
		return err
	}
	if crash {
		if err := recoverFromCrash(cfg, opts, b.log); err != nil {
			return fmt.Errorf("recover from a crash: %w", err)
		}
	}
	if err := setServing(cfg.DataDir); err != nil {
		return err
	}
	if b.cluster, err = kfake.NewCluster(append(opts, kfake.Ports(cfg.Port))...); err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Address()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	b.stopKeeping = func() { cancel(); <-done; cl.Close() }
	go func() { defer close(done); keepShareGroups(ctx, cfg, cl, b.log) }()
	return nil
}

// settings are the broker's own configs. Share groups: one slot of an executor is one
// member, so a group must be allowed many; and the broker's limit of deliveries must
// lie above the stages' own, because a record past the broker's limit vanishes.
func settings(cfg Config) map[string]string {
	return map[string]string{
		"message.max.bytes":                      strconv.Itoa(int(cfg.MaxMessageBytes)),
		"default.replication.factor":             "1",
		"group.share.max.size":                   "1000",
		"group.share.max.share.sessions":         "2000",
		"group.share.delivery.count.limit":       "10",
		"group.share.partition.max.record.locks": "10000",
		// Seen soon after a lock has run out, so that a killed executor's records
		// do not wait seconds more.
		"share.record.lock.sweep.interval.ms": "500",
	}
}

// lockDir keeps a second broker off the directory; the lock ends with the process.
func lockDir(dir string) (*lock.Lock, error) {
	l, err := lock.Take(filepath.Join(dir, "lock"))
	switch {
	case errors.Is(err, lock.ErrHeld):
		return nil, fmt.Errorf("%w: another sluice-broker serves %s: %w: stop it, or name another directory with --data-dir", ErrInUse, dir, err)
	case err != nil:
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return l, nil
}

// Address is where the broker listens: 127.0.0.1:port.
func (b *Broker) Address() string { return b.cluster.ListenAddrs()[0] }

// Close writes what is only in memory and stops.
func (b *Broker) Close() {
	b.stopKeeping()
	if b.cluster != nil {
		b.cluster.Close()
		if err := unsetServing(b.dir); err != nil {
			b.log.Warn("the next start will take this stop for a crash", "error", err)
		}
	}
	b.lock.Close()
}

// logger passes kfake's lines on.
type logger struct{ log *slog.Logger }

func (l logger) Logf(level kfake.LogLevel, format string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case kfake.LogLevelError:
		to = slog.LevelError
	case kfake.LogLevelWarn:
		to = slog.LevelWarn
	}
	if l.log.Enabled(context.Background(), to) {
		l.log.Log(context.Background(), to, fmt.Sprintf(format, args...))
	}
}
