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

	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/observation"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/toolcall"
	"github.com/sluice-rl/sluice/topology/process"
)

// The modes of an inference server's logprobs.
const (
	logprobsAuto      = "auto"
	logprobsRaw       = inference.LogprobsRaw
	logprobsProcessed = inference.LogprobsProcessed
)

// tokenizerServer leaves templates and tokens to the inference server.
const tokenizerServer = "server"

// config is what the sampler can be told; every field is a flag.
type config struct {
	urls             []string
	dialect          string
	model            string
	apiKey           string
	protocol         string
	systemPromptFile string
	addedTokensFile  string
	timeout          string
	tokenizer        string
	logprobsMode     string
	stopTokens       []uint
	concurrency      int
	requestTimeout   time.Duration
	turnAttempts     int
	turnTime         time.Duration
	tokensInFlight   int64
	vocabulary       int
	refusals         int
}

func (c *config) register(f *pflag.FlagSet) {
	f.StringArrayVar(&c.urls, "inference-url", []string{"http://127.0.0.1:8000"}, "inference server, until a policy update names another for its run; give it again for each of several that serve the same model")
	f.StringVar(&c.dialect, "dialect", inference.DialectAuto, "how the inference servers are asked: "+strings.Join(inference.DialectNames(), ", ")+"; auto asks each what it is")
	f.StringVar(&c.model, "model", "", "model to ask for; empty: the only one the server has")
	process.Secret(f, &c.apiKey, "inference-api-key", "the key that the inference server asks for")
	f.StringVar(&c.protocol, "tool-protocol", toolcall.QwenName, "how the policy writes a call; prompts for another are refused")
	f.StringVar(&c.systemPromptFile, "system-prompt-file", "", "file with the system prompt of trajectories with the tool; empty: the one built in")
	f.StringVar(&c.addedTokensFile, "added-tokens-file", "", "file with the tokenizer's added tokens, one a line, which are defused in what programs print; empty: those of Qwen3 and Qwen3.5")
	f.StringVar(&c.timeout, "timeout-observation", string(observation.Message), "what the policy sees of a program that ran too long: message (a fixed text), or output (what it had printed, then that text); recorded with the turn")
	f.StringVar(&c.tokenizer, "tokenizer", tokenizerServer, "who renders the chat template and tokenises: server, or a model's folder with tokenizer.json (byte-level BPE) and its chat template, whose added tokens are then defused")
	f.StringVar(&c.logprobsMode, "logprobs-mode", logprobsAuto, "what the server's logprobs are of: raw (before temperature), processed (of the distribution that was sampled), or auto: as its dialect documents (vllm and llamacpp raw, sglang processed)")
	f.UintSliceVar(&c.stopTokens, "stop-token-ids", nil, "token ids that end a turn, beside the model's own end tokens")
	f.IntVar(&c.concurrency, "concurrency", 256, "records worked on at once; a prompt asks for its whole group")
	f.DurationVar(&c.requestTimeout, "request-timeout", 10*time.Minute, "how long one attempt at a completion may take")
	f.IntVar(&c.turnAttempts, "turn-attempts", 5, "requests that servers may take on for one turn without a usable answer; then its trajectory ends, ungraded")
	f.DurationVar(&c.turnTime, "turn-time", 30*time.Minute, "how long these may take together; waiting for a server that is away does not count")
	f.Int64Var(&c.tokensInFlight, "tokens-in-flight", 4<<20, "prompt and completion tokens asked for at once of each inference server")
	f.IntVar(&c.vocabulary, "vocabulary-size", 0, "token ids that the model has; 0: as the server says, if it does")
	f.IntVar(&c.refusals, "max-refusals", 16, "requests in a row that may be refused, with no usable answer to any between, before the sampler stops")
}

func (c *config) validate() error {
	if len(c.urls) == 0 {
		return errors.New("--inference-url: want at least one")
	}
	for i, s := range c.urls {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return fmt.Errorf("--inference-url %q: want http://host:port", s)
		}
		if slices.Contains(c.urls[:i], s) {
			return fmt.Errorf("--inference-url %q is given twice", s)
		}
	}
	if !slices.Contains(inference.DialectNames(), c.dialect) {
		return fmt.Errorf("--dialect %q: want one of %s", c.dialect, strings.Join(inference.DialectNames(), ", "))
	}
	if _, err := toolcall.ByName(c.protocol); err != nil {
		return fmt.Errorf("--tool-protocol: %w", err)
	}
	if _, err := observation.ParseTimeout(c.timeout); err != nil {
		return fmt.Errorf("--timeout-observation: %w", err)
	}
	if !slices.Contains([]string{logprobsAuto, logprobsRaw, logprobsProcessed}, c.logprobsMode) {
		return fmt.Errorf("--logprobs-mode %q: want %s, %s or %s", c.logprobsMode, logprobsAuto, logprobsRaw, logprobsProcessed)
	}
	for _, id := range c.stopTokens {
		if uint64(id) > math.MaxUint32 {
			return fmt.Errorf("--stop-token-ids: %d is no token id", id)
		}
	}
	if c.concurrency < 1 || c.requestTimeout <= 0 {
		return errors.New("--concurrency and --request-timeout must be above 0")
	}
	if c.turnAttempts < 1 || c.turnTime <= 0 || c.tokensInFlight < 1 || c.vocabulary < 0 || c.refusals < 1 {
		return errors.New("--turn-attempts, --turn-time, --tokens-in-flight and --max-refusals must be above 0, --vocabulary-size not below")
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

// local is the renderer of a model's folder; nil: the server renders.
func (c *config) local() (*inference.Local, error) {
	if c.tokenizer == "" || c.tokenizer == tokenizerServer {
		return nil, nil
	}
	l, err := inference.OpenLocal(c.tokenizer)
	if err != nil {
		return nil, fmt.Errorf("--tokenizer: %w", err)
	}
	return l, nil
}

func (c *config) defuser(local *inference.Local) (*observation.Defuser, error) {
	tokens := observation.Qwen()
	if local != nil {
		tokens = append(tokens, local.Added()...)
	}
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

// endpoints are what the flags name.
func (c *config) endpoints() []inference.Endpoint {
	eps := make([]inference.Endpoint, len(c.urls))
	for i, u := range c.urls {
		eps[i] = inference.Endpoint{URL: u, Model: c.model}
	}
	return eps
}
