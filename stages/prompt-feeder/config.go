package main

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/process"
)

// config is what the feeder can be told; every field is a flag.
type config struct {
	data        string
	runID       string
	mode        string
	steps       uint64
	problems    uint32
	groupSize   uint32
	seed        uint64
	textOnly    bool
	protocol    string
	temperature float64
	topP        float64
	topK        uint32
	codeCalls   uint32
	turns       uint32
	tokens      uint32
	turnTokens  uint32
	obsTokens   uint32
	execution   time.Duration
	reward      string
}

func (c *config) register(flags *process.Flags) {
	f := flags.Group("Run")
	f.StringVar(&c.data, "data", "", "prepared problem file, JSONL of {id, question, answer, data_source} (required)")
	f.StringVar(&c.runID, "run-id", "", "names the run in every event: 1 to 100 of A-Z a-z 0-9 _ - (required)")
	f.StringVar(&c.mode, "mode", "train", "train: step after step as the trainer answers; eval: every problem once")
	f.Uint64Var(&c.steps, "steps", 0, "stop when this many steps are answered; 0: never (train mode)")
	f.Uint32Var(&c.problems, "problems-per-step", 16, "groups in a step")
	f.Uint32Var(&c.groupSize, "group-size", 8, "trajectories sampled of each problem")
	f.Uint64Var(&c.seed, "seed", 42, "seeds the order of problems and, with the place, every sampling request")
	f.StringVar(&c.reward, "reward", "", "what the run is rewarded by, in your words; recorded with the run, which no other is then taken for")
	f.BoolVar(&c.textOnly, "text-only", false, "no tool and no system prompt: one turn of up to the trajectory budget")
	f.StringVar(&c.protocol, "tool-protocol", "qwen", "how the policy writes a call; the sampler must be started for the same")
	f = flags.Group("Sampling")
	f.Float64Var(&c.temperature, "temperature", 1, "sampling temperature; other than 1 the behaviour logprobs are of another distribution than the trainer's")
	f.Float64Var(&c.topP, "top-p", 1, "nucleus sampling bound, above 0 and at most 1; below 1 see --temperature")
	f.Uint32Var(&c.topK, "top-k", 0, "sample among the k likeliest tokens; 0: all; above 0 see --temperature")
	f = flags.Group("Budgets of a trajectory")
	f.Uint32Var(&c.codeCalls, "max-code-calls", 4, "code calls a trajectory may make")
	f.Uint32Var(&c.turns, "max-turns", 6, "turns a trajectory may take")
	f.Uint32Var(&c.tokens, "max-trajectory-tokens", 8192, "tokens of a trajectory, prompt included")
	f.Uint32Var(&c.turnTokens, "max-turn-tokens", 1024, "sampled tokens of one turn")
	f.Uint32Var(&c.obsTokens, "max-observation-tokens", 512, "tokens of one observation")
	f.DurationVar(&c.execution, "execution-timeout", 30*time.Second, "time one program may run, to the millisecond")
}

func (c *config) validate() error {
	if c.data == "" {
		return fmt.Errorf("--data is missing: name a prepared problem file (`prompt-feeder prepare --help`)")
	}
	if c.mode != "train" && c.mode != "eval" {
		return fmt.Errorf("--mode %q: want train or eval", c.mode)
	}
	if c.mode == "eval" && c.steps != 0 {
		return fmt.Errorf("--steps %d with --mode eval: it feeds every problem once", c.steps)
	}
	if c.problems < 1 || c.problems > math.MaxInt32 {
		return fmt.Errorf("--problems-per-step %d: want 1 or more", c.problems)
	}
	if c.mode == "train" && c.groupSize == 1 {
		return fmt.Errorf("--group-size 1: a trajectory has an advantage only over others of its group: want 2 or more")
	}
	if ms := c.execution.Milliseconds(); ms < 1 || ms > math.MaxUint32 {
		return fmt.Errorf("--execution-timeout %s: want at least 1ms", c.execution)
	}
	if err := identity.CheckRunID(c.runID); err != nil {
		return fmt.Errorf("--run-id: %w", err)
	}
	// What the contracts ask of a prompt they ask of these flags.
	probe := c.prompt(&sluicev1.Problem{QuestionId: "probe", Question: "probe", Answer: "probe"}, identity.Group{RunID: c.runID, Step: 1}, 1)
	if err := codec.Validate(probe); err != nil {
		return fmt.Errorf("flags make no valid prompt: %w", err)
	}
	return nil
}
