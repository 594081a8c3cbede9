package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/schemas/identity"
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
	if d, err := c.defuser(nil); err != nil || d.Defuse("<think>") != "< think >" {
		t.Errorf("added tokens: %v", err)
	}
}

func TestImpossibleFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--inference-url=127.0.0.1:8000"}, {"--inference-url="}, {"--inference-url=ftp://host"},
		{"--inference-url=http://a", "--inference-url=http://a"}, {"--dialect=morse"}, {"--turn-attempts=0"}, {"--turn-time=0s"}, {"--tokens-in-flight=0"}, {"--max-refusals=0"}, {"--vocabulary-size=-1"},
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
	d, err := c.defuser(nil)
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
	if _, err := blank.defuser(nil); err == nil {
		t.Error("a token of white space is accepted")
	}
}

func TestALaterIncarnationWinsAndAnOlderStepDoesNot(t *testing.T) {
	p := newPolicies([]inference.Endpoint{{URL: "http://flags", Model: "found"}})
	at := func(incarnation uint32, step uint64, version uint32, url string) *sluicev1.PolicyUpdate {
		return &sluicev1.PolicyUpdate{RunId: "run", Incarnation: incarnation, Step: step, PolicyVersion: version, InferenceUrl: url}
	}
	check := func(wantURL string, want uint32) {
		t.Helper()
		if eps, v := p.of("run"); v != want || len(eps) != 1 || eps[0].URL != wantURL || eps[0].Model != "found" {
			t.Errorf("version %d at %+v, want %d at %s", v, eps, want, wantURL)
		}
	}
	check("http://flags", 0)
	p.update(at(0, 5, 5, "http://a"))
	check("http://a", 5)
	p.update(at(0, 4, 4, "http://b"))
	check("http://a", 5)
	p.update(at(0, 6, 6, "")) // where it was
	check("http://a", 6)
	p.update(at(1, 2, 2, ""))
	check("http://flags", 2)
	p.update(at(0, 9, 9, "http://c"))
	check("http://flags", 2)
}

// An update speaks for its own run: another run keeps the flags' servers, whatever
// finished runs left behind.
func TestAnUpdateSpeaksForItsRunOnly(t *testing.T) {
	flags := []inference.Endpoint{{URL: "http://a", Model: "m"}, {URL: "http://b", Model: "m"}}
	p := newPolicies(flags)
	p.update(&sluicev1.PolicyUpdate{RunId: "old", Step: 9, PolicyVersion: 9, InferenceUrl: "http://dead", Model: "gone"})
	if eps, v := p.of("new"); v != 0 || !cmp.Equal(eps, flags) {
		t.Errorf("a new run is at version %d, %+v; want 0 at the flags' %+v", v, eps, flags)
	}
	if eps, v := p.of("old"); v != 9 || !cmp.Equal(eps, []inference.Endpoint{{URL: "http://dead", Model: "gone"}}) {
		t.Errorf("the old run is at version %d, %+v", v, eps)
	}
	p.update(&sluicev1.PolicyUpdate{RunId: "new", Step: 1, PolicyVersion: 1, Model: "adapter-1"})
	if eps, _ := p.of("new"); !cmp.Equal(eps, []inference.Endpoint{{URL: "http://a", Model: "adapter-1"}, {URL: "http://b", Model: "adapter-1"}}) {
		t.Errorf("a run whose model changed is at %+v, want both servers with it", eps)
	}
}

func TestWorkOnAStepEndsWhenItIsDone(t *testing.T) {
	p := newPolicies([]inference.Endpoint{{}})
	at := func(incarnation uint32, step uint64) (context.Context, func()) {
		return p.work(t.Context(), identity.Group{RunID: "run", Incarnation: incarnation, Step: step})
	}
	closed := func(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errClosed) }
	before, end := at(0, 3)
	defer end()
	next, end := at(0, 4)
	defer end()
	p.update(&sluicev1.PolicyUpdate{RunId: "other", Step: 3})
	if closed(before) {
		t.Error("ended by another run's update")
	}
	p.update(&sluicev1.PolicyUpdate{RunId: "run", Step: 3})
	if !closed(before) || closed(next) {
		t.Errorf("step 3 closed %t, step 4 closed %t; want only step 3", closed(before), closed(next))
	}
	late, end := at(0, 3)
	defer end()
	if !closed(late) {
		t.Error("a record of a step that is done is begun")
	}
	p.update(&sluicev1.PolicyUpdate{RunId: "run", Incarnation: 1, Step: 2})
	again, end := at(1, 3)
	defer end()
	if !closed(next) || closed(again) {
		t.Errorf("rolled back: incarnation 0 closed %t, step 3 of incarnation 1 closed %t; want only the first", closed(next), closed(again))
	}
}

func TestVersionsAreMappedOrUnknown(t *testing.T) {
	p := newPolicies([]inference.Endpoint{{}})
	p.update(&sluicev1.PolicyUpdate{RunId: "run", Step: 1, PolicyVersion: 7, ServerVersion: "step-7"})
	p.update(&sluicev1.PolicyUpdate{RunId: "run", Step: 2, PolicyVersion: 8, ServerVersion: "8"})
	choice := inference.Choice{Tokens: make([]uint32, 20)}
	given := choice
	given.Versions = []inference.Span{{Word: "step-7", Count: 9}, {Word: "8", Count: 11}}
	strange := choice
	strange.Versions = []inference.Span{{Word: "default", Count: 20}}
	for name, c := range map[string]struct {
		response inference.Response
		choice   inference.Choice
		declared uint32
		want     []rollout.Versions
		source   sluicev1.VersionSource
	}{
		"for every token":                   {inference.Response{}, given, 8, []rollout.Versions{{Version: 7, Count: 9}, {Version: 8, Count: 11}}, sluicev1.VersionSource_VERSION_SOURCE_GIVEN},
		"in a word that nothing maps":       {inference.Response{}, strange, 8, []rollout.Versions{{Version: 8, Count: 20}}, sluicev1.VersionSource_VERSION_SOURCE_UNKNOWN},
		"one, live before it was asked":     {inference.Response{Version: "8"}, choice, 8, []rollout.Versions{{Version: 8, Count: 20}}, sluicev1.VersionSource_VERSION_SOURCE_SINGLE},
		"one, that came while it ran":       {inference.Response{Version: "8"}, choice, 7, []rollout.Versions{{Version: 7, Count: 20}}, sluicev1.VersionSource_VERSION_SOURCE_SINGLE},
		"one, gone back after a restart":    {inference.Response{Version: "step-7"}, choice, 8, []rollout.Versions{{Version: 7, Count: 20}}, sluicev1.VersionSource_VERSION_SOURCE_SINGLE},
		"'default'":                         {inference.Response{Version: "default"}, choice, 8, []rollout.Versions{{Version: 8, Count: 20}}, sluicev1.VersionSource_VERSION_SOURCE_UNKNOWN},
		"a number that no update names":     {inference.Response{Version: "9"}, choice, 8, []rollout.Versions{{Version: 8, Count: 20}}, sluicev1.VersionSource_VERSION_SOURCE_UNKNOWN},
		"none":                              {inference.Response{}, choice, 8, []rollout.Versions{{Version: 8, Count: 20}}, sluicev1.VersionSource_VERSION_SOURCE_DECLARED},
		"our own integers, as simpolicy's":  {inference.Response{HasVersion: true, PolicyVersion: 9}, choice, 8, []rollout.Versions{{Version: 9, Count: 20}}, sluicev1.VersionSource_VERSION_SOURCE_GIVEN},
		"none, of an abort without a token": {inference.Response{}, inference.Choice{}, 8, nil, sluicev1.VersionSource_VERSION_SOURCE_DECLARED},
	} {
		t.Run(name, func(t *testing.T) {
			got, source := p.versionsOf("run", c.declared, c.response, c.choice)
			if !cmp.Equal(got, c.want) || source != c.source {
				t.Errorf("%v (%v), want %v (%v)", got, source, c.want, c.source)
			}
		})
	}
	p.update(&sluicev1.PolicyUpdate{RunId: "run", Incarnation: 1, Step: 1, PolicyVersion: 1})
	if _, ok := p.version("run", "step-7"); ok {
		t.Error("a word of an earlier incarnation is still mapped: after a roll-back it may name other weights")
	}
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
