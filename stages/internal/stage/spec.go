package stage

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/status"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/process"
)

// Spec describes a stage to Main.
type Spec struct {
	// Name is the binary's name and the stage's name in the topology.
	Name string
	// About is the text of --help: what it reads, writes and promises.
	About string
	// Flags registers the stage's own flags. May be nil.
	Flags func(*process.Flags)
	// Validate checks what the flags gave, before anything starts. May be nil.
	Validate func() error
	// Commands are called by their names: `reward-scorer check`.
	Commands []process.Command
	// Run does the stage's work until the context ends or there is none left.
	Run func(context.Context, *Env) error
}

// Env is what Main gives to Run.
type Env struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Kafka carries log, metrics, instance and readiness already.
	Kafka    kafka.ClusterConfig
	Topology topology.Topology
	// Stage is the topology's entry of this stage.
	Stage  topology.Stage
	Health *process.Health
	// Status is what the process says of itself to `sluice status` and to other
	// stages. It carries what Health is told already. May be nil in tests.
	Status *status.Board
}
