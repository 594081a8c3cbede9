package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/stages/prompt-feeder/dataset"
)

func TestInputFlag(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "a,b=1")
	if err := os.WriteFile(odd, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var got []dataset.Input
	f := inputFlag{to: &got}
	for _, text := range []string{"a=0.7", "b=0.2,c=0.1", odd} {
		if err := f.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	want := []dataset.Input{{Path: "a", Weight: 0.7}, {Path: "b", Weight: 0.2}, {Path: "c", Weight: 0.1}, {Path: odd}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := f.Set("a=0"); err == nil {
		t.Error("a weight of 0 is taken")
	}
}

// What a preparation did is said: of each input, and of rows by file and number.
func TestPrepareSays(t *testing.T) {
	dir := t.TempDir()
	var c dataset.PrepareConfig
	for name, content := range map[string]string{
		"a.csv":   "question,answer\nA0,1\nA1,2\nA2,\n",
		"b.jsonl": `{"messages":[{"role":"user","content":"B0"},{"role":"assistant","content":"1"}]}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Inputs = append(c.Inputs, dataset.Input{Path: path, Weight: 0.5})
	}
	c.OutDir = filepath.Join(dir, "out")
	var stdout, stderr bytes.Buffer
	if err := prepare(c, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a.csv: 1 train, 0 dev of 2 usable rows, 1 left out for the shares",
		"b.jsonl: 1 train, 0 dev of 1 usable rows, 0 left out for the shares",
		"1 rows have the assistant's message for their reference answer",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("stdout %q: want %q", stdout.String(), want)
		}
	}
	if want := fmt.Sprintf("%s row 3 refused: answer_empty", filepath.Join(dir, "a.csv")); !strings.Contains(stderr.String(), want) {
		t.Errorf("stderr %q: want %q", stderr.String(), want)
	}
}
