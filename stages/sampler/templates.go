package main

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/sluice-rl/sluice/stages/sampler/inference"
)

// maxTemplates bounds what is remembered: a trainer may name a new model every step.
const maxTemplates = 16

// templates finds the chat template's glue once per endpoint.
type templates struct {
	policy       policy
	systemPrompt string
	tools        json.RawMessage

	mu    sync.Mutex
	known map[inference.Endpoint]*inference.Template
}

func newTemplates(p policy, systemPrompt string, tools json.RawMessage) *templates {
	return &templates{policy: p, systemPrompt: systemPrompt, tools: tools, known: map[inference.Endpoint]*inference.Template{}}
}

// of derives the glue of an endpoint, or remembers it. Several may derive it at once
// when it is new, and find the same.
func (t *templates) of(ctx context.Context, ep inference.Endpoint) (*inference.Template, error) {
	t.mu.Lock()
	tmpl := t.known[ep]
	t.mu.Unlock()
	if tmpl != nil {
		return tmpl, nil
	}
	tmpl, err := inference.NewTemplate(ctx, t.renderer(ep), t.systemPrompt, t.tools)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxTemplates {
		clear(t.known)
	}
	t.known[ep] = tmpl
	return tmpl, nil
}

func (t *templates) renderer(ep inference.Endpoint) inference.Renderer {
	return inference.RendererFunc(func(ctx context.Context, c inference.Conversation) ([]uint32, error) {
		return t.policy.Render(ctx, ep, c)
	})
}
