package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/stages/reward-scorer/reward/rewardfile"
	"github.com/sluice-rl/sluice/topology/process"
)

func TestCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reward.yaml")
	if err := os.WriteFile(file, []byte("decides: plain\nrewards:\n  - name: plain\n    kind: zero_one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	failing := filepath.Join(t.TempDir(), "failing.yaml")
	if err := os.WriteFile(failing, []byte("rewards:\n  - name: failing\n    kind: expression\n    expression: 6 / code_calls\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pairs := `{"id":"a","gold":"1/2","pred":"0.5"}` + "\n" + `{"id":"b","gold":"1","pred":"2"}` + "\n"
	texts := `{"id":"a","text":"\\boxed{8}","reference":"7"}` + "\n"
	cases := []struct {
		name    string
		command process.Command
		args    []string
		stdin   string
		want    []string // in standard output
		err     error
	}{
		{"check", checkCommand(), nil, pairs, []string{`"id":"a","verdict":"equal"`, `"id":"b","verdict":"different"`}, nil},
		{"check with the other conventions", checkCommand(), []string{"--profile", "compat"}, pairs, []string{`"verdict":"equal"`}, nil},
		{"check answers a broken line in its place", checkCommand(), nil, "{\n" + pairs, []string{`"error"`, `"id":"b"`}, errLines},
		{"check with an unknown profile", checkCommand(), []string{"--profile", "x"}, pairs, nil, process.ErrUsage},
		{"check with a file name", checkCommand(), []string{"pairs.jsonl"}, pairs, nil, process.ErrUsage},
		{"check --help", checkCommand(), []string{"--help"}, "", []string{"--profile"}, nil},
		{"score", scoreCommand(), nil, texts, []string{`"id":"a"`, `"reward":-1`}, nil},
		{"score by a file", scoreCommand(), []string{"--reward", file}, texts, []string{`"reward":0`, `"scorer":"plain"`}, nil},
		{"score by a file that is not there", scoreCommand(), []string{"--reward", "no.yaml"}, texts, nil, process.ErrUsage},
		{"score by a reward that fails on all", scoreCommand(), []string{"--reward", failing}, texts + texts, []string{`"reward":null,"error":`}, errReward},
		{"score by a reward that fails on some", scoreCommand(), []string{"--reward", failing}, texts + `{"id":"b","text":"","reference":"7","code_calls":2}`, []string{`"reward":null,"error":`, `"reward":3`}, nil},
		{"score by a reward that fails, and a broken line", scoreCommand(), []string{"--reward", failing}, "{\n" + texts, []string{`"reward":null`}, errLines},
		{"score --help", scoreCommand(), []string{"--help"}, "", []string{"Exit status", "Exit codes", "--reward"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := process.Execute(c.command, process.System{Args: c.args, Stdin: strings.NewReader(c.stdin), Stdout: &stdout, Stderr: &stderr})
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

// A script learns of a reward that failed on everything by the exit status, a person by how
// often and why.
func TestScoreByAVerifier(t *testing.T) {
	var requests [][]map[string]any
	broken := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent struct{ Trajectories []map[string]any }
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		requests = append(requests, sent.Trajectories)
		if broken {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		rewards := []float64{}
		for _, tr := range sent.Trajectories {
			rewards = append(rewards, tr["tokens"].(float64))
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"rewards": rewards}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "reward.yaml")
	if err := os.WriteFile(file, []byte("rewards:\n  - {name: judge, kind: http, url: '"+server.URL+"/s?key=s3cret', batch: 4}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdin strings.Builder
	for i := range 6 {
		fmt.Fprintf(&stdin, `{"id":%d,"text":"","reference":"7","tokens":%d}`+"\n", i, i)
	}
	run := func() (string, error) {
		var stdout, stderr bytes.Buffer
		err := process.Execute(scoreCommand(), process.System{Args: []string{"--reward", file}, Stdin: strings.NewReader(stdin.String()), Stdout: &stdout, Stderr: &stderr})
		return stdout.String(), err
	}

	out, err := run()
	if !errors.Is(err, errReward) || process.ExitCode(err) != process.ExitFailed || !strings.Contains(err.Error(), "6 of 6") || !strings.Contains(err.Error(), server.URL+"/s: status 404") {
		t.Errorf("got %v, want how many failed and the last error", err)
	}
	if strings.Count(out, `"reward":null`) != 6 || strings.Contains(out, "s3cret") {
		t.Errorf("written %s", out)
	}

	broken, requests = false, nil
	if out, err = run(); err != nil {
		t.Error(err)
	}
	if len(requests) != 2 || len(requests[0]) != 4 || len(requests[1]) != 2 {
		t.Errorf("requests %v, want one of 4 and one of 2", requests)
	}
	lines := strings.Split(out, "\n")
	for i := range 6 {
		if want := fmt.Sprintf(`{"id":%d,"scorer":"judge",`, i); !strings.HasPrefix(lines[i], want) || !strings.Contains(lines[i], fmt.Sprintf(`"reward":%d,`, i)) {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
}

func TestFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reward.yaml")
	if err := os.WriteFile(file, []byte("decides: plain\nrewards:\n  - name: plain\n    kind: zero_one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]config{
		"--steps-kept":       {},
		"exclude each other": {stepsKept: 1, rewards: rewardfile.Flags{File: file, ReadInvalidCalls: true}},
		"no such file":       {stepsKept: 1, rewards: rewardfile.Flags{File: "no.yaml"}},
	} {
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that says %q", err, name)
		}
	}
	c := config{stepsKept: 1, rewards: rewardfile.Flags{File: file}}
	if err := c.validate(); err != nil || c.set.Scorers()[0].Name != "plain" {
		t.Errorf("rewards of the file: %v, %v", c.set, err)
	}
}
