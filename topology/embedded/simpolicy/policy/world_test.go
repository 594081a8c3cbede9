package policy

import (
	"encoding/json"
	"testing"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/chat"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/tokenizer"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/worked"
)

const problems = `{"question":"Weng earns $12 an hour. She sat for 50 minutes. How much?","answer":"<<12/60=0.2>> a minute, <<0.2*50=10>>.\n#### 10"}
{"question":"How many are 2 and 3?","answer":"<<2+3=5>>\n#### 5"}
`

type world struct {
	tok *tokenizer.Tokenizer
	pol *Policy
	lib *worked.Library
}

func newWorld(t testing.TB) world {
	t.Helper()
	tok, err := tokenizer.New()
	if err != nil {
		t.Fatal(err)
	}
	lib, err := worked.Load([]byte(problems))
	if err != nil {
		t.Fatal(err)
	}
	pol, err := New(tok, lib)
	if err != nil {
		t.Fatal(err)
	}
	return world{tok, pol, lib}
}

// prompt renders a conversation; said and observed take turns after the question.
func (w world) prompt(t testing.TB, tool bool, question string, saidAndObserved ...string) []uint32 {
	t.Helper()
	o := chat.Options{AddGenerationPrompt: true}
	if tool {
		o.Tools = []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"code_interpreter"}}`)}
	}
	ms := []chat.Message{{Role: "user", Content: chat.Content(question)}}
	for i, text := range saidAndObserved {
		role := "assistant"
		if i%2 == 1 {
			role = "tool"
		}
		ms = append(ms, chat.Message{Role: role, Content: chat.Content(text)})
	}
	text, err := chat.Render(ms, o)
	if err != nil {
		t.Fatal(err)
	}
	return w.tok.Encode(text)
}

// certain are parameters under which the named choices are as good as sure.
func certain(choices map[Site]string) Parameters {
	p := Initial()
	for s, name := range choices {
		for i, c := range s.Choices() {
			if c == name {
				p[s][i] = 40
			}
		}
	}
	return p
}

func (w world) say(t testing.TB, p Parameters, prompt []uint32, seed uint64) (string, Generation) {
	t.Helper()
	g, err := w.pol.Sample(p, Request{Prompt: prompt, Seed: seed, MaxTokens: 2000, Sampling: Plain})
	if err != nil {
		t.Fatal(err)
	}
	text, err := w.tok.Text(ids(g.Tokens))
	if err != nil {
		t.Fatal(err)
	}
	return text, g
}

func ids(tokens []Token) []uint32 {
	out := make([]uint32, len(tokens))
	for i, t := range tokens {
		out[i] = t.ID
	}
	return out
}
