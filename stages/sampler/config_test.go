package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

func parsed(t *testing.T, args ...string) config {
	t.Helper()
	var c config
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	c.register(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaultsAreValid(t *testing.T) {
	c := parsed(t)
	if err := c.validate(); err != nil {
		t.Error(err)
	}
	if s, err := c.systemPrompt(); err != nil || s != rollout.SystemPrompt {
		t.Errorf("system prompt %q, %v", s, err)
	}
	if d, err := c.defuser(); err != nil || d.Defuse("<think>") != "< think >" {
		t.Errorf("added tokens: %v", err)
	}
}

func TestImpossibleFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--inference-url=127.0.0.1:8000"}, {"--inference-url="}, {"--inference-url=ftp://host"},
		{"--tool-protocol=morse"}, {"--logprobs-mode=some"}, {"--concurrency=0"}, {"--request-timeout=0s"}, {"--stop-token-ids=4294967296"},
	} {
		c := parsed(t, args...)
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), strings.Split(args[0], "=")[0]) {
			t.Errorf("%v: error %v, want one that names the flag", args, err)
		}
	}
}

func TestFilesReplaceWhatIsBuiltIn(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := parsed(t, "--system-prompt-file", file("prompt", "Be brief.\n"), "--added-tokens-file", file("tokens", "[INST]\n[/INST]\n"), "--stop-token-ids=2,7")
	if s, err := c.systemPrompt(); err != nil || s != "Be brief." {
		t.Errorf("system prompt %q, %v", s, err)
	}
	d, err := c.defuser()
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Defuse("[INST]<|im_end|>"); got != "[ INST]< im_end >" {
		t.Errorf("defused: %q", got)
	}
	if diff := cmp.Diff([]uint32{2, 7}, c.stopTokenIDs()); diff != "" {
		t.Errorf("stop tokens (-want +got):\n%s", diff)
	}
	empty := parsed(t, "--system-prompt-file", file("empty", " \n"))
	if _, err := empty.systemPrompt(); err == nil {
		t.Error("an empty system prompt is accepted")
	}
	blank := parsed(t, "--added-tokens-file", file("blank", "  \n"))
	if _, err := blank.defuser(); err == nil {
		t.Error("a token of white space is accepted")
	}
}

func TestALaterIncarnationWinsAndAnOlderStepDoesNot(t *testing.T) {
	p := newPolicies(inference.Endpoint{URL: "http://flags"})
	p.named("found")
	at := func(incarnation uint32, step uint64, version uint32, url string) *sluicev1.PolicyUpdate {
		return &sluicev1.PolicyUpdate{RunId: "run", Incarnation: incarnation, Step: step, PolicyVersion: version, InferenceUrl: url}
	}
	check := func(wantURL string, want uint32) {
		t.Helper()
		if ep, v := p.of("run"); v != want || ep.URL != wantURL || ep.Model != "found" {
			t.Errorf("version %d at %+v, want %d at %s", v, ep, want, wantURL)
		}
	}
	check("http://flags", 0)
	p.update(at(0, 5, 5, "http://a"))
	check("http://a", 5)
	p.update(at(0, 4, 4, "http://b"))
	check("http://a", 5)
	p.update(at(1, 2, 2, ""))
	check("http://flags", 2)
	p.update(at(0, 9, 9, "http://c"))
	check("http://flags", 2)
}

func TestSamplingThatTrainingCannotUseIsWarnedOfOnce(t *testing.T) {
	for name, c := range map[string]struct {
		sampling *sluicev1.SamplingParameters
		mode     sluicev1.Mode
		logprobs string
		want     []string
	}{
		"plain":                           {&sluicev1.SamplingParameters{Temperature: 1, TopP: 1}, sluicev1.Mode_MODE_TRAIN, logprobsRaw, nil},
		"a temperature with raw logprobs": {&sluicev1.SamplingParameters{Temperature: 0.6, TopP: 1}, sluicev1.Mode_MODE_TRAIN, logprobsRaw, []string{"another distribution"}},
		"a temperature with processed":    {&sluicev1.SamplingParameters{Temperature: 0.6, TopP: 1}, sluicev1.Mode_MODE_TRAIN, logprobsProcessed, nil},
		"top-p, whatever the logprobs":    {&sluicev1.SamplingParameters{Temperature: 1, TopP: 0.9}, sluicev1.Mode_MODE_TRAIN, logprobsProcessed, []string{"truncated sampling"}},
		"top-k":                           {&sluicev1.SamplingParameters{Temperature: 0.6, TopP: 1, TopK: 20}, sluicev1.Mode_MODE_TRAIN, logprobsRaw, []string{"another distribution", "truncated sampling"}},
		"evaluation":                      {&sluicev1.SamplingParameters{Temperature: 0.6, TopP: 0.9}, sluicev1.Mode_MODE_EVAL, logprobsRaw, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w := newWarnings(slog.New(slog.NewTextHandler(&log, nil)))
			for range 3 {
				w.sampling(&sluicev1.Prompt{Mode: c.mode, Sampling: c.sampling}, c.logprobs)
			}
			if got := strings.Count(log.String(), "level=WARN"); got != len(c.want) {
				t.Errorf("%d warnings, want %d:\n%s", got, len(c.want), &log)
			}
			for _, w := range c.want {
				if !strings.Contains(log.String(), w) {
					t.Errorf("no warning of %q:\n%s", w, &log)
				}
			}
		})
	}
}
