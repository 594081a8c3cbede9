package inference

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluice-rl/sluice/stages/sampler/template"
	"github.com/sluice-rl/sluice/stages/sampler/tokenizer"
)

// Local renders and tokenises with the files of a model's folder instead of a server:
// for servers that cannot, and so that a prompt is the same whoever samples it.
type Local struct {
	tokenizer *tokenizer.Tokenizer
	template  *template.Template
}

// OpenLocal reads tokenizer.json and the chat template of a model's folder.
func OpenLocal(dir string) (*Local, error) {
	tok, err := tokenizer.Open(dir)
	if err != nil {
		return nil, err
	}
	tmpl, err := template.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Local{tok, tmpl}, nil
}

// Render applies the chat template, thinking off, and tokenises.
func (l *Local) Render(_ context.Context, c Conversation) ([]uint32, error) {
	messages, err := json.Marshal(c.Messages)
	if err != nil {
		return nil, err
	}
	thinking := false
	text, err := l.template.Render(template.Conversation{Messages: messages, Tools: c.Tools, Generate: c.Generate, Thinking: &thinking})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	return l.tokenizer.Encode(text), nil
}

// Added are the texts of the tokenizer's added tokens.
func (l *Local) Added() []string {
	var texts []string
	for _, t := range l.tokenizer.Added() {
		texts = append(texts, t.Text)
	}
	return texts
}

// Vocabulary is the number of token ids.
func (l *Local) Vocabulary() int { return l.tokenizer.Size() }
