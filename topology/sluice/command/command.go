package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology/cluster"
	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/sluice/supervise"
	"github.com/sluice-rl/sluice/topology/sluice/up"
)

const about = `sluice starts, inspects and repairs a Sluice system.

It starts the stages' own binaries, which it looks for beside itself, and speaks to
them only as any other operator would: through flags, files, Kafka and SQL.`

// Program is sluice.
func Program() process.Command {
	return process.Command{
		Name: "sluice", About: about,
		Exits: []process.Exit{
			{Err: up.ErrUsage, Code: process.ExitUsage}, {Err: up.ErrUnusable, Code: process.ExitUnusable},
			{Err: supervise.ErrChild, Code: process.ExitUnusable},
		},
		Commands: []process.Command{
			upCommand(), applyCommand(), statusCommand(), deadLettersCommand(), closeCommand(), prepareCommand(), exportCommand(), replayCommand(), uiCommand(),
		},
	}
}

// kafka is the cluster that a command asks, and how long it waits for an answer.
type kafka struct {
	cluster.Config
	timeout time.Duration
}

// register declares the flags of the cluster, and --timeout with what it bounds.
func (k *kafka) register(flags *process.Flags, timeout time.Duration, usage string) {
	f := flags.Group("Kafka")
	k.Register(f)
	f.DurationVar(&k.timeout, "timeout", timeout, usage)
}

func (k *kafka) client() (*kgo.Client, error) {
	cl, err := kgo.NewClient(append(k.Options(), kgo.ClientID("sluice"))...)
	if err != nil {
		return nil, process.Usage(fmt.Errorf("--brokers: %w", err))
	}
	return cl, nil
}

// ask gives f the time that there is, and an error that it ran out of it that cause.
func (k *kafka) ask(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, k.timeout, fmt.Errorf("no answer from %v within %v (--timeout)", k.Brokers, k.timeout))
	defer cancel()
	err := f(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func jsonFlag(f *pflag.FlagSet, to *bool, usage string) { f.BoolVar(to, "json", false, usage) }

func lines(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }
