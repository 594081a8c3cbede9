package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrInvalid is in the chain of every error about a conversation.
var ErrInvalid = errors.New("invalid conversation")

// Message is one message in the form of the chat completions API.
type Message struct {
	Role      string     `json:"role"`
	Content   Content    `json:"content"`
	ToolCalls []ToolCall `json:"tool_calls"`
}

// ToolCall is a call that an assistant message makes.
type ToolCall struct {
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// Content is a message's text: a string, null, or a list of parts of type text.
type Content string

// UnmarshalJSON reads the three forms.
func (c *Content) UnmarshalJSON(b []byte) error {
	var s *string
	if json.Unmarshal(b, &s) == nil {
		if *c = ""; s != nil {
			*c = Content(*s)
		}
		return nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return fmt.Errorf("%w: content is neither a string nor a list of parts", ErrInvalid)
	}
	var all strings.Builder
	for i, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return fmt.Errorf("%w: content part %d is of type %q: only text can be read", ErrInvalid, i, p.Type)
		}
		all.WriteString(*p.Text)
	}
	*c = Content(all.String())
	return nil
}

// Options are what the template takes besides messages.
type Options struct {
	Tools               []json.RawMessage
	AddGenerationPrompt bool
	EnableThinking      bool
}

const (
	start = "<|im_start|>"
	end   = "<|im_end|>\n"
	// EmptyThought begins an assistant's turn that does not think.
	EmptyThought = "<think>\n\n</think>\n\n"
	// OpenThought begins one that does.
	OpenThought = "<think>\n"

	toolsHead = "# Tools\n\nThese functions can be called:\n\n<tools>"
	toolsTail = `
</tools>

A call is written in exactly this form, and nothing follows it:

<tool_call>
<function=NAME>
<parameter=PARAMETER>
value, on as many lines as it needs
</parameter>
</function>
</tool_call>

Reasoning may stand before a call. Give every required parameter. Where no function is of use, answer without one.`
)

// Render writes a conversation.
func Render(messages []Message, o Options) (string, error) {
	if len(messages) == 0 {
		return "", fmt.Errorf("%w: no messages", ErrInvalid)
	}
	last := lastQuestion(messages)
	if last < 0 {
		return "", fmt.Errorf("%w: no user message that asks something", ErrInvalid)
	}
	var b strings.Builder
	if err := renderSystem(&b, messages, o.Tools); err != nil {
		return "", err
	}
	for i, m := range messages {
		switch m.Role {
		case "system":
			if i > 0 {
				return "", fmt.Errorf("%w: message %d is a system message: only the first can be", ErrInvalid, i)
			}
		case "user":
			b.WriteString(start + "user\n" + strings.TrimSpace(string(m.Content)) + end)
		case "assistant":
			if err := renderAssistant(&b, m, i > last); err != nil {
				return "", fmt.Errorf("message %d: %w", i, err)
			}
		case "tool":
			if i == 0 || messages[i-1].Role != "tool" {
				b.WriteString(start + "user")
			}
			b.WriteString("\n<tool_response>\n" + strings.TrimSpace(string(m.Content)) + "\n</tool_response>")
			if i+1 == len(messages) || messages[i+1].Role != "tool" {
				b.WriteString(end)
			}
		default:
			return "", fmt.Errorf("%w: message %d has role %q: want system, user, assistant or tool", ErrInvalid, i, m.Role)
		}
	}
	if o.AddGenerationPrompt {
		b.WriteString(GenerationPrompt(o.EnableThinking))
	}
	return b.String(), nil
}

// GenerationPrompt is what an assistant's turn begins with.
func GenerationPrompt(thinking bool) string {
	if thinking {
		return start + "assistant\n" + OpenThought
	}
	return start + "assistant\n" + EmptyThought
}

// lastQuestion is the index of the last user message that is no tool's answer.
func lastQuestion(messages []Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if m := messages[i]; m.Role == "user" && !isToolAnswer(string(m.Content)) {
			return i
		}
	}
	return -1
}

func isToolAnswer(content string) bool {
	c := strings.TrimSpace(content)
	return strings.HasPrefix(c, "<tool_response>") && strings.HasSuffix(c, "</tool_response>")
}

func renderSystem(b *strings.Builder, messages []Message, tools []json.RawMessage) error {
	var system string
	hasSystem := messages[0].Role == "system"
	if hasSystem {
		system = strings.TrimSpace(string(messages[0].Content))
	}
	if len(tools) == 0 {
		if hasSystem {
			b.WriteString(start + "system\n" + system + end)
		}
		return nil
	}
	b.WriteString(start + "system\n" + toolsHead)
	for i, t := range tools {
		var line bytes.Buffer
		if err := json.Compact(&line, t); err != nil {
			return fmt.Errorf("%w: tool %d is no JSON: %w", ErrInvalid, i, err)
		}
		b.WriteString("\n" + line.String())
	}
	b.WriteString(toolsTail)
	if system != "" {
		b.WriteString("\n\n" + system)
	}
	b.WriteString(end)
	return nil
}

func renderAssistant(b *strings.Builder, m Message, current bool) error {
	content := string(m.Content)
	if _, after, ok := strings.Cut(content, "</think>"); ok {
		content = after
	}
	content = strings.TrimSpace(content)
	b.WriteString(start + "assistant\n")
	if current {
		b.WriteString(EmptyThought)
	}
	b.WriteString(content)
	for i, c := range m.ToolCalls {
		switch {
		case i > 0:
			b.WriteString("\n")
		case content != "":
			b.WriteString("\n\n")
		}
		if err := renderCall(b, c); err != nil {
			return fmt.Errorf("tool call %d: %w", i, err)
		}
	}
	b.WriteString(end)
	return nil
}

func renderCall(b *strings.Builder, c ToolCall) error {
	if c.Function.Name == "" {
		return fmt.Errorf("%w: it names no function", ErrInvalid)
	}
	args, err := arguments(c.Function.Arguments)
	if err != nil {
		return err
	}
	b.WriteString("<tool_call>\n<function=" + c.Function.Name + ">\n")
	for _, a := range args {
		b.WriteString("<parameter=" + a.name + ">\n" + a.value + "\n</parameter>\n")
	}
	b.WriteString("</function>\n</tool_call>")
	return nil
}

type argument struct{ name, value string }

// arguments reads a JSON object, or a string that holds one, in its own order.
func arguments(raw json.RawMessage) ([]argument, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	if s, ok := text(raw); ok {
		raw = json.RawMessage(s)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("%w: arguments are no JSON object", ErrInvalid)
	}
	var args []argument
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("%w: arguments: %w", ErrInvalid, err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("%w: argument %v: %w", ErrInvalid, key, err)
		}
		s, ok := text(value)
		if !ok {
			s = string(value)
		}
		args = append(args, argument{name: fmt.Sprint(key), value: s})
	}
	return args, nil
}

// text reads a JSON string; ok is false for any other value, null included.
func text(value json.RawMessage) (s string, ok bool) {
	var p *string
	if json.Unmarshal(value, &p) != nil || p == nil {
		return "", false
	}
	return *p, true
}
