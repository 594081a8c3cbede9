package inference_test

import (
	"os"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

// TestARealServer asks a server that runs: SLUICE_INFERENCE_URL=http://host:port go test
// -run RealServer ./stages/sampler/inference. Any small instruct model will do.
func TestARealServer(t *testing.T) {
	url := os.Getenv("SLUICE_INFERENCE_URL")
	if url == "" {
		t.Skip("SLUICE_INFERENCE_URL names no server")
	}
	c, err := inference.New(t.Context(), inference.Config{RequestTimeout: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	eps := []inference.Endpoint{{URL: url}}
	info, err := c.Check(t.Context(), eps[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", info)
	prompt, err := c.Render(t.Context(), eps, inference.Conversation{Messages: []rollout.Message{{Role: "user", Content: "Say yes."}}, Generate: true}, turn())
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Sample(t.Context(), eps, inference.Request{ID: "real", Prompt: prompt, N: 3, MaxTokens: 12, Seed: 7, Temperature: 1, TopP: 1}, turn())
	if err != nil {
		t.Fatal(err)
	}
	for i, ch := range got.Choices {
		if ch.Err != nil || len(ch.Tokens) == 0 || len(ch.Tokens) != len(ch.Logprobs) {
			t.Errorf("choice %d: %d tokens, %d logprobs, %v", i, len(ch.Tokens), len(ch.Logprobs), ch.Err)
		}
		t.Logf("%v %q %v %v", ch.Finish, ch.Text, ch.Tokens, ch.Logprobs)
	}
	if got.PromptTokens() != 0 && got.PromptTokens() != len(prompt) {
		t.Errorf("the server counts %d tokens of prompt, %d were sent", got.PromptTokens(), len(prompt))
	}
}
