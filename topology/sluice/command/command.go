package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/sluice/supervise"
	"github.com/sluice-rl/sluice/topology/sluice/up"
)

// Exit statuses, as of every binary here.
const (
	exitClean    = 0
	exitFailed   = 1
	exitUsage    = 2
	exitUnusable = 3
)

// errUsage is in the chain of every error about how a command was called.
var errUsage = errors.New("wrong use")

// exitStatus is an error that is only an exit status: everything was said already.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

const about = `sluice starts, inspects and repairs a Sluice system.

It starts the stages' own binaries, which it looks for beside itself, and speaks to
them only as any other operator would: through flags, files, Kafka and SQL.`

// Main runs sluice with the arguments after the program's name and returns the exit
// status: 0 done, 1 failed or differs, 2 wrong use, 3 something it depends on is
// unusable, 4 stopped hard by a second signal.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use: "sluice", Short: "Start, inspect and repair a Sluice system", Long: about,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w\n`%s --help` lists the flags", errUsage, err, c.CommandPath())
	})
	root.AddCommand(upCommand(), applyCommand(), statusCommand(), deadLettersCommand(), prepareCommand(), exportCommand(), replayCommand())
	err := root.Execute()
	if err == nil {
		return exitClean
	}
	var status exitStatus
	if errors.As(err, &status) {
		return int(status)
	}
	fmt.Fprintf(stderr, "sluice: %v\n", err)
	return statusOf(err)
}

// statusOf is the exit status that an error stands for.
func statusOf(err error) int {
	switch {
	case errors.Is(err, errUsage), errors.Is(err, up.ErrUsage), strings.HasPrefix(err.Error(), "unknown command"):
		return exitUsage
	case errors.Is(err, up.ErrUnusable), errors.Is(err, supervise.ErrChild):
		return exitUnusable
	}
	return exitFailed
}

// noArgs refuses arguments of a command that takes only flags.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: argument %q: %s takes only flags", errUsage, args[0], c.CommandPath())
	}
	return nil
}

// cluster is how a command finds its Kafka cluster.
type cluster struct {
	brokers   []string
	namespace string
	topology  string
}

func (c *cluster) register(f *pflag.FlagSet) {
	f.StringSliceVar(&c.brokers, "brokers", []string{"127.0.0.1:9092"}, "Kafka brokers, host:port, comma between them")
	f.StringVar(&c.namespace, "namespace", "", "prefix of topic and group names")
	f.StringVar(&c.topology, "topology", "", "topology file (default: the one built in)")
	f.VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "brokers", "namespace", "topology":
			if v, ok := os.LookupEnv("SLUICE_" + strings.ToUpper(flag.Name)); ok && v != "" {
				flag.DefValue = v
				_ = flag.Value.Set(v)
				flag.Changed = false
			}
		}
	})
}

func (c *cluster) load() (topology.Topology, error) {
	t, err := topology.Load(c.topology)
	if err != nil {
		return t, fmt.Errorf("%w: %w", errUsage, err)
	}
	return t, nil
}

func (c *cluster) client() (*kgo.Client, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.ClientID("sluice"))
	if err != nil {
		return nil, fmt.Errorf("%w: --brokers: %w", errUsage, err)
	}
	return cl, nil
}

// untilSignal is a context that ends at the first SIGINT or SIGTERM.
func untilSignal() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}
