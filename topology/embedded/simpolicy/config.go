package simpolicy

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/ppo"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/server"
)

// errUsage is in the chain of every error about flags and environment.
var errUsage = errors.New("usage")

const about = `simpolicy is a stand-in for a GPU: an inference server in vLLM's dialect, and a
trainer, of a small probabilistic policy that solves maths problems whose worked
solution it is given. It is for demonstrations and tests of the pipeline around it.

Reads ppo-batches of one run, writes policy-updates and trainer-reports, serves
/v1/completions, /tokenize and what else a sampler asks for.
Promises: every StepBatch is answered; parameters are on disk before an update is
published; a StepBatch seen again is answered again and not trained on twice.
Without --brokers it only serves.

Every flag is also an environment variable: --http-addr is SLUICE_HTTP_ADDR. A flag
wins over the environment.

Exit status: 0 stopped, 1 failed, 2 wrong flags, 3 refused (a state written by a
newer version, a state directory in use), 4 stopped hard by a second signal.

Flags:
`

// config is what the process can be told.
type config struct {
	httpAddr    string
	readyFile   string
	brokers     []string
	namespace   string
	runID       string
	stateDir    string
	problems    string
	model       string
	maxModelLen int
	seed        uint64
	freeze      bool
	train       ppo.Config
	latency     time.Duration
	jitter      time.Duration
	abortRate   float64
	inference   string
	level       string
	logFormat   string

	logLevel slog.Level
}

func (c *config) flags() *pflag.FlagSet {
	d := ppo.Defaults()
	fs := pflag.NewFlagSet("simpolicy", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() {}
	fs.StringVar(&c.httpAddr, "http-addr", "127.0.0.1:8000", "address to serve on; port 0 takes a free one")
	fs.StringVar(&c.readyFile, "ready-file", "", "file to write {\"pid\":…,\"http\":\"host:port\"} into once ready; removed at exit")
	fs.StringSliceVar(&c.brokers, "brokers", nil, "Kafka brokers of the trainer, host:port separated by commas; none: serve only")
	fs.StringVar(&c.namespace, "namespace", "", "prefix of every topic name, such as \"demo.\"")
	fs.StringVar(&c.runID, "run-id", "", "the run to train for; needed with --brokers")
	fs.StringVar(&c.stateDir, "state-dir", "", "directory for parameters, optimizer and position, one file a run; needed with --brokers")
	fs.StringVar(&c.problems, "problems", "", "JSONL file of worked solutions {question, answer} (default: a sample of GSM8K that is built in)")
	fs.StringVar(&c.model, "model", "simpolicy", "name of the model that requests may give")
	fs.IntVar(&c.maxModelLen, "max-model-len", 32768, "most tokens of prompt and completion together")
	fs.Uint64Var(&c.seed, "seed", 1, "seed of the server's own draws: requests without a seed, latency, aborts")
	fs.BoolVar(&c.freeze, "freeze", false, "answer every StepBatch but change no parameter")
	fs.Float64Var(&c.train.LearningRate, "learning-rate", d.LearningRate, "step of Adam, in logits")
	fs.IntVar(&c.train.Epochs, "ppo-epochs", d.Epochs, "gradient steps on each StepBatch")
	fs.Float64Var(&c.train.Temperature, "train-temperature", d.Temperature, "temperature that the samples were drawn at")
	fs.DurationVar(&c.latency, "latency", 0, "wait before each sample, mean")
	fs.DurationVar(&c.jitter, "latency-jitter", 0, "most that a wait lies above or below the mean")
	fs.Float64Var(&c.abortRate, "abort-rate", 0, "chance of each sample to be aborted, 0 to 1")
	fs.StringVar(&c.inference, "inference-url", "", "where samplers reach this server, said in policy updates; - says none: samplers stay where they are (default: http:// and the address listened on)")
	fs.StringVar(&c.level, "log-level", "info", "least level to log: debug, info, warn or error")
	fs.StringVar(&c.logFormat, "log-format", "text", "text or json, on stderr")
	return fs
}

// load reads flags, then the environment for those not given.
func (c *config) load(fs *pflag.FlagSet, args []string, environ func(string) (string, bool)) error {
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%w: argument %q is not understood: flags start with --", errUsage, fs.Arg(0))
	}
	var err error
	fs.VisitAll(func(f *pflag.Flag) {
		name := "SLUICE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := environ(name)
		if !ok || f.Changed || err != nil {
			return
		}
		if e := fs.Set(f.Name, value); e != nil {
			err = fmt.Errorf("%w: environment variable %s: %w", errUsage, name, e)
		}
	})
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return nil
}

var namespaceForm = regexp.MustCompile(`^[A-Za-z0-9._-]{0,100}$`)

func (c *config) check() error {
	if _, _, err := net.SplitHostPort(c.httpAddr); err != nil {
		return fmt.Errorf("--http-addr: %q: want host:port", c.httpAddr)
	}
	for _, b := range c.brokers {
		if host, port, err := net.SplitHostPort(b); err != nil || host == "" || port == "" {
			return fmt.Errorf("--brokers: %q: want host:port", b)
		}
	}
	if !namespaceForm.MatchString(c.namespace) {
		return fmt.Errorf("--namespace: %q: want at most 100 of A-Z a-z 0-9 . _ -", c.namespace)
	}
	if len(c.brokers) > 0 || c.runID != "" {
		if err := identity.CheckRunID(c.runID); err != nil {
			return fmt.Errorf("--run-id: %w", err)
		}
	}
	if len(c.brokers) > 0 && c.stateDir == "" {
		return errors.New("--state-dir is needed with --brokers: an update is published only once its parameters are on disk")
	}
	if c.stateDir != "" && c.runID == "" {
		return errors.New("--run-id is needed with --state-dir: the directory holds one file a run")
	}
	if err := c.train.Validate(); err != nil {
		return err
	}
	if err := c.server().Validate(); err != nil {
		return err
	}
	if err := c.logLevel.UnmarshalText([]byte(c.level)); err != nil {
		return fmt.Errorf("--log-level: %q: want debug, info, warn or error", c.level)
	}
	if c.logFormat != "text" && c.logFormat != "json" {
		return fmt.Errorf("--log-format: %q: want text or json", c.logFormat)
	}
	return nil
}

func (c *config) server() server.Config {
	return server.Config{
		Model: c.model, MaxModelLen: c.maxModelLen, Latency: c.latency, Jitter: c.jitter,
		AbortRate: c.abortRate, Seed: c.seed,
	}
}

func (c *config) logger(w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.logLevel}
	if c.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
