package main

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/stages/sampler/observation"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/toolcall"
	"github.com/sluice-rl/sluice/topology/process"
)

// The modes of an inference server's logprobs.
const (
	logprobsRaw       = "raw"
	logprobsProcessed = "processed"
)

// config is what the sampler can be told; every field is a flag.
type config struct {
	url              string
	model            string
	apiKey           string
	protocol         string
	systemPromptFile string
	addedTokensFile  string
	logprobsMode     string
	stopTokens       []uint
	concurrency      int
	requestTimeout   time.Duration
}

func (c *config) register(f *pflag.FlagSet) {
	f.StringVar(&c.url, "inference-url", "http://127.0.0.1:8000", "inference server in vLLM's dialect, until a policy update names another")
	f.StringVar(&c.model, "model", "", "model to ask for; empty: the only one the server has")
	process.Secret(f, &c.apiKey, "inference-api-key", "the key that the inference server asks for")
	f.StringVar(&c.protocol, "tool-protocol", toolcall.QwenName, "how the policy writes a call; prompts for another are refused")
	f.StringVar(&c.systemPromptFile, "system-prompt-file", "", "file with the system prompt of trajectories with the tool; empty: the one built in")
	f.StringVar(&c.addedTokensFile, "added-tokens-file", "", "file with the tokenizer's added tokens, one a line, which are defused in what programs print; empty: those of Qwen3 and Qwen3.5")
	f.StringVar(&c.logprobsMode, "logprobs-mode", logprobsRaw, "what the server's logprobs are of: raw (before temperature) or processed (of the distribution that was sampled)")
	f.UintSliceVar(&c.stopTokens, "stop-token-ids", nil, "token ids that end a turn, beside the model's own end tokens")
	f.IntVar(&c.concurrency, "concurrency", 256, "records worked on at once; a prompt asks for its whole group")
	f.DurationVar(&c.requestTimeout, "request-timeout", 10*time.Minute, "how long one attempt at a completion may take")
}

func (c *config) validate() error {
	u, err := url.Parse(c.url)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("--inference-url %q: want http://host:port", c.url)
	}
	if _, err := toolcall.ByName(c.protocol); err != nil {
		return fmt.Errorf("--tool-protocol: %w", err)
	}
	if c.logprobsMode != logprobsRaw && c.logprobsMode != logprobsProcessed {
		return fmt.Errorf("--logprobs-mode %q: want %s or %s", c.logprobsMode, logprobsRaw, logprobsProcessed)
	}
	for _, id := range c.stopTokens {
		if uint64(id) > math.MaxUint32 {
			return fmt.Errorf("--stop-token-ids: %d is no token id", id)
		}
	}
	if c.concurrency < 1 || c.requestTimeout <= 0 {
		return errors.New("--concurrency and --request-timeout must be above 0")
	}
	return nil
}

func (c *config) systemPrompt() (string, error) {
	if c.systemPromptFile == "" {
		return rollout.SystemPrompt, nil
	}
	b, err := os.ReadFile(c.systemPromptFile)
	if err != nil {
		return "", fmt.Errorf("--system-prompt-file: %w", err)
	}
	if len(strings.TrimSpace(string(b))) == 0 {
		return "", fmt.Errorf("--system-prompt-file: %s is empty", c.systemPromptFile)
	}
	return strings.TrimRight(string(b), "\n"), nil
}

func (c *config) defuser() (*observation.Defuser, error) {
	tokens := observation.Qwen()
	if c.addedTokensFile != "" {
		b, err := os.ReadFile(c.addedTokensFile)
		if err != nil {
			return nil, fmt.Errorf("--added-tokens-file: %w", err)
		}
		tokens = slices.DeleteFunc(strings.Split(string(b), "\n"), func(s string) bool { return s == "" })
	}
	d, err := observation.NewDefuser(tokens)
	if err != nil {
		return nil, fmt.Errorf("--added-tokens-file: %w", err)
	}
	return d, nil
}

func (c *config) stopTokenIDs() []uint32 {
	ids := make([]uint32, len(c.stopTokens))
	for i, id := range c.stopTokens {
		ids[i] = uint32(id)
	}
	return ids
}
