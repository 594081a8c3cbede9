package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/stages/internal/stage"
)

func TestCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reward.yaml")
	if err := os.WriteFile(file, []byte("decides: plain\nrewards:\n  - name: plain\n    kind: zero_one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pairs := `{"id":"a","gold":"1/2","pred":"0.5"}` + "\n" + `{"id":"b","gold":"1","pred":"2"}` + "\n"
	texts := `{"id":"a","text":"\\boxed{8}","reference":"7"}` + "\n"
	cases := []struct {
		name    string
		command stage.Command
		args    []string
		stdin   string
		want    []string // in standard output
		err     error
	}{
		{"check", check, nil, pairs, []string{`"id":"a","verdict":"equal"`, `"id":"b","verdict":"different"`}, nil},
		{"check with the other conventions", check, []string{"--profile", "compat"}, pairs, []string{`"verdict":"equal"`}, nil},
		{"check answers a broken line in its place", check, nil, "{\n" + pairs, []string{`"error"`, `"id":"b"`}, errLines},
		{"check with an unknown profile", check, []string{"--profile", "x"}, pairs, nil, stage.ErrUsage},
		{"check with a file name", check, []string{"pairs.jsonl"}, pairs, nil, stage.ErrUsage},
		{"check --help", check, []string{"--help"}, "", []string{"--profile"}, nil},
		{"score", score, nil, texts, []string{`"id":"a"`, `"reward":-1`}, nil},
		{"score by a file", score, []string{"--reward", file}, texts, []string{`"reward":0`, `"scorer":"plain"`}, nil},
		{"score by a file that is not there", score, []string{"--reward", "no.yaml"}, texts, nil, stage.ErrUsage},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := c.command(t.Context(), c.args, strings.NewReader(c.stdin), &stdout, &stderr)
			if !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			for _, want := range c.want {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("written %q, want %s in it", stdout.String(), want)
				}
			}
		})
	}
}

func TestFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reward.yaml")
	if err := os.WriteFile(file, []byte("decides: plain\nrewards:\n  - name: plain\n    kind: zero_one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]config{
		"--steps-kept":       {},
		"exclude each other": {stepsKept: 1, rewardFile: file, readInvalidCalls: true},
		"no such file":       {stepsKept: 1, rewardFile: "no.yaml"},
	} {
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that says %q", err, name)
		}
	}
	c := config{stepsKept: 1, rewardFile: file}
	if err := c.validate(); err != nil || c.set.Scorers()[0].Name != "plain" {
		t.Errorf("rewards of the file: %v, %v", c.set, err)
	}
}
