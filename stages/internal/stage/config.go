package stage

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/stages/internal/runner"
	"github.com/sluice-rl/sluice/topology"
)

// config is what every stage can be told.
type config struct {
	flags *pflag.FlagSet

	brokers   []string
	namespace string
	topology  string
	httpAddr  string
	readyFile string
	level     string
	logFormat string
	file      string
	instance  string
	version   bool

	logLevel slog.Level
}

func newConfig(s Spec) *config {
	c := &config{flags: pflag.NewFlagSet(s.Name, pflag.ContinueOnError)}
	c.flags.SortFlags = false
	c.flags.Usage = func() {}
	if s.Flags != nil {
		s.Flags(c.flags)
	}
	f := c.flags
	f.StringSliceVar(&c.brokers, "brokers", []string{"127.0.0.1:9092"}, "Kafka brokers to start from: host:port, separated by commas")
	f.StringVar(&c.namespace, "namespace", "", "prefix of every topic and group name, such as \"demo.\"")
	f.StringVar(&c.topology, "topology", "", "topology file (default: the one built in)")
	f.StringVar(&c.instance, "instance-id", "", "tells this process from others of its stage; keep it the same over restarts, never share it (default: random)")
	f.StringVar(&c.httpAddr, "http-addr", "127.0.0.1:0", "address for /healthz, /readyz and /metrics; port 0 takes a free one")
	f.StringVar(&c.readyFile, "ready-file", "", "file to write {\"pid\":…,\"http\":\"host:port\"} into once ready; removed at exit")
	f.StringVar(&c.level, "log-level", "info", "least level to log: debug, info, warn or error")
	f.StringVar(&c.logFormat, "log-format", "text", "text or json, on stderr")
	f.StringVar(&c.file, "config", "", "YAML file of these settings by the same names")
	f.BoolVar(&c.version, "version", false, "print the version and exit")
	return c
}

// load fills the configuration: flag before environment before file before default.
func (c *config) load(s Spec, args []string, environ func(string) (string, bool)) error {
	if err := refuseSecretFlags(c.flags); err != nil {
		return err
	}
	if err := c.flags.Parse(args); err != nil {
		return err
	}
	if rest := c.flags.Args(); len(rest) > 0 {
		return fmt.Errorf("argument %q is not understood: flags start with --%s", rest[0], commandHint(s))
	}
	fromEnv, err := setFromEnv(c.flags, environ)
	if err != nil {
		return err
	}
	if c.file != "" {
		if err := setFromFile(c.flags, c.file, fromEnv); err != nil {
			return err
		}
	}
	if err := resolveSecrets(c.flags, environ); err != nil {
		return err
	}
	return c.check()
}

func commandHint(s Spec) string {
	if len(s.Commands) == 0 {
		return ""
	}
	return ", and the commands are " + strings.Join(commandNames(s), ", ")
}

// Kafka allows these in topic names, at most 249 in all.
var namespaceForm = regexp.MustCompile(`^[A-Za-z0-9._-]{0,100}$`)
var instanceForm = regexp.MustCompile(`^[A-Za-z0-9._-]{0,100}$`)

func (c *config) check() error {
	if len(c.brokers) == 0 {
		return fmt.Errorf("--brokers is empty: want host:port")
	}
	for _, b := range c.brokers {
		if host, port, err := net.SplitHostPort(b); err != nil || host == "" || port == "" {
			return fmt.Errorf("--brokers: %q: want host:port", b)
		}
	}
	if !namespaceForm.MatchString(c.namespace) {
		return fmt.Errorf("--namespace: %q: want at most 100 of A-Z a-z 0-9 . _ -", c.namespace)
	}
	if !instanceForm.MatchString(c.instance) {
		return fmt.Errorf("--instance-id: %q: want at most 100 of A-Z a-z 0-9 . _ -", c.instance)
	}
	if _, _, err := net.SplitHostPort(c.httpAddr); err != nil {
		return fmt.Errorf("--http-addr: %q: want host:port", c.httpAddr)
	}
	if err := c.logLevel.UnmarshalText([]byte(c.level)); err != nil {
		return fmt.Errorf("--log-level: %q: want debug, info, warn or error", c.level)
	}
	if c.logFormat != "text" && c.logFormat != "json" {
		return fmt.Errorf("--log-format: %q: want text or json", c.logFormat)
	}
	if c.topology != "" {
		if _, err := os.Stat(c.topology); err != nil {
			return fmt.Errorf("--topology: %w", err)
		}
	}
	return nil
}

func (c *config) cluster(top topology.Topology, log *slog.Logger, reg prometheus.Registerer, h *Health) runner.ClusterConfig {
	cl := runner.ClusterConfig{
		Brokers: c.brokers, Namespace: c.namespace, Topology: top, Instance: c.instance,
		Log: log, Metrics: reg, Ready: h.Ready,
		Begun: func() { h.Ready(workPart, nil) },
	}
	if cl.Instance == "" {
		cl.Instance = runner.RandomInstance()
	}
	return cl
}
