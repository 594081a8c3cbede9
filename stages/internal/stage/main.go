package stage

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/status"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/cluster"
	"github.com/sluice-rl/sluice/topology/process"
)

// Main runs a stage and returns its exit code; it is all of a stage's main.
func Main(s Spec) int { return process.Main(s.Program()) }

// Program is the stage as a program.
func (s Spec) Program() process.Command {
	c := &config{}
	return process.Command{
		Name: s.Name, About: s.About, Commands: s.Commands, Serves: true, Exits: Exits,
		Flags: func(f *process.Flags) {
			if s.Flags != nil {
				s.Flags(f)
			}
			c.register(f)
		},
		Check: func() error {
			if err := c.check(); err != nil {
				return err
			}
			if s.Validate == nil {
				return nil
			}
			return s.Validate()
		},
		Run: func(ctx context.Context, l *process.Life) error { return run(ctx, s, c, l) },
	}
}

// Exits are the exit codes of the runner's errors and the topology's.
var Exits = []process.Exit{
	{Err: kafka.ErrFenced, Code: process.ExitFenced},
	{Err: kafka.ErrConfig, Code: process.ExitUsage},
	{Err: topology.ErrInvalid, Code: process.ExitUsage},
	{Err: kafka.ErrUnsupported, Code: process.ExitUnusable},
}

// config is what every stage can be told beyond what every process can.
type config struct {
	cluster.Config
	instance string
}

func (c *config) register(f *process.Flags) {
	connection := f.Group("Kafka")
	c.Register(connection)
	connection.StringVar(&c.instance, "instance-id", "", "tells this process from others of its stage; keep it the same over restarts, never share it (default: random)")
}

var instanceForm = regexp.MustCompile(`^[A-Za-z0-9._-]{0,100}$`)

func (c *config) check() error {
	if !instanceForm.MatchString(c.instance) {
		return fmt.Errorf("--instance-id: %q: want at most 100 of A-Z a-z 0-9 . _ -", c.instance)
	}
	return c.Check()
}

func run(ctx context.Context, s Spec, c *config, l *process.Life) error {
	top, err := c.Load()
	if err != nil {
		return process.Usage(err)
	}
	entry, ok := top.Stages[s.Name]
	if !ok {
		return process.Usage(fmt.Errorf("topology has no stage %q: it has %v", s.Name, slices.Sorted(maps.Keys(top.Stages))))
	}
	log := l.Log.With("stage", s.Name)
	instance := c.instance
	if instance == "" {
		instance = kafka.RandomInstance()
		log.Info("drew an instance", "instance", instance)
	}
	board := status.NewBoard(nil)
	l.Health.Watch(board.Part)
	board.Readiness(l.Health.IsReady)
	env := &Env{
		Log: log, Metrics: l.Metrics, Topology: top, Stage: entry, Health: l.Health, Status: board,
		Kafka: kafka.ClusterConfig{
			Brokers: c.Brokers, Access: c.Access.Options(), Namespace: c.Namespace, Topology: top, Instance: instance,
			Log: log, Metrics: l.Metrics, Ready: l.Health.Ready, Begun: l.Health.Begun, Status: board,
		},
	}
	stopReporting, err := reportStatus(s.Name, env)
	if err != nil {
		return err
	}
	defer stopReporting()
	return s.Run(ctx, env)
}
