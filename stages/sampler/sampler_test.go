package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/inference/inferencetest"
	"github.com/sluice-rl/sluice/topology/process"
)

const call = "<tool_call>\n<function=code_interpreter>\n<parameter=code>\nprint(6*7)\n</parameter>\n</function>\n</tool_call><|im_end|>"

func prompt(step uint64, slot uint32) *sluicev1.Prompt {
	return &sluicev1.Prompt{
		Group:     &sluicev1.GroupPlace{RunId: "run", Step: step, Slot: slot},
		Problem:   &sluicev1.Problem{QuestionId: fmt.Sprintf("q%d", slot), Question: "6*7?", Answer: "42", DataSource: "test"},
		GroupSize: 4, GroupsInStep: 100, Mode: sluicev1.Mode_MODE_TRAIN, RunSeed: 7,
		Budgets:     &sluicev1.Budgets{CodeCalls: 4, Turns: 6, TrajectoryTokens: 8192, TurnTokens: 1024, ObservationTokens: 512, ExecutionTimeoutMs: 30000},
		Sampling:    &sluicev1.SamplingParameters{Temperature: 1, TopP: 1},
		ToolEnabled: true, ToolProtocol: "qwen",
	}
}

// start runs a sampler on a fake server.
func start(w *kafkatest.World, fake *inferencetest.Fake) (*kafkatest.Running, *stage.Env) {
	s, env := prepare(w, fake)
	return w.Start(s.run, env), env
}

func prepare(w *kafkatest.World, fake *inferencetest.Fake) (*sampler, *stage.Env) {
	s := newSampler()
	s.http = fake.Client()
	s.cfg = config{
		urls: []string{"http://fake:8000"}, dialect: inference.DialectAuto, protocol: "qwen", logprobsMode: logprobsAuto, concurrency: 64,
		requestTimeout: time.Minute, turnAttempts: 5, turnTime: 30 * time.Minute, tokensInFlight: 4 << 20, refusals: 16,
	}
	return s, w.Env(name)
}

// each answers every request with the same completions in turn.
func each(answers ...inferencetest.Answer) func(inferencetest.Ask) []inferencetest.Answer {
	return func(a inferencetest.Ask) []inferencetest.Answer {
		out := make([]inferencetest.Answer, a.N)
		for i := range out {
			out[i] = answers[i%len(answers)]
		}
		return out
	}
}

func trajectories(ms []proto.Message) []*sluicev1.Trajectory {
	ts := make([]*sluicev1.Trajectory, len(ms))
	for i, m := range ms {
		ts[i] = m.(*sluicev1.Trajectory)
	}
	return ts
}

func reasons(ms []proto.Message) map[string]int {
	n := map[string]int{}
	for _, t := range trajectories(ms) {
		n[reason(t)]++
	}
	return n
}

// execute plays the code-executor for all code calls so far.
func execute(w *kafkatest.World, calls []proto.Message, stdout string) {
	for _, m := range calls {
		c := m.(*sluicev1.CodeCall)
		w.Put(kafka.Output{Topic: "code-results", Body: &sluicev1.CodeResult{
			Trajectory: c.GetTrajectory(), CallId: c.GetCallId(),
			Execution: &sluicev1.Execution{CallId: c.GetCallId(), Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK, Stdout: stdout, TimeoutMs: 30000},
		}})
	}
}

func TestFirstTurnForksAndLaterTurnsAreSingle(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Template: inferencetest.Thinking, Policy: func(a inferencetest.Ask) []inferencetest.Answer {
			if strings.Contains(a.Prompt, "<tool_response>") {
				return each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`})(a)
			}
			return each(inferencetest.Answer{Raw: call}, inferencetest.Answer{Raw: `\boxed{41}<|im_end|>`})(a)
		}}
		s, _ := start(w, fake)
		defer s.Stop()
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
		calls := w.Await("code-calls", 2)
		w.Await("trajectories", 2)
		execute(w, calls, "42\n")
		ended := trajectories(w.Await("trajectories", 4))

		if diff := cmp.Diff(map[string]int{"answer": 4}, reasons(w.Settle("trajectories"))); diff != "" {
			t.Errorf("end reasons (-want +got):\n%s", diff)
		}
		asks := fake.Asks()
		if len(asks) != 3 || asks[0].N != 4 || asks[1].N != 1 || asks[2].N != 1 {
			t.Fatalf("%d requests, want one of 4 completions and two of 1: %+v", len(asks), asks)
		}
		if asks[0].Seed == asks[1].Seed || asks[1].Seed == asks[2].Seed {
			t.Errorf("seeds %d %d %d: want them to differ", asks[0].Seed, asks[1].Seed, asks[2].Seed)
		}
		if !strings.HasPrefix(asks[1].Prompt, asks[0].Prompt+call+"\n<|im_start|>user\n<tool_response>\n42\n") {
			t.Errorf("second prompt is %q", asks[1].Prompt)
		}
		copies := map[uint64]bool{}
		members := map[uint32]bool{}
		for _, tr := range ended {
			copies[tr.GetCopy()] = true
			members[tr.GetSampleIndex()] = true
			if want := map[uint32]uint32{0: 1, 1: 0, 2: 1, 3: 0}[tr.GetSampleIndex()]; tr.GetCodeCalls() != want || tr.GetEndedBy() != "sampler" {
				t.Errorf("member %d made %d code calls, want %d; ended by %q", tr.GetSampleIndex(), tr.GetCodeCalls(), want, tr.GetEndedBy())
			}
		}
		if len(copies) != 4 || len(members) != 4 {
			t.Errorf("%d copies of %d members, want 4 of 4", len(copies), len(members))
		}
	})
}

func TestNothingIsSampledBeforeThePolicyUpdatesAreRead(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		w.Put(
			kafka.Output{Topic: "policy-updates", Body: &sluicev1.PolicyUpdate{RunId: "run", Step: 1, PolicyVersion: 1, Model: "old"}},
			kafka.Output{Topic: "policy-updates", Body: &sluicev1.PolicyUpdate{RunId: "other", Step: 9, PolicyVersion: 9, Model: "theirs"}},
			kafka.Output{Topic: "policy-updates", Body: &sluicev1.PolicyUpdate{RunId: "run", Step: 2, PolicyVersion: 5, Model: "new"}},
			kafka.Output{Topic: "prompts", Body: prompt(3, 0)},
		)
		fake := &inferencetest.Fake{Models: []string{"old", "new", "theirs"}, Policy: each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`})}
		s, _ := start(w, fake)
		defer s.Stop()
		check := func(n int, version uint32, model string) {
			t.Helper()
			for _, tr := range trajectories(w.Await("trajectories", n))[n-4:] {
				if v := tr.GetTurns()[0].GetVersions(); len(v) != 1 || v[0].GetVersion() != version {
					t.Errorf("tokens of versions %v, want %d", v, version)
				}
			}
			asks := fake.Asks()
			if got := asks[len(asks)-1].Model; got != model {
				t.Errorf("asked model %q, want %q", got, model)
			}
		}
		check(4, 5, "new")
		// The next update is followed while it works.
		w.Put(kafka.Output{Topic: "policy-updates", Body: &sluicev1.PolicyUpdate{RunId: "run", Step: 3, PolicyVersion: 6, Model: "old"}})
		time.Sleep(time.Second)
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(4, 0)})
		check(8, 6, "old")
	})
}

func TestAnAbortedGenerationGoesOnUnderTheNewVersion(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		version := uint32(3)
		fake := &inferencetest.Fake{Version: &version}
		fake.Policy = func(a inferencetest.Ask) []inferencetest.Answer {
			if a.N > 1 {
				fake.Set(func(f *inferencetest.Fake) { v := uint32(4); f.Version = &v })
				return each(inferencetest.Answer{Raw: "It is", Finish: "abort"})(a)
			}
			return each(inferencetest.Answer{Raw: ` \boxed{42}<|im_end|>`})(a)
		}
		s, _ := start(w, fake)
		defer s.Stop()
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
		for _, tr := range trajectories(w.Await("trajectories", 4)) {
			turn := tr.GetTurns()[0]
			if tr.GetFinalText() != `It is \boxed{42}` || turn.GetAborts() != 1 {
				t.Errorf("final text %q after %d aborts", tr.GetFinalText(), turn.GetAborts())
			}
			v := tokens.ReadVersions(turn.GetVersions())
			if v[0] != 3 || v[4] != 3 || v[5] != 4 || v[len(v)-1] != 4 || len(v) != tokens.Count(turn.GetTokens()) || len(v) != tokens.Count(turn.GetLogprobs()) {
				t.Errorf("versions %v of %d tokens, %d logprobs", v, tokens.Count(turn.GetTokens()), tokens.Count(turn.GetLogprobs()))
			}
		}
		asks := fake.Asks()
		seeds := map[uint64]bool{}
		for _, a := range asks {
			seeds[a.Seed] = true
		}
		if len(asks) != 5 || len(seeds) != 5 {
			t.Errorf("%d requests with %d seeds, want 5 and 5", len(asks), len(seeds))
		}
	})
}

func TestWhatTheServerGetsWrongEndsOneTrajectory(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Policy: each(
			inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`, LogprobsMissing: 1},
			inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`},
			inferencetest.Answer{},
		)}
		s, _ := start(w, fake)
		defer s.Stop()
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
		got := w.Await("trajectories", 4)
		if diff := cmp.Diff(map[string]int{"answer": 1, "protocol_fault": 3}, reasons(got)); diff != "" {
			t.Errorf("end reasons (-want +got):\n%s", diff)
		}
		for _, tr := range trajectories(got) {
			if reason(tr) == "protocol_fault" && (!strings.HasPrefix(tr.GetEndDetail(), "turn 0: given up after 5 attempts: ") || !strings.Contains(tr.GetEndDetail(), "20 token ids, 19 logprobs") || tr.GetFailedAttempts() != 5) {
				t.Errorf("detail %q", tr.GetEndDetail())
			}
		}
	})
}

func TestAPromptOverTheBudgetGivesUngradedMembers(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{}
		s, _ := start(w, fake)
		defer s.Stop()
		p := prompt(1, 0)
		p.Problem.Question = strings.Repeat("long ", 2000)
		w.Put(kafka.Output{Topic: "prompts", Body: p})
		if diff := cmp.Diff(map[string]int{"prompt_too_long": 4}, reasons(w.Await("trajectories", 4))); diff != "" {
			t.Errorf("end reasons (-want +got):\n%s", diff)
		}
		if n := len(fake.Asks()); n != 0 {
			t.Errorf("%d requests for completions, want none", n)
		}
	})
}

func TestABudgetBeyondTheServersContextIsLowered(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{MaxModelLen: 3000, Policy: each(inferencetest.Answer{Raw: strings.Repeat("x", 9000)})}
		s, _ := start(w, fake)
		defer s.Stop()
		p := prompt(1, 0)
		p.Budgets.TurnTokens = 9000
		w.Put(kafka.Output{Topic: "prompts", Body: p})
		for _, tr := range trajectories(w.Await("trajectories", 4)) {
			if turn := tr.GetTurns()[0]; tokens.Count(tr.GetPromptTokens())+tokens.Count(turn.GetTokens()) != 3000 || !turn.GetTruncated() {
				t.Errorf("%d prompt tokens and %d sampled, truncated %t; want 3000 in all", tokens.Count(tr.GetPromptTokens()), tokens.Count(turn.GetTokens()), turn.GetTruncated())
			}
		}
	})
}

func TestTextOnlyHasNoToolAndNoSystemPrompt(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Policy: each(inferencetest.Answer{Raw: call})}
		s, _ := start(w, fake)
		defer s.Stop()
		p := prompt(1, 0)
		p.ToolEnabled, p.ToolProtocol = false, ""
		w.Put(kafka.Output{Topic: "prompts", Body: p})
		if diff := cmp.Diff(map[string]int{"answer": 4}, reasons(w.Await("trajectories", 4))); diff != "" {
			t.Errorf("end reasons (-want +got):\n%s", diff)
		}
		ask := fake.Asks()[0]
		if !strings.HasPrefix(ask.Prompt, "<|im_start|>user\n6*7?") || ask.MaxTokens != 8192-len(ask.Prompt) {
			t.Errorf("asked for %d tokens on %q", ask.MaxTokens, ask.Prompt)
		}
	})
}

func TestOnlyTheMembersAskedForAreSampled(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Policy: each(inferencetest.Answer{Raw: `\boxed{42}`})}
		s, _ := start(w, fake)
		defer s.Stop()
		p := prompt(1, 0)
		p.Attempt, p.SampleIndices = 1, []uint32{1, 3}
		w.Put(kafka.Output{Topic: "prompts", Body: p})
		var got []uint32
		for _, tr := range trajectories(w.Await("trajectories", 2)) {
			got = append(got, tr.GetSampleIndex())
		}
		if diff := cmp.Diff([]uint32{1, 3}, got); diff != "" || fake.Asks()[0].N != 2 {
			t.Errorf("members (-want +got):\n%s", diff)
		}
	})
}

func TestPromptsForAnotherProtocolGoToDeadLetters(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		s, _ := start(w, &inferencetest.Fake{Policy: each(inferencetest.Answer{Raw: "x"})})
		defer s.Stop()
		p := prompt(1, 0)
		p.ToolProtocol = "hermes"
		w.Put(kafka.Output{Topic: "prompts", Body: p})
		letter := w.Await("dead-letters", 1)[0].(*sluicev1.DeadLetter)
		if letter.GetErrorType() != "refused" || !strings.Contains(letter.GetError(), `tool protocol "hermes"`) {
			t.Errorf("dead letter %q: %q, want refused", letter.GetErrorType(), letter.GetError())
		}
		if diff := cmp.Diff(map[string]int{"infra_error": 4}, reasons(w.Await("trajectories", 4))); diff != "" {
			t.Errorf("end reasons (-want +got):\n%s", diff)
		}
	})
}

func TestAServerAwayAtStartAndForAMinuteLosesNothing(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Away: true, Policy: each(inferencetest.Answer{Raw: `\boxed{42}`})}
		s, env := start(w, fake)
		defer s.Stop()
		for slot := range uint32(20) {
			w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, slot)})
		}
		time.Sleep(time.Minute)
		if ready(env) {
			t.Error("ready though the inference server is away")
		}
		fake.Set(func(f *inferencetest.Fake) { f.Away = false })
		w.Await("trajectories", 80)
		fake.Set(func(f *inferencetest.Fake) { f.Status = 503 })
		for slot := range uint32(20) {
			w.Put(kafka.Output{Topic: "prompts", Body: prompt(2, slot)})
		}
		time.Sleep(time.Minute)
		fake.Set(func(f *inferencetest.Fake) { f.Status = 0 })
		w.Await("trajectories", 160)
		if diff := cmp.Diff(map[string]int{"answer": 160}, reasons(w.Settle("trajectories"))); diff != "" {
			t.Errorf("end reasons (-want +got):\n%s", diff)
		}
		if !ready(env) {
			t.Error("not ready though the inference server is back")
		}
	})
}

func TestServersThatCannotBeWorkedWithEndTheStage(t *testing.T) {
	for name, fake := range map[string]*inferencetest.Fake{
		"several models and none named": {Models: []string{"a", "b"}},
		"a key that is not accepted":    {Status: 401},
		"no such path":                  {Status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) {
				s, _ := start(w, fake)
				if err := s.Ended(); !errors.Is(err, process.ErrUnusable) {
					t.Errorf("ended with %v, want ErrUnusable", err)
				}
			})
		})
	}
}

func TestARecordWorkedOnTwiceGivesTheSameAgain(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Policy: func(a inferencetest.Ask) []inferencetest.Answer {
			if a.N == 1 {
				return each(inferencetest.Answer{Raw: `\boxed{42}`})(a)
			}
			return each(inferencetest.Answer{Raw: call})(a)
		}}
		s, _ := start(w, fake)
		defer s.Stop()
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
		calls := w.Await("code-calls", 4)
		execute(w, calls, "42\n")
		execute(w, calls, "42\n")
		for _, tr := range trajectories(w.Await("trajectories", 8)) {
			if tr.GetExecutions() != 1 || tr.GetCodeCalls() != 1 || len(tr.GetTurns()) != 2 {
				t.Errorf("%d executions, %d code calls, %d turns; want 1, 1, 2", tr.GetExecutions(), tr.GetCodeCalls(), len(tr.GetTurns()))
			}
		}
	})
}

func ready(env *stage.Env) bool { return env.Health.IsReady() }

func awaitReady(w *kafkatest.World, env *stage.Env) {
	for range 600 {
		if ready(env) {
			return
		}
		time.Sleep(time.Second)
	}
	w.T.Fatal("not ready after 10 minutes")
}
