package inference

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

// dialect is how one kind of server is asked. Each method makes one attempt.
type dialect interface {
	name() string
	// check learns what the server serves.
	check(ctx context.Context, t *transport, ep Endpoint) (Info, error)
	// sample asks for completions; the client inspects them.
	sample(ctx context.Context, t *transport, ep Endpoint, r Request) (Response, error)
	// render applies the chat template, thinking off, and tokenises; ErrNoTemplate where
	// the server cannot.
	render(ctx context.Context, t *transport, ep Endpoint, c Conversation) ([]uint32, error)
}

// Endpoint is where to ask, and for which model.
type Endpoint struct {
	URL   string
	Model string
}

// Info is what a check learns of a server.
type Info struct {
	Model string
	// MaxModelLen is the longest prompt and completion together; 0 if not known.
	MaxModelLen int
	// Vocabulary is the number of token ids; 0 if not known.
	Vocabulary int
	Dialect    string
	// Logprobs is what the dialect documents of its logprobs: LogprobsRaw or
	// LogprobsProcessed.
	Logprobs string
}

// What a server's logprobs are of.
const (
	// LogprobsRaw: of the model's distribution, before temperature.
	LogprobsRaw = "raw"
	// LogprobsProcessed: of the distribution that was sampled.
	LogprobsProcessed = "processed"
)

// Request asks for completions of one prompt.
type Request struct {
	// ID names the turn in the server's log; each attempt adds a part of its own.
	ID        string
	Prompt    []uint32
	N         int
	MaxTokens int
	// Seed is cut to the bits that the server takes.
	Seed        uint64
	Temperature float64
	TopP        float64
	// TopK is 0 for no limit.
	TopK int
	// StopTokenIDs end a completion beside the model's own end tokens.
	StopTokenIDs []uint32
	// Progress is told of the tokens as they come; nil: the answer is asked for whole.
	Progress Progress
}

// weight is how many tokens the request may hold at once.
func (r Request) weight() int64 { return int64(len(r.Prompt)) + int64(r.N)*int64(r.MaxTokens) }

// Choice is one completion.
type Choice struct {
	Tokens   []uint32
	Logprobs []float32
	Text     string
	Finish   rollout.Finish
	// Versions are the weights that sampled the tokens, in the server's own words;
	// empty where it does not say.
	Versions []Span
	// Err says why the completion cannot be used; nil where it can.
	Err error
	// Ended: it is known how it ended. While it is streamed, it is not.
	Ended bool
	// Whole is up to where the text is known to be that of the tokens: after that it may
	// lack a character of which only the first bytes were sampled.
	Whole Whole

	// finish is the server's own word, before it is read.
	finish string
	// ids are those that came with the logprobs, where they did: they must be Tokens.
	ids []uint32
	// usage is how many tokens the server counted for this completion; -1: not said.
	usage int
	// prompt is what the server says that it sampled on; nil: not said.
	prompt []uint32
	// cut is why its stream broke off, nil where it did not.
	cut error
}

// Whole is a place in a completion: after so many tokens and bytes of text.
type Whole struct{ Tokens, Text int }

// Span names the weights that sampled the next Count tokens.
type Span struct {
	Word  string
	Count int
}

// Response holds the choices in order, as many as were asked for.
type Response struct {
	Choices []Choice
	// Prompt is what the server says it sampled on; nil where it does not say.
	Prompt []uint32
	// PolicyVersion is the version that the server says it sampled with; known only
	// where HasVersion.
	PolicyVersion uint32
	HasVersion    bool
	// Version is the server's own word for its weights when it answered; "" where it
	// does not say.
	Version string
	// Endpoint answered.
	Endpoint Endpoint

	// promptTokens and completionTokens are the server's counts; -1: not said.
	promptTokens, completionTokens int
}

// Conversation is what Render makes tokens of.
type Conversation struct {
	Messages []rollout.Message
	// Tools is a JSON list of definitions; nil for none.
	Tools json.RawMessage
	// Generate puts the beginning of an assistant's message at the end.
	Generate bool
}

// Rank orders endpoints for a group by rendezvous hashing: the same group goes to the
// same server, where the beginning of its prompts is cached, and a server that leaves or
// joins moves the groups of its own alone.
func Rank(eps []Endpoint, group string) []Endpoint {
	ranked := slices.Clone(eps)
	slices.SortStableFunc(ranked, func(a, b Endpoint) int { return cmp.Compare(weigh(b.URL, group), weigh(a.URL, group)) })
	return ranked
}

func weigh(url, group string) uint64 {
	sum := sha256.Sum256([]byte(url + "\x00" + group))
	return binary.BigEndian.Uint64(sum[:])
}

// PromptTokens is how many tokens the server says that it sampled on; 0 where it does not
// say.
func (r Response) PromptTokens() int { return max(0, r.promptTokens) }
