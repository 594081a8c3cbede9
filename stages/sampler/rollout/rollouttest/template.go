package rollouttest

import (
	"strings"

	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

// The template: "<|im_start|>ROLE\nCONTENT<|im_end|>\n" per message, without tools,
// and the beginning of an assistant's message to generate.
const (
	endOfTurn = "<|im_end|>"
	closing   = endOfTurn + "\n"
	generate  = "<|im_start|>assistant\n"
)

// Tokens is one token per byte.
func Tokens(s string) []uint32 {
	tokens := make([]uint32, len(s))
	for i := range len(s) {
		tokens[i] = uint32(s[i])
	}
	return tokens
}

// Text is the inverse of Tokens.
func Text(tokens []uint32) string {
	b := make([]byte, len(tokens))
	for i, t := range tokens {
		b[i] = byte(t)
	}
	return string(b)
}

// WithoutSpecial is a completion's text as a server gives it.
func WithoutSpecial(s string) string { return strings.ReplaceAll(s, endOfTurn, "") }

// Prompt renders a conversation up to where the assistant speaks.
func Prompt(messages []rollout.Message) []uint32 {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(message(m.Role, m.Content))
	}
	return Tokens(b.String() + generate)
}

// Tail renders what follows an assistant's text up to its next turn.
func Tail(observation string) []uint32 {
	return Tokens(closing + message("tool", observation) + generate)
}

// Glue is the template's.
func Glue() rollout.Glue {
	return rollout.Glue{Closing: Tokens(closing), Overhead: len(Tail(""))}
}

func message(role, content string) string {
	return "<|im_start|>" + role + "\n" + content + closing
}
