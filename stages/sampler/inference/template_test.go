package inference_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/inference/inferencetest"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

type render func(messages []rollout.Message, tools json.RawMessage, generate bool) string

// through renders by way of a fake server.
func through(t *testing.T, dialect string, template render) inference.Renderer {
	c := client(t, &inferencetest.Fake{Dialect: dialect, Template: template}, inference.Config{})
	return inference.RendererFunc(func(ctx context.Context, conversation inference.Conversation) ([]uint32, error) {
		return c.Render(ctx, endpoints, conversation, &inference.Turn{ID: "template"})
	})
}

func TestGlueIsFoundWhateverStandsBeforeTheText(t *testing.T) {
	for name, c := range map[string]struct {
		template render
		tail     string
	}{
		"a plain template":       {inferencetest.Plain, "<|im_end|>\n<|im_start|>tool\n42\n<|im_end|>\n<|im_start|>assistant\n"},
		"one with a think block": {inferencetest.Thinking, "<|im_end|>\n<|im_start|>user\n<tool_response>\n42\n\n</tool_response><|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := through(t, "", c.template)
			tmpl, err := inference.NewTemplate(t.Context(), r, "Use the tool.", json.RawMessage(`[]`))
			if err != nil {
				t.Fatal(err)
			}
			if got := rollouttest.Text(tmpl.Glue().Closing); got != "<|im_end|>\n" {
				t.Errorf("closing tokens are %q", got)
			}
			tail, err := tmpl.Tail(t.Context(), r, "42\n")
			if err != nil || rollouttest.Text(tail) != c.tail {
				t.Errorf("Tail = %q, %v; want %q", rollouttest.Text(tail), err, c.tail)
			}
			if got := len(tail) - tmpl.Glue().Overhead; got != len("42\n") {
				t.Errorf("the observation counts %d tokens of its own, want 3", got)
			}
		})
	}
}

// llama-server leaves a last message of the assistant open, as if it were to be gone on
// with: what closes it shows before the next message.
func TestGlueIsFoundWhereALastMessageIsLeftOpen(t *testing.T) {
	for _, template := range []render{inferencetest.Plain, inferencetest.Thinking} {
		r := through(t, "llamacpp", template)
		tmpl, err := inference.NewTemplate(t.Context(), r, "Use the tool.", json.RawMessage(`[]`))
		if err != nil {
			t.Fatal(err)
		}
		if got := rollouttest.Text(tmpl.Glue().Closing); !strings.HasPrefix(got, "<|im_end|>\n") {
			t.Errorf("closing tokens are %q", got)
		}
		tail, err := tmpl.Tail(t.Context(), r, "42\n")
		if err != nil || len(tail)-tmpl.Glue().Overhead != len("42\n") {
			t.Errorf("Tail = %q, %v: want an observation of 3 tokens in it", rollouttest.Text(tail), err)
		}
	}
}

func TestTemplatesThatCannotBeUsed(t *testing.T) {
	for name, template := range map[string]render{
		"drops the assistant's text": func(m []rollout.Message, tools json.RawMessage, generate bool) string {
			return inferencetest.Plain(m[:1], tools, generate)
		},
		"repeats the assistant's text": func(m []rollout.Message, tools json.RawMessage, generate bool) string {
			return inferencetest.Plain(append(m, m[2]), tools, generate)
		},
		"drops the observation": func(m []rollout.Message, tools json.RawMessage, generate bool) string {
			return inferencetest.Plain(m[:min(len(m), 3)], tools, generate)
		},
		"does not close a message": func(m []rollout.Message, tools json.RawMessage, generate bool) string {
			return strings.ReplaceAll(inferencetest.Plain(m, tools, generate), "<|im_end|>\n", "")
		},
		"closes it differently before an observation": func(m []rollout.Message, tools json.RawMessage, generate bool) string {
			s := inferencetest.Plain(m, tools, generate)
			if m[len(m)-1].Role == "tool" {
				s = strings.Replace(s, "x<|im_end|>\n<|im_start|>tool", "x<|eot|>\n<|im_start|>tool", 1)
				s = strings.Replace(s, "y<|im_end|>\n<|im_start|>tool", "y<|eot|>\n<|im_start|>tool", 1)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := inference.NewTemplate(t.Context(), through(t, "", template), "Use the tool.", nil); !errors.Is(err, inference.ErrTemplate) {
				t.Errorf("error = %v, want ErrTemplate", err)
			}
		})
	}
}

func TestAnObservationThatChangesWhatStandsBeforeItIsRefused(t *testing.T) {
	r := through(t, "", func(m []rollout.Message, tools json.RawMessage, generate bool) string {
		return m[len(m)-1].Content[:min(1, len(m[len(m)-1].Content))] + inferencetest.Plain(m, tools, generate)
	})
	tmpl, err := inference.NewTemplate(t.Context(), through(t, "", inferencetest.Plain), "Use the tool.", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Tail(t.Context(), r, "42\n"); !errors.Is(err, inference.ErrTemplate) {
		t.Errorf("error = %v, want ErrTemplate", err)
	}
}
