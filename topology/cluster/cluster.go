// Package cluster is how a program is told its Kafka cluster: the flags --brokers,
// --namespace and --topology and those of package access, the same in every binary, and
// what they may hold. Every client is made with Options.
package cluster

import (
	"errors"
	"fmt"
	"net"
	"regexp"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/cluster/access"
)

// Config is what the flags set.
type Config struct {
	Brokers   []string
	Namespace string
	// Topology is the path of a topology file; empty: the one built in.
	Topology string
	Access   access.Config
}

// Options are what every client of the cluster is made with.
func (c *Config) Options() []kgo.Opt {
	return append([]kgo.Opt{kgo.SeedBrokers(c.Brokers...)}, c.Access.Options()...)
}

// Register declares the flags of a program that needs a cluster.
func (c *Config) Register(f *pflag.FlagSet) {
	f.StringSliceVar(&c.Brokers, "brokers", []string{"127.0.0.1:9092"}, "Kafka brokers to start from: host:port, separated by commas")
	c.register(f)
}

// RegisterOptional declares the flags of a program that can do without brokers; without
// says what it does then.
func (c *Config) RegisterOptional(f *pflag.FlagSet, without string) {
	f.StringSliceVar(&c.Brokers, "brokers", nil, "Kafka brokers to start from: host:port, separated by commas; none: "+without)
	c.register(f)
}

func (c *Config) register(f *pflag.FlagSet) {
	f.StringVar(&c.Namespace, "namespace", "", "prefix of every topic and group name, such as \"demo.\"")
	f.StringVar(&c.Topology, "topology", "", "topology file (default: the one built in)")
	c.Access.Register(f)
}

// Kafka allows these in topic names, at most 249 in all.
var namespaceForm = regexp.MustCompile(`^[A-Za-z0-9._-]{0,100}$`)

// Check refuses what cannot be a cluster.
func (c *Config) Check() error {
	if len(c.Brokers) == 0 {
		return errors.New("--brokers is empty: want host:port")
	}
	return c.CheckOptional()
}

// CheckOptional is Check where there may be no brokers.
func (c *Config) CheckOptional() error {
	for _, b := range c.Brokers {
		if host, port, err := net.SplitHostPort(b); err != nil || host == "" || port == "" {
			return fmt.Errorf("--brokers: %q: want host:port", b)
		}
	}
	if !namespaceForm.MatchString(c.Namespace) {
		return fmt.Errorf("--namespace: %q: want at most 100 of A-Z a-z 0-9 . _ -", c.Namespace)
	}
	if _, err := c.Load(); err != nil {
		return err
	}
	if args := c.Access.Args(); len(c.Brokers) == 0 && len(args) > 0 {
		return fmt.Errorf("%s is of brokers elsewhere: give them by --brokers", args[0])
	}
	return c.Access.Check()
}

// Load reads the topology.
func (c *Config) Load() (topology.Topology, error) {
	t, err := topology.Load(c.Topology)
	if err != nil {
		return t, fmt.Errorf("--topology: %w", err)
	}
	return t, nil
}
