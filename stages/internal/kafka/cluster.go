package kafka

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/stages/internal/status"
	"github.com/sluice-rl/sluice/topology"
)

// ClusterConfig says which cluster a stage works on and what it reports to. Only
// Brokers and Topology are required.
type ClusterConfig struct {
	// Brokers are the addresses to start from, host:port.
	Brokers []string
	// Access are options of how connections are made and authenticated. Nil: plain TCP.
	Access []kgo.Opt
	// Namespace is put in front of every topic, group and transactional id.
	Namespace string
	Topology  topology.Topology
	// Instance tells this process from others of its stage, in client ids and
	// transactional ids. Two live processes with one instance fence each other; a
	// process that comes back under its old instance takes over at once what its
	// predecessor left open. Empty: drawn at random.
	Instance string
	// Log receives what the runner and its clients have to say. Nil: nothing.
	Log *slog.Logger
	// Metrics receives the runner's metrics. Nil: they are counted and not shown.
	Metrics prometheus.Registerer
	// Ready is told of every change of readiness: nil when usable, else why not.
	// Nil: nobody is told.
	Ready func(name string, err error)
	// Begun is told that all parts of the stage's main work have been named to Ready:
	// see Begin. Nil: nobody is told.
	Begun func()
	// Status is told what a person, or another stage, should know of this process.
	// Nil: nobody is told.
	Status *status.Board
	// Dialer opens connections. Nil: TCP. Tests give a virtual network.
	Dialer func(ctx context.Context, network, host string) (net.Conn, error)
}

// RandomInstance draws an instance for a process that was given none.
func RandomInstance() string { return rand.Text()[:10] }
