package up

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/sluice-rl/sluice/topology/cluster"
	"github.com/sluice-rl/sluice/topology/process"
)

var (
	// ErrUsage is in the chain of errors about options.
	ErrUsage = errors.New("wrong use")
	// ErrUnusable: the directory is of a newer version, in use, or of something else.
	ErrUnusable = errors.New("unusable")
	// ErrStopped: a signal ended the run before it was done.
	ErrStopped = errors.New("stopped")
)

var databaseForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,60}$`)

// Options are the flags of `sluice up`.
type Options struct {
	Dir  string
	Keep bool
	New  bool

	Steps           uint64
	ProblemsPerStep uint32
	GroupSize       uint32
	Seed            uint64
	Freeze          bool
	TextOnly        bool
	Problems        string

	cluster.Config
	ClickHouse    string
	CHUser        string
	CHPassword    string
	CHDatabase    string
	InferenceURL  string
	Model         string
	SandboxSocket string

	KafkaPort     int
	HTTPPort      int
	TCPPort       int
	SimpolicyPort int
	PagesPort     int
	NoPages       bool

	Executors   int
	DrainFor    time.Duration
	ReadyWithin time.Duration
	// LogFlags are the processes' settings of the log, as flags.
	LogFlags []string
	Library  string
	Runsc    string
	Plain    bool
}

// Register declares the flags.
func (o *Options) Register(flags *process.Flags) {
	f := flags.Group("Directory")
	f.StringVar(&o.Dir, "dir", ".sluice/demo", "directory of the run: data, logs, summary.json")
	f.BoolVar(&o.Keep, "keep", false, "keep the data of a finished run beside the new one (default: remove it)")
	f.BoolVar(&o.New, "new", false, "drop an interrupted run instead of going on with it")

	f = flags.Group("Run")
	f.Uint64Var(&o.Steps, "steps", 20, "stop after this many steps")
	f.Uint32Var(&o.ProblemsPerStep, "problems-per-step", 4, "problems (groups) in a step")
	f.Uint32Var(&o.GroupSize, "group-size", 8, "trajectories sampled of each problem")
	f.Uint64Var(&o.Seed, "seed", 42, "seed of the order of problems and of every sampling request")
	f.BoolVar(&o.Freeze, "freeze", false, "the policy answers every step but does not learn")
	f.BoolVar(&o.TextOnly, "text-only", false, "no tool: one turn per trajectory")
	f.StringVar(&o.Problems, "problems", "", "problem set: for simpolicy JSONL of {question, answer} with worked solutions; with --inference-url also parquet and JSONL that sluice prepare takes (default: a sample of GSM8K that is built in)")

	o.RegisterOptional(flags.Group("Kafka"), "an embedded one")
	f = flags.Group("Instead of the embedded parts")
	f.StringVar(&o.ClickHouse, "clickhouse-addr", "", "ClickHouse, host:port of the native protocol, instead of the embedded one")
	f.StringVar(&o.CHUser, "clickhouse-user", "default", "user at --clickhouse-addr, allowed to create and write the database")
	f.StringVar(&o.CHPassword, "clickhouse-password-file", "", "file with that user's password")
	f.StringVar(&o.CHDatabase, "clickhouse-database", "sluice", "database of the tables")
	f.StringVar(&o.InferenceURL, "inference-url", "", "inference server that gives token ids (the sampler finds out how to ask it), instead of simpolicy; its trainer must answer ppo-batches in policy-updates")
	f.StringVar(&o.Model, "model", "", "model name at --inference-url")
	f.StringVar(&o.SandboxSocket, "sandboxd-socket", "", "socket of a running sandboxd, instead of one of our own")

	f = flags.Group("Embedded parts")
	f.IntVar(&o.KafkaPort, "kafka-port", 0, "port of the embedded broker; 0 takes a free one")
	f.IntVar(&o.HTTPPort, "clickhouse-http-port", 0, "HTTP port of the embedded ClickHouse; 0 takes a free one")
	f.IntVar(&o.TCPPort, "clickhouse-tcp-port", 0, "native port of the embedded ClickHouse; 0 takes a free one")
	f.IntVar(&o.SimpolicyPort, "simpolicy-port", 0, "port of simpolicy; 0 takes a free one")

	f.IntVar(&o.PagesPort, "pages-port", 0, "port of the pages on 127.0.0.1; 0 takes 8420, or a free one where that is taken")
	f.BoolVar(&o.NoPages, "no-pages", false, "serve no pages")

	f.IntVar(&o.Executors, "executor-slots", 4, "programs run at the same time")
	f.DurationVar(&o.DrainFor, "drain", time.Minute, "how long to wait at the end until every stage has done its work")
	f.DurationVar(&o.ReadyWithin, "ready-within", 2*time.Minute, "how long a process may take to become ready")
	f.StringVar(&o.Library, "libchdb", "", "libchdb.so of the embedded ClickHouse (default: what 'make tools' installed)")
	f.StringVar(&o.Runsc, "runsc", "", "gVisor's runsc (default: what 'make tools' installed)")
	f.BoolVar(&o.Plain, "plain", false, "print lines instead of redrawing a view")
}

// Validate refuses options that cannot work, naming the flag.
func (o Options) Validate() error {
	err := o.validate()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return nil
}

func (o Options) validate() error {
	if o.Dir == "" {
		return errors.New("--dir is empty")
	}
	if o.Steps == 0 || o.ProblemsPerStep == 0 {
		return fmt.Errorf("--steps is %d and --problems-per-step %d: want 1 or more", o.Steps, o.ProblemsPerStep)
	}
	if strings.HasSuffix(o.Problems, ".parquet") && o.InferenceURL == "" {
		return fmt.Errorf("--problems %s: simpolicy solves only problems whose worked solution it is given, as JSONL of {question, answer}: give --inference-url for others", o.Problems)
	}
	if o.GroupSize < 2 {
		return fmt.Errorf("--group-size is %d: want 2 or more, since an advantage compares with the group's mean", o.GroupSize)
	}
	for _, p := range []struct {
		flag string
		port int
		set  string
	}{
		{"kafka-port", o.KafkaPort, "--brokers"}, {"clickhouse-http-port", o.HTTPPort, "--clickhouse-addr"},
		{"clickhouse-tcp-port", o.TCPPort, "--clickhouse-addr"}, {"simpolicy-port", o.SimpolicyPort, "--inference-url"},
		{"pages-port", o.PagesPort, "--no-pages"},
	} {
		if p.port < 0 || p.port > 65535 {
			return fmt.Errorf("--%s is %d, want 0 (a free one) to 65535", p.flag, p.port)
		}
		replaced := p.set == "--brokers" && len(o.Brokers) > 0 || p.set == "--clickhouse-addr" && o.ClickHouse != "" || p.set == "--inference-url" && o.InferenceURL != "" || p.set == "--no-pages" && o.NoPages
		if p.port != 0 && replaced {
			return fmt.Errorf("--%s is of the embedded part that %s replaces: give one of them", p.flag, p.set)
		}
	}
	if o.ClickHouse != "" {
		if _, _, err := net.SplitHostPort(o.ClickHouse); err != nil {
			return fmt.Errorf("--clickhouse-addr %q: want host:port", o.ClickHouse)
		}
	} else if o.CHPassword != "" {
		return errors.New("--clickhouse-password-file is of a ClickHouse at --clickhouse-addr; the embedded one makes its own passwords")
	}
	if !databaseForm.MatchString(o.CHDatabase) {
		return fmt.Errorf("--clickhouse-database %q: want a letter, then letters, digits or _", o.CHDatabase)
	}
	if o.InferenceURL != "" {
		if u, err := url.Parse(o.InferenceURL); err != nil || u.Host == "" {
			return fmt.Errorf("--inference-url %q: want http://host:port", o.InferenceURL)
		}
		if o.Freeze {
			return errors.New("--freeze is of simpolicy, which --inference-url replaces")
		}
	}
	if err := o.CheckOptional(); err != nil {
		return err
	}
	for flag, path := range map[string]string{"problems": o.Problems, "clickhouse-password-file": o.CHPassword, "sandboxd-socket": o.SandboxSocket} {
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
	}
	if o.Executors < 1 || o.Executors > 1000 {
		return fmt.Errorf("--executor-slots is %d, want 1 to 1000", o.Executors)
	}
	if o.DrainFor <= 0 || o.ReadyWithin <= 0 {
		return errors.New("--drain and --ready-within: want times above 0")
	}
	return nil
}

// Beside finds a binary in the folder that this program was started from.
func Beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%w: %s is not beside sluice: `make build` builds all binaries into one folder", ErrUnusable, path)
	}
	return path, nil
}

// tool finds a file that `make tools` installed: in .tools of the checkout that the
// binaries lie in, of the working directory, or of one above it. "" if there is none:
// the program that needs it then says so itself.
func tool(given string, parts ...string) string {
	if given != "" {
		return given
	}
	var roots []string
	if self, err := os.Executable(); err == nil {
		roots = append(roots, filepath.Dir(filepath.Dir(self)))
	}
	if wd, err := os.Getwd(); err == nil {
		for ; ; wd = filepath.Dir(wd) {
			roots = append(roots, wd)
			if wd == filepath.Dir(wd) {
				break
			}
		}
	}
	for _, root := range roots {
		path := filepath.Join(append([]string{root, ".tools"}, parts...)...)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	return ""
}

// identity names the options that make a run what it is: one that is resumed with
// others would be neither the old run nor a new one.
func (o Options) identity() string {
	s := fmt.Sprintf("--problems-per-step %d --group-size %d --seed %d", o.ProblemsPerStep, o.GroupSize, o.Seed)
	if o.Freeze {
		s += " --freeze"
	}
	if o.TextOnly {
		s += " --text-only"
	}
	if o.Problems != "" {
		s += " --problems " + o.Problems
	}
	if len(o.Brokers) > 0 {
		s += " --brokers " + strings.Join(o.Brokers, ",")
	}
	if o.Namespace != "" {
		s += " --namespace " + o.Namespace
	}
	if o.ClickHouse != "" {
		s += " --clickhouse-addr " + o.ClickHouse
	}
	return s
}
