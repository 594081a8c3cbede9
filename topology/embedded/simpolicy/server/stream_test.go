package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The pieces of a stream add up to the completions that come whole.
func TestAStreamIsTheWholeInPieces(t *testing.T) {
	for name, change := range map[string]func(*Config){"as they are": nil, "aborted": func(c *Config) { c.AbortRate = 1 }} {
		t.Run(name, func(t *testing.T) {
			ask := object{"prompt": newFixture(t, change).prompt(), "n": 3, "seed": 5, "max_tokens": 500, "logprobs": 0, "return_token_ids": true}
			// Each from a server of its own, whose aborts are drawn alike.
			want := newFixture(t, change).complete(ask)
			ask["stream"], ask["stream_options"] = true, object{"include_usage": true}
			body, err := json.Marshal(ask)
			if err != nil {
				t.Fatal(err)
			}
			code, got := newFixture(t, change).do(t.Context(), "POST", "/v1/completions", string(body))
			if code != 200 || !bytes.HasSuffix(got, []byte("\n\ndata: [DONE]\n\n")) {
				t.Fatalf("status %d, %q", code, got)
			}
			events := bytes.Split(bytes.TrimSuffix(got, []byte("\n\ndata: [DONE]\n\n")), []byte("\n\n"))
			have := completionResponse{ID: want.ID, Object: want.Object, Created: want.Created, Model: want.Model, PromptTokenIDs: want.PromptTokenIDs}
			have.Choices = make([]completionChoice, 3)
			for i, event := range events {
				var e chunk
				if err := json.Unmarshal(bytes.TrimPrefix(event, []byte("data: ")), &e); err != nil {
					t.Fatalf("event %d: %v: %s", i, err, event)
				}
				have.PolicyVersion = e.PolicyVersion
				if e.Usage != nil {
					have.Usage = *e.Usage
				}
				for _, c := range e.Choices {
					to := &have.Choices[c.Index]
					if to.TokenIDs == nil {
						to.Index, to.PromptTokenIDs, to.TokenIDs, to.Logprobs = c.Index, c.PromptTokenIDs, []uint32{}, &logprobs{[]int{}, []float32{}, []string{}, []map[string]float32{}}
					} else if c.PromptTokenIDs != nil {
						t.Errorf("event %d repeats the prompt", i)
					}
					to.Text += c.Text
					to.TokenIDs = append(to.TokenIDs, c.TokenIDs...)
					to.Logprobs = &logprobs{
						slices.Concat(to.Logprobs.TextOffset, c.Logprobs.TextOffset), slices.Concat(to.Logprobs.TokenLogprobs, c.Logprobs.TokenLogprobs),
						slices.Concat(to.Logprobs.Tokens, c.Logprobs.Tokens), slices.Concat(to.Logprobs.TopLogprobs, c.Logprobs.TopLogprobs),
					}
					if c.FinishReason != nil {
						to.FinishReason, to.StopReason = *c.FinishReason, c.StopReason
					}
				}
			}
			if fmt.Sprint(want.Choices[0].TokenIDs) != fmt.Sprint(have.Choices[0].TokenIDs) || len(events) < 3 {
				t.Errorf("%d events", len(events))
			}
			if diff := cmp.Diff(want, have, cmp.Comparer(func(a, b []int) bool { return slices.Equal(a, b) }), cmp.Comparer(func(a, b []float32) bool { return slices.Equal(a, b) }),
				cmp.Comparer(func(a, b []string) bool { return slices.Equal(a, b) }), cmp.Comparer(func(a, b []map[string]float32) bool { return fmt.Sprint(a) == fmt.Sprint(b) })); diff != "" {
				t.Errorf("-whole +streamed:\n%s", diff)
			}
		})
	}
}
