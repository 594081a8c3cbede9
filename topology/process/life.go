package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/topology/process/readyfile"
)

// Life is what Run gets of its process.
type Life struct {
	// Args are the arguments, as many as Command.Args has.
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Log            *slog.Logger
	// LogFlags are the settings of the log, as flags to pass on to another process.
	LogFlags []string

	// Health is of a program that serves, Metrics and HTTP of one that has no health of
	// its own; nil otherwise. HTTP takes further handlers; they end with the process,
	// which lets requests in flight end.
	Health  *Health
	Metrics *prometheus.Registry
	HTTP    *http.ServeMux

	server *server
	hard   chan struct{}
	failed chan error

	mu        sync.Mutex
	addresses map[string]string
}

// Hard is closed at the second signal.
func (l *Life) Hard() <-chan struct{} { return l.hard }

// Addr is where HTTP is served, host:port.
func (l *Life) Addr() string { return l.server.Addr() }

// Address has the ready file say where else the program listens, under a name of its
// own such as "kafka". Call it before the program is ready.
func (l *Life) Address(name, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addresses[name] = address
}

// run settles the settings and runs the command.
func (c *call) run(cmd *Command, flags *Flags, common *common, args []string) error {
	set := flags.all()
	if err := refuseSecretFlags(set); err != nil {
		return Usage(err)
	}
	if !cmd.PassesOn {
		if err := settle(set, c.Environ); err != nil {
			return Usage(err)
		}
	}
	if err := common.check(cmd); err != nil {
		return Usage(err)
	}
	if cmd.Check != nil {
		if err := cmd.Check(); err != nil {
			return Usage(err)
		}
	}
	l := &Life{
		Args: args, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Log: common.logger(c.Stderr),
		LogFlags: []string{"--log-level", common.level, "--log-format", common.format},
		hard:     make(chan struct{}), failed: make(chan error, 1), addresses: map[string]string{},
	}
	c.exits = append(cmd.Exits, c.exits...)
	if !cmd.Serves {
		return c.untilSignal(cmd, l)
	}
	return c.serve(cmd, l, common, set)
}

// heapFloor is counted as heap that is in use and is never touched, so it takes address
// space and no memory. Without it a program that keeps little and passes records of
// tens of kilobytes on collects garbage after every few of them: the collector waits
// until the heap has doubled.
const heapFloor = 16 << 20

// serve is the life of a program that serves: what is seen of it up, Run, everything
// down.
func (c *call) serve(cmd *Command, l *Life, common *common, set *pflag.FlagSet) error {
	floor := make([]byte, heapFloor)
	defer runtime.KeepAlive(floor)
	l.Health = &Health{}
	l.Health.Ready(workPart, errNotBegun)
	if !cmd.OwnHealth {
		stop, err := l.startServer(cmd.Name, common.httpAddr)
		if err != nil {
			return err
		}
		defer stop()
	}
	if common.readyFile != "" {
		// One of a killed predecessor must not be believed.
		if err := readyfile.Remove(common.readyFile); err != nil {
			return err
		}
		defer func() { _ = readyfile.Remove(common.readyFile) }()
	}
	l.Health.onReady(func() { l.ready(common.readyFile) })

	l.Log.Info("started", "program", cmd.Name, "version", Version(), "settings", given(set))
	err := c.untilSignal(cmd, l)
	code := ExitCode(err, c.exits...)
	if err != nil {
		l.Log.Error("stopped", "error", err, "exit_code", code)
		c.logged = true
		return err
	}
	l.Log.Info("stopped", "exit_code", code)
	return nil
}

// startServer serves health and metrics.
func (l *Life) startServer(program, addr string) (stop func(), err error) {
	l.Metrics = prometheus.NewRegistry()
	l.Metrics.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(program),
	)
	if l.server, err = startServer(addr, l.Metrics, l.Health, l.fail); err != nil {
		return nil, err
	}
	l.HTTP = l.server.mux
	l.Address("health", l.server.Addr())
	return l.server.Stop, nil
}

// ready is called once, when the program is ready for the first time.
func (l *Life) ready(path string) {
	l.mu.Lock()
	addresses := maps.Clone(l.addresses)
	l.mu.Unlock()
	l.Log.Info("ready", "addresses", addresses)
	if path == "" {
		return
	}
	if _, err := readyfile.Write(path, addresses); err != nil {
		// What waits for the file would wait for ever.
		l.fail(fmt.Errorf("--ready-file: %w", err))
	}
}

// fail ends the program; the first reason counts.
func (l *Life) fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
}

// given are the settings that differ from their defaults, as flags.
func given(set *pflag.FlagSet) []string {
	var out []string
	set.VisitAll(func(f *pflag.Flag) {
		if f.Value.String() != f.DefValue {
			out = append(out, "--"+f.Name+"="+f.Value.String())
		}
	})
	return out
}

// untilSignal runs the command with a context that the first signal ends.
func (c *call) untilSignal(cmd *Command, l *Life) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- cmd.Run(ctx, l) }()
	var failed error
	for signals := 0; ; {
		select {
		case err := <-done:
			if signals > 0 || failed != nil {
				err = afterSignal(err, cmd.Serves)
			}
			return errors.Join(failed, err)
		case failed = <-l.failed:
			cancel()
		case sig := <-c.Signals:
			signals++
			switch {
			case signals == 1:
				l.Log.Debug("stopping", "signal", sig)
				cancel()
			case signals == 2 && cmd.StopsItself:
				close(l.hard)
			default:
				return fmt.Errorf("%w: by another signal, %v", ErrHardStop, sig)
			}
		}
	}
}

func (c *common) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.level)) // checked
	opts := &slog.HandlerOptions{Level: level}
	if c.format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// writable says whether files can be made in a folder.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".ready-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
