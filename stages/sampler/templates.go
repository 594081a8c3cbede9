package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/sluice-rl/sluice/stages/sampler/inference"
)

// maxTemplates bounds what is remembered: a trainer may name a new model every step.
const maxTemplates = 16

// templates finds the chat template's glue once per set of endpoints, which serve one
// model.
type templates struct {
	client       *inference.Client
	systemPrompt string
	tools        json.RawMessage

	mu    sync.Mutex
	known map[string]*inference.Template
}

func newTemplates(c *inference.Client, systemPrompt string, tools json.RawMessage) *templates {
	return &templates{client: c, systemPrompt: systemPrompt, tools: tools, known: map[string]*inference.Template{}}
}

// of derives the glue of endpoints, in the order in which their run names them, or
// remembers it. Several may derive it at once when it is new, and find the same.
func (t *templates) of(ctx context.Context, eps []inference.Endpoint, turn *inference.Turn) (*inference.Template, error) {
	key := fmt.Sprintf("%q", eps)
	t.mu.Lock()
	tmpl := t.known[key]
	t.mu.Unlock()
	if tmpl != nil {
		return tmpl, nil
	}
	tmpl, err := inference.NewTemplate(ctx, t.renderer(eps, turn), t.systemPrompt, t.tools)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxTemplates {
		clear(t.known)
	}
	t.known[key] = tmpl
	return tmpl, nil
}

func (t *templates) renderer(eps []inference.Endpoint, turn *inference.Turn) inference.Renderer {
	return inference.RendererFunc(func(ctx context.Context, c inference.Conversation) ([]uint32, error) {
		return t.client.Render(ctx, eps, c, turn)
	})
}
