package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kprom"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/sluice-rl/sluice/topology"
)

// NewClient makes a client of a stage's cluster with what all clients here share:
// id, logs, metrics, message size, partitioner, and a watch that reports to
// cluster.Ready, under "kafka ROLE", whether the brokers can be reached. It does not
// wait for them. Options given come last and win.
func NewClient(cluster ClusterConfig, stage, role string, opts ...kgo.Opt) (*kgo.Client, error) {
	cl, _, err := cluster.dial(stage, role, opts...)
	return cl, err
}

// dial is NewClient that also returns the state it reports.
func (c ClusterConfig) dial(stage, role string, opts ...kgo.Opt) (*kgo.Client, *state, error) {
	return c.dialWaiting(nil, stage, role, opts...)
}

// dialWaiting is dial for a client that is not ready as soon as it is connected: until
// setWork says otherwise it waits for what reason names.
func (c ClusterConfig) dialWaiting(reason error, stage, role string, opts ...kgo.Opt) (*kgo.Client, *state, error) {
	all, st, err := c.options(stage, role)
	if err != nil {
		return nil, nil, err
	}
	if reason != nil {
		// Before the client is made: it connects at once.
		st.setWork(reason)
	}
	cl, err := kgo.NewClient(append(all, opts...)...)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return cl, st, nil
}

func (c ClusterConfig) options(stage, role string) ([]kgo.Opt, *state, error) {
	if len(c.Brokers) == 0 {
		return nil, nil, fmt.Errorf("%w: no brokers", ErrConfig)
	}
	if c.Topology.MaxMessageBytes <= 0 {
		return nil, nil, fmt.Errorf("%w: the topology is empty: take topology.Default()", ErrConfig)
	}
	log := c.log().With("client", role)
	st := newState(partName(role), c.Ready, log)
	ctx, abandon := context.WithCancel(context.Background())
	st.abandon = abandon
	opts := []kgo.Opt{
		kgo.WithContext(ctx),
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(c.clientID(stage)),
		kgo.WithLogger(clientLog{kslog.New(log), log}),
		kgo.WithHooks(&watch{state: st}),
		kgo.ProducerBatchMaxBytes(c.Topology.MaxMessageBytes),
		kgo.RecordPartitioner(newPartitioner()),
		// A lingering producer would add its linger to every hop of every call.
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(heartbeatInterval), kgo.RebalanceTimeout(rebalanceTimeout),
	}
	opts = append(opts, c.Access...)
	if c.Dialer != nil {
		opts = append(opts, kgo.Dialer(c.Dialer))
	}
	if c.Metrics != nil {
		labels := prometheus.Labels{"stage": stage, "client": role}
		opts = append(opts, kgo.WithHooks(kprom.NewMetrics("sluice_kafka",
			kprom.Registerer(tolerant{c.Metrics}), kprom.WithStaticLabel(labels))))
	}
	return opts, st, nil
}

func (c ClusterConfig) clientID(stage string) string {
	return strings.Trim(stage+"-"+c.Instance, "-")
}

func (c ClusterConfig) log() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}

// name puts the namespace in front of a topic or group.
func (c ClusterConfig) name(n string) string { return topology.Name(c.Namespace, n) }

func (c ClusterConfig) names(ns []string) []string {
	out := make([]string, len(ns))
	for i, n := range ns {
		out[i] = c.name(n)
	}
	return out
}

// short takes the namespace off again.
func (c ClusterConfig) short(topic string) string { return strings.TrimPrefix(topic, c.Namespace) }

func (c ClusterConfig) stage(name string) (topology.Stage, error) {
	s, ok := c.Topology.Stages[name]
	if !ok {
		return s, fmt.Errorf("%w: the topology has no stage %q", ErrConfig, name)
	}
	if len(s.Reads) == 0 {
		return s, fmt.Errorf("%w: stage %s reads nothing", ErrConfig, name)
	}
	if s.Group == "" {
		return s, fmt.Errorf("%w: stage %s has no group", ErrConfig, name)
	}
	return s, nil
}

// tolerant keeps a second client of the same role from ending the process: its
// metrics are then not shown.
type tolerant struct{ prometheus.Registerer }

func (t tolerant) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		_ = t.Register(c)
	}
}

// clientLog passes on what a client warns of, and everything at debug level. That
// brokers cannot be reached it leaves to watch, which says so once.
type clientLog struct {
	*kslog.Logger
	log *slog.Logger
}

func (l clientLog) Level() kgo.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelDebug
	}
	return kgo.LogLevelWarn
}

func (l clientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	if msg == "unable to open connection to broker" && l.Level() != kgo.LogLevelDebug {
		return
	}
	l.Logger.Log(level, msg, keyvals...)
}
