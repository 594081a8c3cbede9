package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/stages/internal/status"
	"github.com/sluice-rl/sluice/topology"
)

// Main runs a stage and returns its exit status; it is all of a stage's main().
func Main(s Spec) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return run(s, process{
		args:    os.Args[1:],
		environ: os.LookupEnv,
		stdin:   os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		signals: signals,
	})
}

// process is what a stage gets from the operating system, as values.
type process struct {
	args           []string
	environ        func(string) (string, bool)
	stdin          io.Reader
	stdout, stderr io.Writer
	signals        <-chan os.Signal
}

func run(s Spec, p process) int {
	if len(p.args) > 0 {
		if cmd, ok := s.Commands[p.args[0]]; ok {
			return report(s.Name+" "+p.args[0], p, untilSignal(p.signals, func(ctx context.Context) error {
				return cmd(ctx, p.args[1:], p.stdin, p.stdout, p.stderr)
			}))
		}
	}
	c := newConfig(s)
	if err := c.load(s, p.args, p.environ); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			fmt.Fprint(p.stdout, help(s, c.flags))
			return ExitOK
		}
		return report(s.Name, p, Usage(err))
	}
	if c.version {
		fmt.Fprintln(p.stdout, s.Name, buildVersion())
		return ExitOK
	}
	if s.Validate != nil {
		if err := s.Validate(); err != nil {
			return report(s.Name, p, Usage(err))
		}
	}
	return report(s.Name, p, serve(s, c, p))
}

// report says why the program or command of a name ends, where that is not plain, and
// gives the code.
func report(name string, p process, err error) int {
	code := ExitCode(err)
	if code != ExitOK {
		fmt.Fprintf(p.stderr, "%s: %s\n", name, printable(err.Error()))
	}
	if errors.Is(err, ErrUsage) {
		fmt.Fprintf(p.stderr, "%s: see %s --help\n", name, name)
	}
	return code
}

// serve is the life of a stage: observability up, Run, everything down.
func serve(s Spec, c *config, p process) error {
	log := c.logger(s, p.stderr)
	top, err := topology.Load(c.topology)
	if err != nil {
		return Usage(err)
	}
	entry, ok := top.Stages[s.Name]
	if !ok {
		return Usage(fmt.Errorf("topology has no stage %q: it has %v", s.Name, slices.Sorted(maps.Keys(top.Stages))))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(s.Name),
	)
	board := status.NewBoard(nil)
	health := &Health{board: board}
	board.Readiness(health.IsReady)
	health.Ready(workPart, errNotBegun)
	server, err := startServer(c.httpAddr, registry, health, log)
	if err != nil {
		return err
	}
	defer server.Stop()
	file := &readyFile{path: c.readyFile, http: server.Addr(), log: log}
	defer file.remove()
	health.onReady(file.write)

	env := &Env{Log: log, Metrics: registry, Kafka: c.cluster(top, log, registry, health), Topology: top, Stage: entry, Health: health, Status: board}
	env.Kafka.Status = board
	log.Info("started", "http", server.Addr(), "brokers", c.brokers, "namespace", c.namespace, "instance", env.Kafka.Instance)
	stopReporting, err := reportStatus(s.Name, env)
	if err != nil {
		return err
	}
	err = untilSignal(p.signals, func(ctx context.Context) error { return s.Run(ctx, env) })
	stopReporting(errors.Is(err, ErrHardStop))
	if err != nil {
		log.Error("stopped", "error", err, "exit_code", ExitCode(err))
		return err
	}
	log.Info("stopped", "exit_code", ExitOK)
	return nil
}

// untilSignal runs f with a context that the first signal ends. The second signal
// does not wait for f.
func untilSignal(signals <-chan os.Signal, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stopping := false
	for {
		select {
		case err := <-done:
			if stopping && errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case sig := <-signals:
			if stopping {
				return fmt.Errorf("%w: second %v", ErrHardStop, sig)
			}
			stopping = true
			cancel()
		}
	}
}

func (c *config) logger(s Spec, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.logLevel}
	var h slog.Handler = slog.NewTextHandler(w, opts)
	if c.logFormat == "json" {
		h = slog.NewJSONHandler(w, opts)
	}
	return slog.New(h).With("stage", s.Name)
}
