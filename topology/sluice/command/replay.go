package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/sluice/apply"
	"github.com/sluice-rl/sluice/topology/sluice/up"
)

const replayAbout = "Runs `reward-scorer replay` with the same arguments, and first makes the topics that it\n" +
	"writes, unless --to names a folder. `sluice replay --help` prints its help."

func replayCommand() *cobra.Command {
	return &cobra.Command{
		Use: "replay [arguments of reward-scorer replay]", Short: "Run what was recorded through another reward", Long: replayAbout,
		// Everything after the name is reward-scorer's to read, --help too.
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			binary, err := up.Beside("reward-scorer")
			if err != nil {
				return err
			}
			if err := makeReplayTopics(args); err != nil {
				return err
			}
			run := exec.Command(binary, append([]string{"replay"}, args...)...)
			run.Stdin, run.Stdout, run.Stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
			return passSignals(run)
		},
	}
}

// makeReplayTopics makes the topics of a replay that writes topics. Of arguments that
// are wrong it says nothing: reward-scorer does.
func makeReplayTopics(args []string) error {
	var where cluster
	f := pflag.NewFlagSet("replay", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.ParseErrorsAllowlist.UnknownFlags = true
	where.register(f)
	id, to, format, archive := f.String("id", "", ""), f.String("to", "", ""), f.String("format", "", ""), f.String("archive", "", "")
	if err := f.Parse(args); err != nil || topology.CheckReplayID(*id) != nil || *to != "" || *format != "" {
		return nil
	}
	if _, err := os.Stat(*archive); *archive != "" && err != nil {
		return nil
	}
	t, err := where.load()
	if err != nil {
		return err
	}
	cl, err := where.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, stop := untilSignal()
	defer stop()
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer from %v within %v", where.brokers, patience))
	defer cancel()
	_, err = apply.Apply(ctx, cl, replayTopology(t), apply.Options{Namespace: topology.ReplayNamespace(where.namespace, *id)})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("topics of replay %s: %w", *id, err)
	}
	return nil
}

// replayTopology has what a replay writes and metrics-writer reads.
func replayTopology(t topology.Topology) topology.Topology {
	writer := t.Stages["metrics-writer"]
	topics := map[string]topology.Topic{}
	for name := range maps.Keys(t.Topics) {
		// metrics-writer speaks of itself in the original's namespace.
		if name == topology.StatusTopic {
			continue
		}
		if slices.Contains(writer.Reads, name) || slices.Contains(writer.Writes, name) {
			topics[name] = t.Topics[name]
		}
	}
	t.Topics, t.Stages = topics, map[string]topology.Stage{"metrics-writer": writer}
	return t
}

// passSignals runs a child that gets the signals this process gets, whoever sent them,
// each once: it is in a process group of its own. Where this process is killed, it is
// told to end.
func passSignals(run *exec.Cmd) error {
	// The kernel tells it when the thread ends that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := run.Start(); err != nil {
		return fmt.Errorf("run %s: %w", run.Path, err)
	}
	done := make(chan error, 1)
	go func() { done <- run.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = run.Process.Signal(s)
		case err := <-done:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return exitStatus(max(exit.ExitCode(), exitFailed))
			}
			return err
		}
	}
}
