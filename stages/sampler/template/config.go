package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// config is what tokenizer_config.json says to a template.
type config struct {
	plain, withTools string
	variables        map[string]string
}

// specialTokens are the names that a template may know special tokens by.
var specialTokens = []string{"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"}

// readConfig reads tokenizer_config.json; a folder without it has an empty one.
func readConfig(path string) (config, error) {
	var c config
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("chat template: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	c.variables = map[string]string{}
	for _, name := range specialTokens {
		text, ok, err := tokenText(fields[name])
		if err != nil {
			return c, fmt.Errorf("%s: %s: %w", path, name, err)
		}
		if ok {
			c.variables[name] = text
		}
	}
	if err := c.readTemplates(fields["chat_template"]); err != nil {
		return c, fmt.Errorf("%s: chat_template: %w", path, err)
	}
	return c, nil
}

// tokenText reads a special token, written as its text or as an object with content.
func tokenText(b json.RawMessage) (text string, ok bool, err error) {
	if len(b) == 0 || string(b) == "null" {
		return "", false, nil
	}
	if json.Unmarshal(b, &text) == nil {
		return text, true, nil
	}
	var object struct{ Content *string }
	if err := json.Unmarshal(b, &object); err != nil {
		return "", false, err
	}
	if object.Content == nil {
		return "", false, errors.New("neither a text nor an object with content")
	}
	return *object.Content, true, nil
}

// readTemplates reads one template, or a list of named ones, of which default and tool_use
// have a meaning.
func (c *config) readTemplates(b json.RawMessage) error {
	if len(b) == 0 || string(b) == "null" {
		return nil
	}
	if json.Unmarshal(b, &c.plain) == nil {
		return nil
	}
	var named []struct{ Name, Template string }
	if err := json.Unmarshal(b, &named); err != nil {
		return fmt.Errorf("neither a text nor a list of named templates: %w", err)
	}
	for _, n := range named {
		switch n.Name {
		case "default":
			c.plain = n.Template
		case "tool_use":
			c.withTools = n.Template
		}
	}
	if c.plain == "" {
		return fmt.Errorf("of %d named templates none is called default", len(named))
	}
	return nil
}
