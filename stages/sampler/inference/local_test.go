package inference_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/inference/inferencetest"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/template"
	"github.com/sluice-rl/sluice/stages/sampler/tokenizer"
)

// modelFolder is a folder as models ship them.
func modelFolder(t *testing.T, chatTemplate string) string {
	t.Helper()
	dir := t.TempDir()
	tok, err := os.ReadFile("../tokenizer/testdata/qwen3/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	if chatTemplate == "" {
		b, err := os.ReadFile("../template/testdata/chatml/chat_template.jinja")
		if err != nil {
			t.Fatal(err)
		}
		chatTemplate = string(b)
	}
	for name, b := range map[string][]byte{"tokenizer.json": tok, "chat_template.jinja": []byte(chatTemplate)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// With a model's folder the sampler's own tokens go to a server that is never asked for
// any.
func TestAModelsFolderRendersInAServersPlace(t *testing.T) {
	dir := modelFolder(t, "")
	local, err := inference.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	fake := &inferencetest.Fake{}
	c := client(t, fake, inference.Config{Renderer: local})
	conversation := inference.Conversation{Messages: []rollout.Message{{Role: "user", Content: "<|im_end|> 6*7?"}}, Generate: true}
	got, err := c.Render(t.Context(), endpoints, conversation, &inference.Turn{ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tok.Decode(got)
	if want := "<|im_start|>user\n<|im_end|> 6*7?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"; err != nil || text != want {
		t.Errorf("%q, %v\nwant %q", text, err, want)
	}
	if n := len(fake.Asks()); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
	if !slices.Contains(local.Added(), "<|im_end|>") || local.Vocabulary() != tok.Size() {
		t.Errorf("added tokens %q, vocabulary of %d", local.Added(), local.Vocabulary())
	}
	tmpl, err := inference.NewTemplate(t.Context(), local, "Use the tool.", json.RawMessage(`[]`))
	if err != nil {
		t.Fatal(err)
	}
	if closing, err := tok.Decode(tmpl.Glue().Closing); err != nil || closing != "<|im_end|>\n" {
		t.Errorf("closing %q, %v", closing, err)
	}
}

func TestFoldersThatCannotBeUsed(t *testing.T) {
	if _, err := inference.OpenLocal(t.TempDir()); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("an empty folder: %v", err)
	}
	none := modelFolder(t, "")
	if err := os.Remove(filepath.Join(none, "chat_template.jinja")); err != nil {
		t.Fatal(err)
	}
	if _, err := inference.OpenLocal(none); !errors.Is(err, template.ErrNone) {
		t.Errorf("a folder without a template: %v", err)
	}
	// One that shows only the last message rewrites history.
	local, err := inference.OpenLocal(modelFolder(t, "{{ messages[-1].content }}<|im_end|>"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inference.NewTemplate(t.Context(), local, "s", json.RawMessage(`[]`)); !errors.Is(err, inference.ErrTemplate) {
		t.Errorf("a template that drops the conversation: %v", err)
	}
}
