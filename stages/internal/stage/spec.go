package stage

import (
	"context"
	"io"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/stages/internal/runner"
	"github.com/sluice-rl/sluice/stages/internal/status"
	"github.com/sluice-rl/sluice/topology"
)

// Spec describes a stage to Main.
type Spec struct {
	// Name is the binary's name and the stage's name in the topology.
	Name string
	// About is the text of --help: what it reads, writes and promises.
	About string
	// Flags registers the stage's own flags, with usage texts that give unit and
	// meaning. May be nil.
	Flags func(*pflag.FlagSet)
	// Validate checks what the flags gave, before anything starts. Its error is a
	// usage error. May be nil.
	Validate func() error
	// Commands are sub-commands by name: `reward-scorer check`. They get the
	// arguments after their name and share none of the flags.
	Commands map[string]Command
	// Run does the stage's work until the context ends or there is none left.
	Run func(context.Context, *Env) error
}

// Command is a sub-command; its error becomes the exit code as Run's does.
type Command func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error

// Env is what Main gives to Run.
type Env struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Kafka carries log, metrics, instance and readiness already.
	Kafka    runner.ClusterConfig
	Topology topology.Topology
	// Stage is the topology's entry of this stage.
	Stage  topology.Stage
	Health *Health
	// Status is what the process says of itself to `sluice status` and to other
	// stages. It carries what Health is told already. May be nil in tests.
	Status *status.Board
}
