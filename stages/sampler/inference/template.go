package inference

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

// Renderer makes tokens of a conversation.
type Renderer interface {
	Render(ctx context.Context, c Conversation) ([]uint32, error)
}

// RendererFunc makes a Renderer of a function.
type RendererFunc func(ctx context.Context, c Conversation) ([]uint32, error)

// Render calls f.
func (f RendererFunc) Render(ctx context.Context, c Conversation) ([]uint32, error) {
	return f(ctx, c)
}

// Two assistant messages of one token each. Where their renders differ is where an
// assistant's text stands, whatever the template puts before it.
const (
	placeholder = "x"
	otherHolder = "y"
)

// Template knows what a chat template puts after an assistant's text.
type Template struct {
	history []rollout.Message
	tools   json.RawMessage
	// head is a render with an observation up to and with the placeholder.
	head []uint32
	glue rollout.Glue
}

// NewTemplate finds the glue of a chat template by rendering around placeholders. The
// system prompt and the tools are those of the rollouts, because a template may render
// messages differently with them.
func NewTemplate(ctx context.Context, r Renderer, systemPrompt string, tools json.RawMessage) (*Template, error) {
	t := &Template{
		history: []rollout.Message{{Role: "system", Content: systemPrompt}, {Role: "user", Content: "1 + 1 = ?"}},
		tools:   tools,
	}
	closing, err := t.closing(ctx, r)
	if err != nil {
		return nil, err
	}
	// An observation of one token, so that the template's own can be counted: an empty
	// one may join what is around it. And it must show: some templates leave a tool's
	// message out if the message before it has no structured call.
	if _, err := split(ctx, r, func(observation string) Conversation { return t.observed(placeholder, observation) }); err != nil {
		return nil, fmt.Errorf("an observation: %w", err)
	}
	observed, err := split(ctx, r, func(assistant string) Conversation { return t.observed(assistant, placeholder) })
	if err != nil {
		return nil, fmt.Errorf("an assistant's message before an observation: %w", err)
	}
	if len(closing) == 0 {
		// llama-server takes a last message of the assistant for the beginning of an
		// answer and leaves it open. What follows it in every conversation closes it.
		followed, err := split(ctx, r, func(assistant string) Conversation { return t.followed(assistant) })
		if err != nil {
			return nil, fmt.Errorf("an assistant's message before a question: %w", err)
		}
		closing = observed.tail[:firstDifference(observed.tail, followed.tail)]
		if hasPrefix(observed.head, closing) { // it only begins the next message
			closing = nil
		}
	}
	t.glue = rollout.Glue{Closing: closing, Overhead: len(observed.tail) - 1}
	t.head = observed.head
	if len(t.glue.Closing) == 0 {
		return nil, fmt.Errorf("%w: it does not close an assistant's message", ErrTemplate)
	}
	if !hasPrefix(observed.tail, t.glue.Closing) {
		return nil, fmt.Errorf("%w: it closes an assistant's message with %v, but before an observation with %v",
			ErrTemplate, t.glue.Closing, observed.tail[:min(len(observed.tail), len(t.glue.Closing))])
	}
	return t, nil
}

// Glue is the template's.
func (t *Template) Glue() rollout.Glue { return t.glue }

// Tail is the tokens that follow an assistant's text if its program gave this
// observation: closing tokens, observation, and all up to the next turn, tokenised as
// one piece.
func (t *Template) Tail(ctx context.Context, r Renderer, observation string) ([]uint32, error) {
	all, err := r.Render(ctx, t.observed(placeholder, observation))
	if err != nil {
		return nil, err
	}
	if !hasPrefix(all, t.head) {
		return nil, fmt.Errorf("%w: it renders what stands before an observation differently for this one", ErrTemplate)
	}
	return all[len(t.head):], nil
}

// closing is what the template puts after an assistant's last message.
func (t *Template) closing(ctx context.Context, r Renderer) ([]uint32, error) {
	closed, err := split(ctx, r, func(assistant string) Conversation { return t.closed(assistant) })
	if err != nil {
		return nil, fmt.Errorf("an assistant's last message: %w", err)
	}
	return closed.tail, nil
}

func (t *Template) followed(assistant string) Conversation {
	return Conversation{Tools: t.tools, Generate: true, Messages: t.messages(
		rollout.Message{Role: "assistant", Content: assistant}, rollout.Message{Role: "user", Content: "2 + 2 = ?"})}
}

func (t *Template) closed(assistant string) Conversation {
	return Conversation{Messages: t.messages(rollout.Message{Role: "assistant", Content: assistant}), Tools: t.tools}
}

func (t *Template) observed(assistant, observation string) Conversation {
	return Conversation{Tools: t.tools, Generate: true, Messages: t.messages(
		rollout.Message{Role: "assistant", Content: assistant}, rollout.Message{Role: "tool", Content: observation})}
}

func (t *Template) messages(more ...rollout.Message) []rollout.Message {
	return append(append([]rollout.Message(nil), t.history...), more...)
}

// parts is a render around its placeholder.
type parts struct {
	// head ends with the placeholder.
	head, tail []uint32
}

// split finds the placeholder by rendering with two of them: they must differ in one
// token and nothing else.
func split(ctx context.Context, r Renderer, with func(assistant string) Conversation) (parts, error) {
	a, err := r.Render(ctx, with(placeholder))
	if err != nil {
		return parts{}, err
	}
	b, err := r.Render(ctx, with(otherHolder))
	if err != nil {
		return parts{}, err
	}
	if len(a) != len(b) {
		return parts{}, fmt.Errorf("%w: two texts of one character give %d and %d tokens", ErrTemplate, len(a), len(b))
	}
	at, differing := 0, 0
	for i := range a {
		if a[i] != b[i] {
			at = i
			differing++
		}
	}
	if differing != 1 {
		return parts{}, fmt.Errorf("%w: two texts of one character differ in %d tokens, want 1: it repeats, changes or drops the text", ErrTemplate, differing)
	}
	return parts{head: a[:at+1], tail: a[at+1:]}, nil
}

func hasPrefix(s, prefix []uint32) bool {
	return len(s) >= len(prefix) && slices.Equal(s[:len(prefix)], prefix)
}
