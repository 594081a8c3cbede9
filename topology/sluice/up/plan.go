package up

import (
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology/sluice/supervise"
)

// The processes, as their binaries and log files are called.
const (
	broker     = "sluice-broker"
	clickhouse = "sluice-clickhouse"
	sandboxd   = "sandboxd"
	simpolicy  = "simpolicy"

	feeder   = "prompt-feeder"
	sampler  = "sampler"
	executor = "code-executor"
	scorer   = "reward-scorer"
	grouper  = "advantage-grouper"
	batcher  = "ppo-batcher"
	metrics  = "metrics-writer"

	pages = "ui" // a command of this program's own binary
)

// stopOrder is how the processes stop, tier after tier: nothing new is fed, then work
// in flight ends, then what it needs goes away.
var stopOrder = [][]string{
	{feeder}, {sampler, executor, scorer, grouper, batcher}, {metrics, simpolicy, pages}, {sandboxd, clickhouse}, {broker},
}

// places are the addresses of what the stages use.
type places struct {
	brokers        []string
	clickhouseAddr string // native protocol, host:port
	clickhouseHTTP string // of the embedded one; empty otherwise
	// pages is an account that may only read; of a ClickHouse elsewhere the writer's.
	writer, reader, pages account
	inferenceURL          string
	sandboxSocket         string
}

// account is a user of ClickHouse.
type account struct{ user, passwordFile string }

// spec is a process of ours: its binary beside this one, its ready file.
func (s *system) spec(name string, args func(before map[string]string) []string) (supervise.Spec, error) {
	path, err := Beside(name)
	if err != nil {
		return supervise.Spec{}, err
	}
	ready := s.dir.file("ready", name+".json")
	return supervise.Spec{
		Name: name, Path: path, ReadyFile: ready, Env: environ(os.Environ(), name != sandboxd),
		Args: func(before map[string]string) []string {
			return append(append(args(before), "--ready-file", ready), s.o.LogFlags...)
		},
	}, nil
}

// fixed is for processes whose arguments do not depend on an earlier start.
func fixed(args ...string) func(map[string]string) []string {
	return func(map[string]string) []string { return append([]string(nil), args...) }
}

func (s *system) brokerSpec() (supervise.Spec, error) {
	return s.spec(broker, func(before map[string]string) []string {
		return []string{"--data-dir", s.dir.file("data", "broker"), "--port", s.port(before["kafka"], s.o.KafkaPort, broker)}
	})
}

func (s *system) clickhouseSpec() (supervise.Spec, error) {
	spec, err := s.spec(clickhouse, func(before map[string]string) []string {
		args := []string{
			"--data-dir", s.dir.file("data", "clickhouse"),
			"--http-port", s.port(before["http"], s.o.HTTPPort, clickhouse+" http"),
			"--tcp-port", s.port(before["tcp"], s.o.TCPPort, clickhouse), "--pages-database", s.o.CHDatabase,
		}
		if lib := tool(s.o.Library, "lib", "libchdb.so"); lib != "" {
			args = append(args, "--lib", lib)
		}
		return args
	})
	// Its engine is a process of its own, which it must be able to stop.
	spec.Orphaned = syscall.SIGTERM
	return spec, err
}

func (s *system) sandboxdSpec() (supervise.Spec, error) {
	spec, err := s.spec(sandboxd, func(map[string]string) []string {
		args := []string{
			"--socket", s.socketPath(), "--state-dir", s.dir.file("data", "sandboxd"),
			// Outside data: it takes seconds to build and is the same for every run.
			"--cache-dir", s.dir.file("cache"),
			"--slots", strconv.Itoa(s.o.Executors + 1), // one that reservations may not hold
		}
		if runsc := tool(s.o.Runsc, "bin", "runsc"); runsc != "" {
			args = append(args, "--runsc", runsc)
		}
		return args
	})
	// It ends its sandboxes itself.
	spec.Orphaned = syscall.SIGTERM
	return spec, err
}

// socketPath lies in the directory, unless the path is longer than a unix socket's
// address may be (107 bytes).
func (s *system) socketPath() string {
	path := s.dir.file("ready", "sandboxd.sock")
	if len(path) < 100 {
		return path
	}
	h := fnv.New64a()
	h.Write([]byte(path))
	return filepath.Join(os.TempDir(), fmt.Sprintf("sluice-%x.sock", h.Sum64()))
}

func (s *system) simpolicySpec() (supervise.Spec, error) {
	return s.spec(simpolicy, func(before map[string]string) []string {
		args := append(s.kafka(), "--run-id", s.run.RunID, "--state-dir", s.dir.file("data", "simpolicy"),
			// The samplers' own flag says where it is, also after a start on another port.
			"--inference-url", "-", "--http-addr", "127.0.0.1:"+s.port(before["http"], s.o.SimpolicyPort, simpolicy))
		if s.o.Problems != "" {
			args = append(args, "--problems", s.o.Problems)
		}
		if s.o.Freeze {
			args = append(args, "--freeze")
		}
		return args
	})
}

// stageSpec is a stage with the flags that every stage has.
func (s *system) stageSpec(name string, args ...string) (supervise.Spec, error) {
	return s.spec(name, fixed(append(append(s.kafka(), "--instance-id", s.instance()), args...)...))
}

// instance is the same over restarts and differs between directories, so that two of
// them on one cluster do not fence each other.
func (s *system) instance() string {
	h := fnv.New64a()
	h.Write([]byte(s.dir.path))
	return fmt.Sprintf("up-%x", h.Sum64())
}

func (s *system) kafka() []string {
	args := []string{"--brokers", strings.Join(s.at.brokers, ","), "--namespace", s.o.Namespace}
	if s.o.Topology != "" {
		args = append(args, "--topology", s.o.Topology)
	}
	return append(args, s.o.Access.Args()...)
}

// connect are the options of a client of the brokers that the stages use.
func (s *system) connect() []kgo.Opt {
	return append([]kgo.Opt{kgo.SeedBrokers(s.at.brokers...)}, s.o.Access.Options()...)
}

// stageSpecs are the stages, those that read last first, but for the feeder.
func (s *system) stageSpecs() ([]supervise.Spec, error) {
	model := []string{"--inference-url", s.at.inferenceURL}
	if s.o.Model != "" {
		model = append(model, "--model", s.o.Model)
	}
	protocol, address := "native", s.at.clickhouseAddr
	if s.at.clickhouseHTTP != "" {
		// The embedded engine may abort when a native client is killed in mid-insert;
		// over HTTP it does not.
		protocol, address = "http", s.at.clickhouseHTTP
	}
	ch := []string{
		"--clickhouse-protocol", protocol, "--clickhouse-addr", address, "--clickhouse-user", s.at.writer.user,
		"--clickhouse-database", s.o.CHDatabase,
	}
	if s.at.writer.passwordFile != "" {
		ch = append(ch, "--clickhouse-password-file", s.at.writer.passwordFile)
	}
	var specs []supervise.Spec
	for _, stage := range []struct {
		name string
		args []string
	}{
		{metrics, ch}, {batcher, nil}, {grouper, nil}, {scorer, nil},
		// The shortest lock that Kafka allows: a killed executor's calls come back soon.
		{executor, []string{"--sandboxd", s.at.sandboxSocket, "--slots", strconv.Itoa(s.o.Executors), "--lock", "15s"}},
		{sampler, model},
	} {
		spec, err := s.stageSpec(stage.name, stage.args...)
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

func (s *system) feederSpec() (supervise.Spec, error) {
	args := []string{
		"--data", s.dir.file("problems", "train.jsonl"), "--run-id", s.run.RunID,
		"--steps", strconv.FormatUint(s.o.Steps, 10),
		"--problems-per-step", strconv.Itoa(int(s.o.ProblemsPerStep)),
		"--group-size", strconv.Itoa(int(s.o.GroupSize)),
		"--seed", strconv.FormatUint(s.o.Seed, 10),
	}
	if s.o.TextOnly {
		args = append(args, "--text-only")
	}
	spec, err := s.stageSpec(feeder, args...)
	spec.Finishes = true
	return spec, err
}

// pagesSpec is `sluice ui`. Nothing of the run needs it.
func (s *system) pagesSpec() (supervise.Spec, error) {
	self, err := Beside("sluice")
	if err != nil {
		return supervise.Spec{}, err
	}
	ready := s.dir.file("ready", pages+".json")
	protocol, address := "native", s.at.clickhouseAddr
	if s.at.clickhouseHTTP != "" {
		protocol, address = "http", s.at.clickhouseHTTP
	}
	return supervise.Spec{
		Name: pages, Path: self, ReadyFile: ready, Env: environ(os.Environ(), true), Dispensable: true,
		Args: func(map[string]string) []string {
			args := append([]string{pages, "--listen", s.pagesAt, "--ready-file", ready}, s.kafka()...)
			args = append(args, "--clickhouse-protocol", protocol, "--clickhouse-addr", address, "--clickhouse-user", s.at.pages.user, "--clickhouse-database", s.o.CHDatabase)
			if s.at.pages.passwordFile != "" {
				args = append(args, "--clickhouse-password-file", s.at.pages.passwordFile)
			}
			if s.at.inferenceURL != "" {
				args = append(args, "--inference-url", s.at.inferenceURL)
			}
			if s.o.Model != "" {
				args = append(args, "--model", s.o.Model)
			}
			return append(args, s.o.LogFlags...)
		},
	}, nil
}

// pagesAddress decides where the pages are before anything runs, so that the first line
// can say it: where the flag says, else where they were before, else at the usual port or a free one.
func (s *system) pagesAddress() {
	if s.o.NoPages {
		return
	}
	port := s.port("", s.o.PagesPort, pages)
	if port == "0" {
		for _, wish := range []string{usualPagesPort, "0"} {
			if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", wish)); err == nil {
				_, port, _ = net.SplitHostPort(l.Addr().String())
				l.Close()
				break
			}
		}
	}
	s.pagesAt = net.JoinHostPort("127.0.0.1", port)
	s.remember(pages, s.pagesAt)
}

const usualPagesPort = "8420"

// port decides on which port a process listens: where it did before it died; the one
// of the flag; where the interrupted run listened, if that is free; any free one.
func (s *system) port(before string, flag int, name string) string {
	if _, port, err := net.SplitHostPort(before); err == nil {
		return port
	}
	if flag != 0 {
		return strconv.Itoa(flag)
	}
	if port := s.run.Ports[name]; port != 0 {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			l.Close()
			return strconv.Itoa(port)
		}
	}
	return "0"
}

// remember keeps the port of an address for the next start of this run.
func (s *system) remember(name, address string) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return
	}
	if s.run.Ports == nil {
		s.run.Ports = map[string]int{}
	}
	s.run.Ports[name], _ = strconv.Atoi(port)
}
