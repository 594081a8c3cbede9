package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ardanlabs/jinja"
)

var (
	// ErrNone is a folder without a chat template.
	ErrNone = errors.New("no chat template")
	// ErrRefused is a template that will not render a conversation, with its own words.
	ErrRefused = errors.New("the chat template refuses the conversation")
)

// Template is a compiled chat template with the variables of its model. It may be used by
// several goroutines.
type Template struct {
	plain, withTools *jinja.Template
	// variables are the special tokens by name: bos_token, eos_token and so on.
	variables map[string]string
}

// Conversation is what a template is given.
type Conversation struct {
	// Messages is a JSON list of objects with role and content.
	Messages json.RawMessage
	// Tools is a JSON list of definitions; nil for none.
	Tools json.RawMessage
	// Generate puts the beginning of an assistant's message at the end.
	Generate bool
	// Thinking is enable_thinking; nil leaves it to the template.
	Thinking *bool
}

// Compile reads a template's text. Variables are the special tokens that it may name.
func Compile(source string, variables map[string]string) (*Template, error) {
	t, err := jinja.Compile(withOurFilters(source))
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return &Template{plain: t, withTools: t, variables: variables}, nil
}

// The files of a model's folder.
const (
	templateFile = "chat_template.jinja"
	configFile   = "tokenizer_config.json"
)

// Open reads the chat template of a model's folder.
func Open(dir string) (*Template, error) {
	cfg, err := readConfig(filepath.Join(dir, configFile))
	if err != nil {
		return nil, err
	}
	alone, err := os.ReadFile(filepath.Join(dir, templateFile))
	switch {
	case err == nil:
		return Compile(string(alone), cfg.variables)
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("chat template: %w", err)
	case cfg.plain == "":
		return nil, fmt.Errorf("%w in %s: neither %s nor chat_template in %s", ErrNone, dir, templateFile, configFile)
	}
	t, err := Compile(cfg.plain, cfg.variables)
	if err != nil || cfg.withTools == "" {
		return t, err
	}
	if t.withTools, err = jinja.Compile(withOurFilters(cfg.withTools)); err != nil {
		return nil, fmt.Errorf("chat template tool_use: %w", err)
	}
	return t, nil
}

// Render gives a conversation's text.
func (t *Template) Render(c Conversation) (string, error) {
	messages, err := value(c.Messages)
	if err != nil {
		return "", fmt.Errorf("messages: %w", err)
	}
	if !messages.IsList() || messages.AsList().Len() == 0 {
		return "", errors.New("messages: want a list with at least one message")
	}
	var refusal error
	data := builtins(t.variables)
	data["messages"] = messages
	data["tools"] = jinja.None()
	data["add_generation_prompt"] = jinja.NewBool(c.Generate)
	data["raise_exception"] = jinja.NewCallable("raise_exception", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		words := ""
		if len(args) > 0 {
			words = pythonString(args[0])
		}
		refusal = fmt.Errorf("%w: %s", ErrRefused, words)
		return jinja.Undefined(), refusal
	})
	tmpl := t.plain
	if c.Tools != nil {
		tools, err := value(c.Tools)
		if err != nil {
			return "", fmt.Errorf("tools: %w", err)
		}
		data["tools"], tmpl = tools, t.withTools
	}
	if c.Thinking != nil {
		data["enable_thinking"] = jinja.NewBool(*c.Thinking)
	}
	text, err := tmpl.RenderValues(data)
	switch {
	case refusal != nil:
		return "", refusal
	case err != nil:
		return "", fmt.Errorf("chat template: %w", err)
	}
	return text, nil
}
