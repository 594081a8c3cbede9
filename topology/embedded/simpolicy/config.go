package simpolicy

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/topology/cluster"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/ppo"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/server"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `simpolicy is a stand-in for a GPU: an inference server in vLLM's dialect, and a
trainer, of a small probabilistic policy that solves maths problems whose worked
solution it is given. It is for demonstrations and tests of the pipeline around it.

Reads ppo-batches of one run, writes policy-updates and trainer-reports, serves
/v1/completions, /tokenize and what else a sampler asks for.
Promises: every StepBatch is answered; parameters are on disk before an update is
published; a StepBatch seen again is answered again and not trained on twice.
Without --brokers it only serves.

Exit code 3: the state was written by a newer version, or its directory is in use.`

// config is what the process can be told.
type config struct {
	cluster.Config
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
}

func (c *config) register(flags *process.Flags) {
	d := ppo.Defaults()
	f := flags.Group("Policy")
	f.StringVar(&c.problems, "problems", "", "JSONL file of worked solutions {question, answer} (default: a sample of GSM8K that is built in)")
	f.StringVar(&c.model, "model", "simpolicy", "name of the model that requests may give")
	f.IntVar(&c.maxModelLen, "max-model-len", 32768, "most tokens of prompt and completion together")
	f.Uint64Var(&c.seed, "seed", 1, "seed of the server's own draws: requests without a seed, latency, aborts")
	f.DurationVar(&c.latency, "latency", 0, "wait before each sample, mean")
	f.DurationVar(&c.jitter, "latency-jitter", 0, "most that a wait lies above or below the mean")
	f.Float64Var(&c.abortRate, "abort-rate", 0, "chance of each sample to be aborted, 0 to 1")
	f = flags.Group("Trainer")
	f.StringVar(&c.runID, "run-id", "", "the run to train for; needed with --brokers")
	f.StringVar(&c.stateDir, "state-dir", "", "directory for parameters, optimizer and position, one file a run; needed with --brokers")
	f.BoolVar(&c.freeze, "freeze", false, "answer every StepBatch but change no parameter")
	f.Float64Var(&c.train.LearningRate, "learning-rate", d.LearningRate, "step of Adam, in logits")
	f.IntVar(&c.train.Epochs, "ppo-epochs", d.Epochs, "gradient steps on each StepBatch")
	f.Float64Var(&c.train.Temperature, "train-temperature", d.Temperature, "temperature that the samples were drawn at")
	f.StringVar(&c.inference, "inference-url", "", "where samplers reach this server, said in policy updates; - says none: samplers stay where they are (default: http:// and the address listened on)")
	c.RegisterOptional(flags.Group("Kafka"), "serve only")
}

func (c *config) check() error {
	if err := c.CheckOptional(); err != nil {
		return err
	}
	if len(c.Brokers) > 0 || c.runID != "" {
		if err := identity.CheckRunID(c.runID); err != nil {
			return fmt.Errorf("--run-id: %w", err)
		}
	}
	if len(c.Brokers) > 0 && c.stateDir == "" {
		return errors.New("--state-dir is needed with --brokers: an update is published only once its parameters are on disk")
	}
	if c.stateDir != "" && c.runID == "" {
		return errors.New("--run-id is needed with --state-dir: the directory holds one file a run")
	}
	if err := c.train.Validate(); err != nil {
		return err
	}
	return c.server().Validate()
}

func (c *config) server() server.Config {
	return server.Config{
		Model: c.model, MaxModelLen: c.maxModelLen, Latency: c.latency, Jitter: c.jitter,
		AbortRate: c.abortRate, Seed: c.seed,
	}
}
